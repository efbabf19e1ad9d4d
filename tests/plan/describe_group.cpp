// The printed plan shows each group's rule, the point at which it is expected to work, and the copies that it needs.
// ../cli/plans/group.txt has a whole plan.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "graph/unfold.h"
#include "plan/print.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;
using nlohmann::json;

namespace {

// Three streams of int64[10] into the shared handler `model`, whose items another template reads.
Pipeline into_model(const std::string& model, const std::string& clock) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml(R"(version: 1
streams: { cameras: { items: { gate7: {}, hall: {}, yard: {} } } }
clocks: { cameras: )" + clock + R"( }
handlers:
  source: { type: t.count, for_each: cameras, size: 10 }
  model:  { input: source, )" + model + R"( }
  end:    { type: null.sink, for_each: cameras, input: model }
)",
                                                   "group.yaml"));
  return pipeline;
}

constexpr const char* kRealtime = "{ mode: realtime, rate: 30 }";

std::string after(const Planned& planned, const std::string& words) {
  const std::string text = planned.text();
  const size_t begin = text.find('\n', text.find(words)) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

json json_of_plan(const Planned& planned) { return json::parse(plan::print_json(planned.plan())); }

} // namespace

TEST_CASE("a group is printed with its rule, and its pace is no clock") {
  const Planned free(into_model("type: t.relay", "{ mode: free }"));
  CHECK(free.line_with("  model  cameras") ==
        "  model  cameras: 3 streams, firings of up to 8, 1 in flight; free: what waits");
  CHECK(free.text().find("model@cameras") == std::string::npos);
  CHECK(free.text().find("\ngroups\n") > free.text().find("\nclocks\n"));
  CHECK(free.text().find("\ngroups\n") < free.text().find("\nsegments\n"));

  const Planned fixed(into_model("type: t.relay, batch: { size: 4, wait: 5ms }", kRealtime));
  CHECK(fixed.line_with("  model  cameras") ==
        "  model  cameras: 3 streams, firings of up to 4, 1 in flight; fixed: 4 items, or fewer once the oldest has "
        "waited 5 ms");
  CHECK(after(fixed, "  model  cameras") == "         allowance 2 items a stream");

  const Planned learnt(into_model("type: t.relay, batch: { budget: 50ms, late: keep }", kRealtime));
  CHECK(learnt.line_with("  model  cameras").ends_with("; learnt: budget 50 ms, late items kept"));
  CHECK(after(learnt, "  model  cameras") ==
        "         buckets 1 2 4 8 16 32; allowance 3 items a stream"); // no cost is known
}

TEST_CASE("where costs are known the plan says how a group is expected to work") {
  const auto point = [](const std::string& cpu_us, const std::string& budget) {
    return after(
        Planned(into_model("type: p.priced, cpu_us: " + cpu_us + ", batch: { budget: " + budget + " }", kRealtime)),
        "  model  cameras");
  };
  CHECK(point("3000", "50ms").ends_with("; expected 1 item a firing (load 0.27: 90/s of 3 ms each)"));
  // An item at a time is too slow, and more at a time are no faster: the least that does is one.
  CHECK(point("20000", "100ms").ends_with("; expected 1 item a firing (load 1.80: 90/s of 20 ms each)"));
  const json made = json_of_plan(
      Planned(into_model("type: p.priced, cpu_us: 3000, batch: { budget: 50ms }", kRealtime)))["groups"][0];
  CHECK(made["expected"]["items"] == 1);
  CHECK(made["expected"]["set_by"] == "load");
  CHECK(made["expected"]["load"].get<double>() == doctest::Approx(0.27));
}

TEST_CASE("rows that are gathered for a call, and items that are copied out, are shown with their bytes and times") {
  const Planned planned(into_model("type: p.dense", "{ mode: free }"));
  CHECK(planned.line_with("    model ").find("gathers model.in, up to 320 B in 0.032 µs") !=
        std::string::npos); // 4 of int64[10]
  CHECK(planned.line_with("+ deal out model") ==
        "    + deal out model: copies model.out out, 80 B in 0.008 µs an item");
  const json made = json_of_plan(planned)["groups"][0];
  CHECK(made["gathers"] == json{{{"input", "model.in"}, {"bytes", 320}, {"us", 0.032}}});
  CHECK(made["copies_out"] == json{{{"output", "model.out"}, {"bytes", 80}, {"us", 0.008}}});

  const Planned plain(into_model("type: t.relay", "{ mode: free }"));
  CHECK(plain.text().find("gathers") == std::string::npos);
  CHECK(plain.line_with("+ deal out model") == "    + deal out model");
}

TEST_CASE("a note says that a handler on a device is called item by item, though its calls could take several") {
  const auto has_note = [](const std::string& model) {
    return Planned(into_model(model, "{ mode: free }"), two_devices).has_note("model is called item by item on sim:0");
  };
  CHECK(has_note("type: p.dense, device: 'sim:0'"));
  CHECK_FALSE(has_note("type: p.dense, device: cpu"));
  CHECK_FALSE(has_note("type: t.relay, device: 'sim:0'")); // it takes one item in any case
}

TEST_CASE("the plan's JSON has the groups, and no clock of theirs") {
  const json made =
      json_of_plan(Planned(into_model("type: t.relay, batch: { budget: 50ms, in_flight: 2 }", kRealtime)));
  CHECK(made["clocks"].size() == 3);
  CHECK(made["handlers"]["model"]["clock"].is_null());
  CHECK(made["handlers"]["model"]["group"] == "model");
  CHECK(made["handlers"]["end@hall"]["clock"] == "hall");
  const json& group = made["groups"][0];
  CHECK(group["name"] == "model");
  CHECK(group["set"] == "cameras");
  CHECK(group["handlers"] == json{"model"});
  CHECK(group["rule"] == "learnt");
  CHECK(group["budget_ms"] == 50);
  CHECK(group["late"] == "drop");
  CHECK(group["in_flight"] == 2);
  CHECK(group["buckets"] == json{1, 2, 4, 8, 16, 32});
  CHECK(group["allowance"] == json{{"gate7", 3}, {"hall", 3}, {"yard", 3}});
  CHECK_FALSE(group.contains("expected"));
  CHECK_FALSE(json_of_plan(Planned(Pipeline("test.number ! null.sink"))).contains("groups"));
}

TEST_CASE("in the drawing items go into a group by its beginning and come out of its end") {
  const Planned planned(into_model("type: t.relay", "{ mode: free }"));
  const std::string dot = plan::print_dot(planned.plan());
  const auto node = [&](const std::string& label) {
    const size_t at = dot.find(" [label=\"" + label);
    REQUIRE(at != std::string::npos);
    const size_t begin = dot.rfind("step", at);
    return dot.substr(begin, at - begin);
  };
  const auto has_arrow = [&](const std::string& from, const std::string& to) {
    return dot.find("  " + node(from) + " -> " + node(to) + " [") != std::string::npos;
  };
  CHECK(has_arrow("source@cameras (3)", "give model (3)"));
  CHECK(has_arrow("give model (3)", "items of model"));
  CHECK(has_arrow("items of model", "model\\nt.relay"));
  CHECK(has_arrow("model\\nt.relay", "deal out model"));
  CHECK(has_arrow("deal out model", "end@cameras (3)"));
  CHECK_FALSE(has_arrow("give model (3)", "end@cameras (3)"));
}
