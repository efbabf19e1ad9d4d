// Describes a handler type in words, from its declaration: ports, bodies, traits, parameters.
#include "cli/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "millrace/payload.h"
#include "plugin/info_json.h"

namespace millrace::cli {

namespace {

using nlohmann::ordered_json;
using Port = plugin::HandlerInfo::Port;
using ParamInfo = plugin::HandlerInfo::Param;

std::vector<std::string> formats_of(const Port& port) {
  std::vector<std::string> names;
  for (uint32_t i = 1; i < MR_PIXEL_COUNT; ++i)
    if (port.raw.accepts.pixel_formats >> i & 1) names.emplace_back(kPixelNames[i]);
  return names;
}

std::vector<std::string> dtypes_of(const Port& port) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kDTypes.size(); ++i)
    if (port.raw.accepts.dtypes >> i & 1) names.push_back(name_of(kDTypes[i]));
  return names;
}

std::vector<std::string> ranks_of(const Port& port) {
  std::vector<std::string> ranks;
  for (uint32_t rank = 0; rank <= MR_RANK_MAX; ++rank)
    if (port.raw.accepts.ranks >> rank & 1) ranks.push_back(std::to_string(rank));
  return ranks;
}

// The fields of records, if their type describes them: "x, y, corners[4]".
std::vector<std::string> fields_of(const Port& port) {
  std::vector<std::string> names;
  const mr_record_type* type = port.raw.accepts.records;
  for (uint32_t f = 0; type && f < type->field_count; ++f) {
    const mr_field& field = type->fields[f];
    names.push_back(field.count == 1 ? field.name : fmt::format("{}[{}]", field.name, field.count));
  }
  return names;
}

std::string memory_of(const Port& port) {
  if (port.raw.memory == MR_MEMORY_CPU) return "cpu";
  return port.raw.memory == MR_MEMORY_GPU ? "gpu" : "follows the body";
}

std::string type_of(const ParamInfo& param) {
  switch (param.raw.type) {
    case MR_PARAM_BOOL: return "bool";
    case MR_PARAM_INT: return "int";
    case MR_PARAM_FLOAT: return "float";
    case MR_PARAM_JSON: return "json";
    default: return "string";
  }
}

std::string default_of(const ParamInfo& param) {
  const mr_param_value& value = param.raw.default_value;
  switch (param.raw.type) {
    case MR_PARAM_BOOL: return value.as.boolean ? "true" : "false";
    case MR_PARAM_INT: return std::to_string(value.as.integer);
    case MR_PARAM_FLOAT: return fmt::format("{:g}", value.as.real);
    default: return param.default_text;
  }
}

std::vector<std::string> bodies_of(const plugin::HandlerInfo& info) {
  std::vector<std::string> bodies;
  if (info.has_cpu()) bodies.emplace_back("cpu");
  if (info.has_cuda()) bodies.emplace_back("cuda");
  return bodies;
}

std::vector<std::string> traits_of(const plugin::HandlerInfo& info) {
  std::vector<std::string> traits = {info.stateless() ? "stateless" : "ordered"};
  const auto add = [&](bool holds, std::string word) {
    if (holds) traits.push_back(std::move(word));
  };
  add(info.traits & MR_TRAIT_BLOCKING, "blocking");
  add(info.traits & MR_TRAIT_HOST_HEAVY, "host heavy");
  add(info.traits & MR_TRAIT_CAPTURABLE, "capturable");
  add(info.traits & MR_TRAIT_NO_ALLOCATION, "allocates nothing");
  add(info.traits & MR_TRAIT_ASYNCHRONOUS, "asynchronous");
  add(info.traits & MR_TRAIT_CONVERTS, "converts");
  add(info.max_pending > 0, fmt::format("up to {} results pending", info.max_pending));
  add(info.items_max > 0, fmt::format("up to {} items a call", info.items_max));
  add(info.has_state, "has state");
  add(info.gap > 0, fmt::format("in gaps of up to {} ticks", info.gap));
  add(info.drains_freely(), "drains freely");
  add(!info.thread.empty(), "thread \"" + info.thread + "\"");
  return traits;
}

