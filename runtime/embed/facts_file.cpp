// Reads facts from JSON and checks every name in them against the handlers.
#include "embed/facts_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph/quantity.h"
#include "millrace/payload.h"

namespace millrace::embed {

namespace {

using nlohmann::json;

// The largest picture that a fact may speak of; also keeps sizes in bytes within 64 bits.
constexpr int64_t kPixelsMax = 65536;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Failure(Error{110, "the facts cannot be used: " + where + " " + what, {}, {}, "", ""});
}

void only_keys(const json& object, const std::string& where, const std::vector<std::string>& keys) {
  if (!object.is_object()) refuse(where, "is no object");
  for (const auto& [key, value] : object.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw Failure(
          Error{110, "the facts have an unknown key \"" + key + "\" in " + where, {}, {}, nearest_name(key, keys), ""});
}

int64_t whole(const json& object, const char* key, int64_t min, int64_t max, const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end()) refuse(where, std::string("lacks ") + key);
  if (!at->is_number_integer() || at->get<int64_t>() < min || at->get<int64_t>() > max)
    refuse(where + "." + key, "is no whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return at->get<int64_t>();
}

Pixel pixel_of(const json& object, const std::string& where) {
  const auto at = object.find("pixel_format");
  if (at == object.end() || !at->is_string()) refuse(where, "lacks pixel_format");
  const std::vector<std::string> names(kPixelNames.begin() + 1, kPixelNames.end());
  const auto name = std::find(names.begin(), names.end(), at->get<std::string>());
  if (name != names.end()) return static_cast<Pixel>(name - names.begin() + 1);
  throw Failure(Error{110,
                      "the facts name an unknown pixel format \"" + at->get<std::string>() + "\" in " + where,
                      {},
                      {},
                      nearest_name(at->get<std::string>(), names),
                      ""});
}

void read_outputs(const json& outputs, plan::Prepared& prepared) {
  const plugin::HandlerInfo& info = prepared.instance->info();
  std::vector<std::string> names;
  for (const auto& port : info.ports) {
    if (port.is_input()) continue;
    names.push_back(port.name);
    prepared.outputs.push_back(port.raw.accepts);
    prepared.outputs.back().size = sizeof(mr_format);
  }
  only_keys(outputs, prepared.name + ".outputs", names);
  if (outputs.size() != names.size()) refuse(prepared.name + ".outputs", "does not name every output");
  for (size_t o = 0; o < names.size(); ++o) {
    const json& given = outputs.at(names[o]);
    const std::string where = prepared.name + ".outputs." + names[o];
    only_keys(given, where, {"pixel_format", "width", "height"});
    mr_format& format = prepared.outputs[o];
    format.kind = MR_KIND_IMAGE;
    format.schema = schema_of(Image::kSchema);
    format.pixel_formats = bit_of(pixel_of(given, where));
    format.width = static_cast<uint32_t>(whole(given, "width", 1, kPixelsMax, where));
    format.height = static_cast<uint32_t>(whole(given, "height", 1, kPixelsMax, where));
    format.size_kind = MR_DIM_FIXED;
  }
}

void read_handler(const json& given, plan::Prepared& prepared) {
  only_keys(given, prepared.name, {"rate", "live", "tick_count", "outputs"});
  if (const auto at = given.find("rate"); at != given.end()) {
    const auto rate = graph::read_rate(at->is_string() ? at->get<std::string>() : at->dump());
    if (!rate) refuse(prepared.name + ".rate", "is no rate such as 30 or \"30000/1001\"");
    prepared.facts.rate_num = rate->numerator;
    prepared.facts.rate_den = rate->denominator;
  }
  if (const auto at = given.find("live"); at != given.end()) {
    if (!at->is_boolean()) refuse(prepared.name + ".live", "is neither true nor false");
    prepared.facts.live = at->get<bool>() ? 1 : 0;
  }
  if (given.contains("tick_count"))
    prepared.facts.tick_count = whole(given, "tick_count", -1, INT64_MAX, prepared.name);
  if (const auto at = given.find("outputs"); at != given.end()) read_outputs(*at, prepared);
}

void probe_handler(plan::Prepared& prepared) {
  if (prepared.instance->probe(prepared.facts) == MR_OK) return;
  const std::string type = prepared.instance->info().type;
  throw Failure(604, prepared.name + " (" + type + ") could not be opened: " + prepared.instance->error());
}

} // namespace

void apply_facts(const std::string& text, bool probe, plan::Facts& facts) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) refuse("the text", "is not JSON");
  if (!document.is_object()) refuse("the text", "is no object of handlers");
  std::vector<std::string> names;
  for (const plan::Prepared& prepared : facts.handlers) names.push_back(prepared.name);
  for (const auto& [name, given] : document.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Failure(Error{
          301, "the facts speak of \"" + name + "\", which is no handler", {}, {}, nearest_name(name, names), ""});
  }
  for (plan::Prepared& prepared : facts.handlers) {
    if (const auto at = document.find(prepared.name); at != document.end())
      read_handler(*at, prepared);
    else if (probe)
      probe_handler(prepared);
  }
  facts.probed = probe;
}

} // namespace millrace::embed
