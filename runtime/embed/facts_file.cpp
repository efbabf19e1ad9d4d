// Reads facts from JSON and checks every name in them against the handlers.
#include "embed/facts_file.h"

#include <algorithm>

#include "embed/json_fields.h"
#include "graph/graph.h"
#include "graph/quantity.h"
#include "millrace/payload.h"
#include "observe/error_codes.h"
#include "plan/probe.h"
#include "plan/refusal.h"
#include "plugin/registry.h"

namespace millrace::embed {

namespace {

using nlohmann::json;

// The most pixels of a picture's side in a fact; also keeps sizes in bytes within 64 bits.
constexpr int64_t kPixelsMax = 65536;

const JsonFields kFactsFile(code::bad_facts, "the facts cannot be used");

Pixel pixel_of(const json& object, const std::string& where) {
  const auto at = object.find("pixel_format");
  if (at == object.end() || !at->is_string()) kFactsFile.refuse(where, "lacks pixel_format");
  const std::vector<std::string> names(kPixelNames.begin() + 1, kPixelNames.end());
  const auto name = std::find(names.begin(), names.end(), at->get<std::string>());
  if (name != names.end()) return static_cast<Pixel>(name - names.begin() + 1);
  kFactsFile.refuse_name("in " + where + ", the unknown pixel format", at->get<std::string>(), names);
}

void read_outputs(const json& outputs, plan::HandlerFacts& handler) {
  const plugin::HandlerInfo& info = handler.answers->info();
  std::vector<std::string> names;
  for (const auto& port : info.ports) {
    if (port.is_input()) continue;
    names.push_back(port.name);
    handler.outputs.push_back(port.raw.accepts);
    handler.outputs.back().size = sizeof(mr_format);
  }
  kFactsFile.only_keys(outputs, handler.name + ".outputs", names);
  if (outputs.size() != names.size()) kFactsFile.refuse(handler.name + ".outputs", "does not name every output");
  for (size_t o = 0; o < names.size(); ++o) {
    const json& given = outputs.at(names[o]);
    const std::string where = handler.name + ".outputs." + names[o];
    kFactsFile.only_keys(given, where, {"pixel_format", "width", "height"});
    mr_format& format = handler.outputs[o];
    format.kind = MR_KIND_IMAGE;
    format.schema = schema_of(Image::kSchema);
    format.pixel_formats = bit_of(pixel_of(given, where));
    format.width = static_cast<uint32_t>(kFactsFile.whole(given, "width", 1, kPixelsMax, where));
    format.height = static_cast<uint32_t>(kFactsFile.whole(given, "height", 1, kPixelsMax, where));
    format.size_kind = MR_DIM_FIXED;
  }
}

void read_handler(const json& given, plan::HandlerFacts& handler) {
  kFactsFile.only_keys(given, handler.name, {"rate", "live", "tick_count", "outputs"});
  if (const auto at = given.find("rate"); at != given.end()) {
    const auto rate = graph::read_rate(at->is_string() ? at->get<std::string>() : at->dump());
    if (!rate) kFactsFile.refuse(handler.name + ".rate", "is no rate such as 30 or \"30000/1001\"");
    handler.facts.rate_num = rate->numerator;
    handler.facts.rate_den = rate->denominator;
  }
  if (const auto at = given.find("live"); at != given.end()) {
    if (!at->is_boolean()) kFactsFile.refuse(handler.name + ".live", "is neither true nor false");
    handler.facts.live = at->get<bool>() ? 1 : 0;
  }
  if (given.contains("tick_count"))
    handler.facts.tick_count = kFactsFile.whole(given, "tick_count", -1, INT64_MAX, handler.name);
  if (const auto at = given.find("outputs"); at != given.end()) read_outputs(*at, handler);
}

void probe_others(const json& document, plan::Prepared& prepared) {
  std::vector<plan::HandlerFacts*> others;
  std::vector<std::unique_ptr<plugin::Instance>*> asked;
  for (size_t h = 0; h < prepared.facts.handlers.size(); ++h) {
    plan::HandlerFacts& handler = prepared.facts.handlers[h];
    if (document.contains(handler.name) || !prepared.handlers.instances[h]) continue;
    others.push_back(&handler);
    asked.push_back(&prepared.handlers.instances[h]);
  }
  if (others.empty()) return;
  std::vector<const plugin::HandlerInfo*> infos;
  for (const auto* instance : asked) infos.push_back(&(*instance)->info());
  const std::vector<plan::ProbeAnswer> answers = plan::probe_all(asked, others.front()->facts);
  for (size_t i = 0; i < others.size(); ++i) {
    graph::Handler unplaced; // facts have no places in a text
    unplaced.name = others[i]->name;
    if (!answers[i].error.empty()) throw Failure(plan::not_opened(unplaced, *infos[i], answers[i]));
    others[i]->facts = answers[i].facts;
  }
}

} // namespace

void apply_facts(const std::string& text, bool probe, plan::Prepared& prepared) {
  plan::Facts& facts = prepared.facts;
  const json document = kFactsFile.parse(text);
  std::vector<std::string> names;
  for (const plan::HandlerFacts& handler : facts.handlers) names.push_back(handler.name);
  for (const auto& [name, given] : document.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Failure(Error{code::unknown_handler,
                          "the facts speak of \"" + name + "\", which is no handler",
                          {},
                          {},
                          nearest_name(name, names),
                          ""});
  }
  for (plan::HandlerFacts& handler : facts.handlers)
    if (const auto at = document.find(handler.name); at != document.end()) read_handler(*at, handler);
  if (probe) probe_others(document, prepared);
  facts.probed = probe;
}

} // namespace millrace::embed
