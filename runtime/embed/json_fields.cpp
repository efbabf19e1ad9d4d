// See json_fields.h.
#include "embed/json_fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace::embed {

using nlohmann::json;

json JsonFields::parse(const std::string& text) const {
  json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) refuse("the text", "is not JSON");
  if (!document.is_object()) refuse("the text", "is no object");
  return document;
}

void JsonFields::refuse(const std::string& where, const std::string& what) const {
  throw Failure(Error{code_, what_ + ": " + where + " " + what, {}, {}, "", ""});
}

void JsonFields::refuse_name(const std::string& what, const std::string& name,
                             const std::vector<std::string>& known) const {
  throw Failure(Error{code_, what_ + ": " + what + " \"" + name + "\"", {}, {}, nearest_name(name, known), ""});
}

void JsonFields::only_keys(const json& object, const std::string& where, const std::vector<std::string>& keys) const {
  if (!object.is_object()) refuse(where, "is no object");
  for (const auto& [key, value] : object.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      refuse_name("in " + where + ", the unknown key", key, keys);
}

int64_t JsonFields::whole(const json& object, const char* key, int64_t min, int64_t max,
                          const std::string& where) const {
  const auto at = object.find(key);
  if (at == object.end()) refuse(where, std::string("lacks ") + key);
  if (!at->is_number_integer() || at->get<int64_t>() < min || at->get<int64_t>() > max)
    refuse(where + "." + key, "is no whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return at->get<int64_t>();
}

std::optional<double> JsonFields::number(const json& object, const char* key, double min, double max,
                                         const std::string& where) const {
  const auto at = object.find(key);
  if (at == object.end()) return std::nullopt;
  if (!at->is_number() || at->get<double>() < min || at->get<double>() > max)
    refuse(where + "." + key, fmt::format("is no number from {} to {}", min, max));
  return at->get<double>();
}

std::optional<std::string> JsonFields::text(const json& object, const char* key, const std::string& where) const {
  const auto at = object.find(key);
  if (at == object.end()) return std::nullopt;
  if (!at->is_string()) refuse(where + "." + key, "is no text");
  return at->get<std::string>();
}

std::optional<bool> JsonFields::flag(const json& object, const char* key, const std::string& where) const {
  const auto at = object.find(key);
  if (at == object.end()) return std::nullopt;
  if (!at->is_boolean()) refuse(where + "." + key, "is neither true nor false");
  return at->get<bool>();
}

} // namespace millrace::embed
