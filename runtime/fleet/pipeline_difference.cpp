// Compares two pipelines key by key; see pipeline_difference.h.
#include "fleet/pipeline_difference.h"

#include <algorithm>
#include <map>

#include "observe/secrets.h"

namespace millrace::fleet {

namespace {

constexpr const char* kMissing = "not given";

struct Key {
  std::string path;
  std::string value; // "": the keys below it follow
};

// Canonical form has a key a line, and two blanks for each level.
std::vector<Key> keys_of(std::string_view text) {
  std::vector<Key> keys;
  std::vector<std::string> above;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const size_t colon = line.find(": ", indent);
    const bool has_value = colon != std::string_view::npos;
    const std::string_view name = line.substr(indent, has_value ? colon - indent : line.size() - indent);
    if (name.empty()) continue;
    above.resize(std::min(above.size(), indent / 2));
    above.emplace_back(has_value ? name : name.substr(0, name.find_last_of(':')));
    std::string path;
    for (const std::string& part : above) path += (path.empty() ? "" : ".") + part;
    // As --set has it.
    if (constexpr std::string_view kHandlers = "handlers."; path.starts_with(kHandlers))
      path.erase(0, kHandlers.size());
    keys.push_back({path, std::string(has_value ? line.substr(colon + 2) : "")});
  }
  return keys;
}

std::map<std::string, std::string> by_path(const std::vector<Key>& keys) {
  std::map<std::string, std::string> map;
  for (const Key& key : keys) map.emplace(key.path, key.value);
  return map;
}

std::string shown(const std::string& given) {
  if (given.empty()) return "given";
  const std::string value = without_secrets(given);
  return value.size() <= kShownValueBytesMax ? value : value.substr(0, kShownValueBytesMax) + "…";
}

} // namespace

std::vector<std::string> pipeline_difference(const PipelineOfNode& left, const PipelineOfNode& right) {
  const std::vector<Key> left_keys = keys_of(left.text), right_keys = keys_of(right.text);
  const std::map<std::string, std::string> left_values = by_path(left_keys), right_values = by_path(right_keys);
  std::vector<std::string> lines;
  std::string missing; // a key that is missing as a whole: those below it are not told
  const auto tell = [&](const Key& key, const std::string& on_left, const std::string& on_right) {
    if (!missing.empty() && key.path.starts_with(missing + ".")) return;
    if (on_left == kMissing || on_right == kMissing) missing = key.path;
    const bool is_hidden = on_left == on_right; // a password, or the end of a long value
    lines.push_back(key.path + ": " + on_left + " on " + left.node + ", " + on_right + " on " + right.node +
                    (is_hidden ? "; they differ in what is not shown" : ""));
  };
  for (const Key& key : left_keys) {
    const auto other = right_values.find(key.path);
    if (other == right_values.end())
      tell(key, shown(key.value), kMissing);
    else if (other->second != key.value)
      tell(key, shown(key.value), shown(other->second));
  }
  for (const Key& key : right_keys)
    if (!left_values.contains(key.path)) tell(key, kMissing, shown(key.value));
  if (lines.size() > kDifferencesMax) {
    const size_t more = lines.size() - kDifferencesMax;
    lines.resize(kDifferencesMax);
    lines.push_back("and " + std::to_string(more) + " more");
  }
  return lines;
}

} // namespace millrace::fleet