std::string joined(const std::vector<std::string>& words, const char* separator = ", ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string port_words(const plugin::HandlerInfo& info, const Port& port, size_t width) {
  std::string words = fmt::format("  {:<{}}  {}", port.name, width, port.type_name);
  const auto add = [&](const std::string& more) { words += ", " + more; };
  if (!formats_of(port).empty()) add(joined(formats_of(port), "|"));
  if (!dtypes_of(port).empty()) add(joined(dtypes_of(port), "|"));
  if (const std::vector<std::string> ranks = ranks_of(port); !ranks.empty())
    add(joined(ranks, "|") + (ranks.size() == 1 && ranks[0] == "1" ? " dimension" : " dimensions"));
  if (!fields_of(port).empty()) add("of " + joined(fields_of(port)));
  if (port.optional())
    add(port.raw.flags & MR_PORT_IDLE_WITHOUT ? "optional, but nothing is done without it" : "optional");
  if (port.raw.flags & MR_PORT_NEWEST) add("the newest, without holding anybody up");
  if (port.raw.flags & MR_PORT_LASTING) add("lasting");
  if (port.many()) add(fmt::format("a list of up to {}", port.raw.many_max));
  if (port.raw.keeps > 0) add(fmt::format("keeps {} past values", port.raw.keeps));
  if (port.raw.memory != MR_MEMORY_FOLLOWS) add("in " + memory_of(port) + " memory");
  if (port.raw.like >= 0) {
    const std::string& other = info.ports[static_cast<size_t>(port.raw.like)].name;
    add((port.raw.flags & MR_PORT_IN_PLACE)   ? "may be written over " + other
        : (port.raw.flags & MR_PORT_FORWARDS) ? "may repeat " + other
                                              : "like " + other);
  }
  if (port.raw.flags & MR_PORT_REPEATS) add("repeats its input where the formats are equal");
  return words + (port.help.empty() ? "" : ": " + port.help) + "\n";
}

std::string range_words(const ParamInfo& param) {
  if (!(param.raw.flags & MR_PARAM_HAS_RANGE)) return "";
  if (std::isinf(param.raw.max)) return fmt::format("at least {:.12g}", param.raw.min);
  if (std::isinf(param.raw.min)) return fmt::format("at most {:.12g}", param.raw.max);
  return fmt::format("{:.12g} to {:.12g}", param.raw.min, param.raw.max);
}

// The parameter's role in a converter: "pixels", "turn", "width"; "" if it has none.
std::string role_of(const ParamInfo& param) {
  constexpr std::array<const char*, MR_ROLE_COUNT> kNames = {"",     "pixels", "matrix", "range",
                                                             "turn", "width",  "height"};
  return param.raw.role < kNames.size() ? kNames[param.raw.role] : "";
}

std::string param_words(const ParamInfo& param, size_t width) {
  std::string words = fmt::format("  {:<{}}  {}", param.name, width, type_of(param));
  if (param.required())
    words += ", required";
  else
    words += " = " + (default_of(param).empty() ? "\"\"" : default_of(param));
  if (!param.unit.empty()) words += " " + param.unit;
  if (!range_words(param).empty()) words += ", " + range_words(param);
  if (!param.choices.empty()) words += ", one of " + joined(param.choices, "|");
  if (param.live()) words += ", live";
  if (!role_of(param).empty()) words += ", says the " + role_of(param);
  if (param.owns()) words += ", owns the " + param.object;
  if (param.joins()) words += ", joins the " + param.object;
  return words + (param.help.empty() ? "" : ": " + param.help) + "\n";
}

