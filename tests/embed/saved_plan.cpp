// A saved plan says where handlers run and what they cost, and is not taken for another one.
#include "embed/saved_plan.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "embed/compose.h"
#include "exec/run.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plugin/registry.h"

using namespace millrace;
using namespace millrace::embed;

namespace {

constexpr const char* kPipeline =
    "test.pattern name=video width=64 height=48 count=10 ! image.blur name=blur ! null.sink name=end";

Choices choices_with(const std::vector<plan::BodyCost>& bodies, const SavedPlan& saved = {}) {
  Choices choices;
  choices.domains = {"cpu", "sim:0"};
  choices.threads = 2;
  choices.machine.bodies = bodies;
  choices.saved = saved;
  return choices;
}

// The times of image.blur in each of the two, for pictures of 64×48.
std::vector<plan::BodyCost> blur_costs(double cpu_us, double sim_us) {
  return {{"image.blur", "", "cpu", 9216, cpu_us, cpu_us, cpu_us, 1},
          {"image.blur", "", "sim:0", 9216, sim_us, sim_us, sim_us, 1}};
}

plan::Plan compile(const std::string& pipeline, const Choices& choices) {
  plugin::Registry registry;
  return Composition(graph::load(pipeline), registry, exec::host_table(), choices).plan();
}

Error refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {};
}

} // namespace

TEST_CASE("5.6: a saved plan keeps handlers where they were, whatever they cost by now") {
  const plan::Plan before = compile(kPipeline, choices_with(blur_costs(5000, 10)));
  REQUIRE(before.domains[before.handlers[1].domain].name == "sim:0");
  const SavedPlan saved = parse_plan(plan::print_json(before));
  CHECK(saved.workers == 2);
  CHECK(saved.domains == std::vector<std::string>{"cpu", "sim:0"});
  CHECK(saved.places.at("blur") == "sim:0");
  const plan::Plan again = compile(kPipeline, choices_with(blur_costs(10, 5000), saved));
  CHECK(again.domains[again.handlers[1].domain].name == "sim:0");
  require_same(saved, again);
}

TEST_CASE("5.6: a saved plan that would do something else is refused, with the first difference") {
  const SavedPlan saved = parse_plan(plan::print_json(compile(kPipeline, choices_with({}))));
  const std::pair<std::string, std::string> changes[] = {{"width=64", "width=128"},
                                                         {"image.blur name=blur", "image.flip name=blur"},
                                                         {"name=end", "name=last"},
                                                         {"null.sink name=end", "null.sink name=end every=2"}};
  for (const auto& [from, to] : changes) {
    std::string pipeline = kPipeline;
    pipeline.replace(pipeline.find(from), from.size(), to);
    CAPTURE(pipeline);
    const Error error = refusal([&] { compile(pipeline, choices_with({}, saved)); });
    CHECK(error.code == 412);
    REQUIRE(error.notes.size() == 2);
    CHECK(error.notes[0].find("saved: ") == 0);
    CHECK(error.notes[1].find("now: ") == 0);
  }
}

TEST_CASE("What is no saved plan is refused, and by what it lacks") {
  const auto code_of = [](const std::string& text) { return refusal([&] { parse_plan(text); }).code; };
  const nlohmann::json whole = nlohmann::json::parse(plan::print_json(compile(kPipeline, choices_with({}))));
  CHECK(code_of(whole.dump()) == 0);
  CHECK(code_of("no json") == 115);
  CHECK(code_of("[]") == 115);
  for (const char* key : {"version", "workers", "domains", "handlers"}) {
    nlohmann::json without = whole;
    without.erase(key);
    CAPTURE(key);
    CHECK(code_of(without.dump()) == 115);
    nlohmann::json other = whole;
    other[key] = "x";
    CHECK(code_of(other.dump()) == 115);
  }
  nlohmann::json nowhere = whole;
  nowhere["handlers"]["blur"].erase("domain");
  CHECK(code_of(nowhere.dump()) == 115);
}