ordered_json port_json(const plugin::HandlerInfo& info, const Port& port) {
  ordered_json json = {{"name", port.name},
                       {"type", port.type_name},
                       {"formats", formats_of(port)},
                       {"memory", port.raw.memory == MR_MEMORY_FOLLOWS ? "follows" : memory_of(port)}};
  if (!dtypes_of(port).empty()) json["dtypes"] = dtypes_of(port);
  for (const std::string& rank : ranks_of(port)) json["ranks"].push_back(std::stoi(rank));
  if (!fields_of(port).empty()) json["fields"] = fields_of(port);
  if (port.is_input()) {
    json["optional"] = port.optional();
    if (port.raw.flags & MR_PORT_IDLE_WITHOUT) json["idle_without"] = true;
    if (port.raw.flags & MR_PORT_NEWEST) json["newest"] = true;
    json["list"] = port.many();
    if (port.many()) json["list_max"] = port.raw.many_max;
    if (port.raw.keeps > 0) json["keeps"] = port.raw.keeps;
  } else if (port.raw.like >= 0) {
    json["like"] = info.ports[static_cast<size_t>(port.raw.like)].name;
    json["forwards"] = (port.raw.flags & MR_PORT_FORWARDS) != 0;
    json["in_place"] = (port.raw.flags & MR_PORT_IN_PLACE) != 0;
  }
  json["help"] = port.help;
  return json;
}

ordered_json param_json(const ParamInfo& param) {
  ordered_json json = {{"name", param.name}, {"type", type_of(param)}, {"required", param.required()}};
  if (!param.required()) json["default"] = plugin::to_json(param, param.raw.default_value, param.default_text);
  if (param.raw.flags & MR_PARAM_HAS_RANGE) {
    if (std::isfinite(param.raw.min)) json["min"] = param.raw.min;
    if (std::isfinite(param.raw.max)) json["max"] = param.raw.max;
  }
  json["unit"] = param.unit;
  json["choices"] = param.choices;
  json["live"] = param.live();
  if (!role_of(param).empty()) json["says"] = role_of(param);
  if (param.owns()) json["owns"] = param.object;
  if (param.joins()) json["joins"] = param.object;
  json["help"] = param.help;
  return json;
}

// The last indented line of the manual, if it is a pipeline with this type in it.
std::string manual_snippet(const plugin::HandlerInfo& info) {
  const size_t begin = info.manual.rfind("\n    ");
  if (begin == std::string::npos) return "";
  const std::string line = info.manual.substr(begin + 5, info.manual.find('\n', begin + 1) - begin - 5);
  const bool whole = line.find(info.type) != std::string::npos && line.find(" ! ") != std::string::npos;
  return whole && line[0] != ' ' ? line : "";
}

// A source or a sink for the payload that a port carries, so that an example is complete; "" if none fits.
std::string partner(const Port& port, bool source) {
  if (!source) return "null.sink";
  switch (port.raw.accepts.kind) {
    case MR_KIND_ANY:
    case MR_KIND_IMAGE: return "test.pattern";
    case MR_KIND_TENSOR: return "test.number";
    default: return "";
  }
}

std::string offers_words(const std::vector<Offer>& offers) {
  size_t width = 0;
  for (const Offer& offer : offers) width = std::max(width, offer.name.size());
  std::string text, part;
  for (const Offer& offer : offers) {
    if (text.empty() || offer.part != part) text += "  " + offer.part + "\n";
    part = offer.part;
    text += offer.words.empty() ? "    " + offer.name + "\n"
                                : fmt::format("    {:<{}}  {}\n", offer.name, width, offer.words);
  }
  return text;
}

} // namespace

std::vector<Offer> offers_of(const plugin::RegisteredType& info) {
  std::vector<Offer> offers;
  if (!info.table->offers) return offers;
  info.table->offers(&offers, [](void* context, const char* part, const char* name, const char* words) {
    static_cast<std::vector<Offer>*>(context)->push_back({part, name, words});
  });
  // Offers of one part stand together; parts and offers keep the order in which the type listed them.
  std::vector<std::string> parts;
  for (const Offer& offer : offers)
    if (std::find(parts.begin(), parts.end(), offer.part) == parts.end()) parts.push_back(offer.part);
  std::stable_sort(offers.begin(), offers.end(), [&](const Offer& a, const Offer& b) {
    return std::find(parts.begin(), parts.end(), a.part) < std::find(parts.begin(), parts.end(), b.part);
  });
  return offers;
}

std::string example_line(const plugin::HandlerInfo& info) {
  if (std::string snippet = manual_snippet(info); !snippet.empty()) return snippet;
  std::string words = info.type;
  for (const ParamInfo& param : info.params) {
    if (!param.required()) continue;
    const std::string value = !param.choices.empty() ? param.choices[0] : param.name == "path" ? "FILE" : "VALUE";
    words += " " + param.name + "=" + value;
  }
  const Port* first_input = nullptr;
  const Port* first_output = nullptr;
  size_t required = 0;
  for (const Port& port : info.ports) {
    if (port.is_input() && !port.optional()) ++required;
    if (port.is_input() && !first_input) first_input = &port;
    if (!port.is_input() && !first_output) first_output = &port;
  }
  if (required > 1) return words; // needs a file: a line joins one output to one input
  if (first_input && !partner(*first_input, true).empty()) words = partner(*first_input, true) + " ! " + words;
  if (first_output) words += " ! " + partner(*first_output, false);
  return words;
}

std::string describe_text(const plugin::RegisteredType& info) {
  std::string text = info.type + ": " + info.summary + "\n";
  text += "from " + info.plugin + (info.path.empty() ? " (built in)" : " (" + info.path + ")") + "\n";
  text += "bodies: " + joined(bodies_of(info)) + "; " + joined(traits_of(info)) + "\n";
  size_t width = 0;
  for (const Port& port : info.ports) width = std::max(width, port.name.size());
  for (const bool inputs : {true, false}) {
    std::string ports;
    for (const Port& port : info.ports)
      if (port.is_input() == inputs) ports += port_words(info, port, width);
    if (!ports.empty()) text += (inputs ? "\ninputs\n" : "\noutputs\n") + ports;
  }
  width = 0;
  for (const ParamInfo& param : info.params) width = std::max(width, param.name.size());
  if (!info.params.empty()) text += "\nparameters\n";
  for (const ParamInfo& param : info.params) text += param_words(param, width);
  if (const std::vector<Offer> offers = offers_of(info); !offers.empty())
    text += "\non this machine\n" + offers_words(offers);
  const size_t begin = info.manual.find_first_not_of('\n');
  if (begin != std::string::npos) text += "\n" + info.manual.substr(begin);
  if (text.back() != '\n') text += '\n';
  if (manual_snippet(info).empty()) text += "\nexample: " + example_line(info) + "\n";
  return text;
}

namespace {

ordered_json declared(const plugin::HandlerInfo& info) {
  ordered_json json = {
      {"type", info.type},         {"summary", info.summary},   {"plugin", info.plugin},          {"path", info.path},
      {"bodies", bodies_of(info)}, {"traits", traits_of(info)}, {"max_pending", info.max_pending}};
  json["inputs"] = ordered_json::array();
  json["outputs"] = ordered_json::array();
  json["parameters"] = ordered_json::array();
  for (const Port& port : info.ports) json[port.is_input() ? "inputs" : "outputs"].push_back(port_json(info, port));
  for (const ParamInfo& param : info.params) json["parameters"].push_back(param_json(param));
  return json;
}

} // namespace

std::string declaration_json(const plugin::HandlerInfo& info) {
  return declared(info).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string describe_json(const plugin::RegisteredType& info) {
  ordered_json json = declared(info);
  json["offers"] = ordered_json::array();
  for (const Offer& offer : offers_of(info))
    json["offers"].push_back({{"part", offer.part}, {"name", offer.name}, {"words", offer.words}});
  json["manual"] = info.manual;
  json["example"] = example_line(info);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace millrace::cli
