// `millrace handlers`, `inspect` and `explain`: what there is, and what it means.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/exit_code.h"
#include "cli/pipeline.h"
#include "cli/plugins.h"
#include "observe/error_codes.h"

namespace millrace::cli {

namespace {

constexpr size_t kColumns = 80; // an explanation is read in a terminal

std::string handlers_text(const plugin::Registry& registry) {
  std::string text;
  for (const plugin::LoadFailure& failure : registry.failures()) {
    text += fmt::format("failed  {}\n  {}: {}\n", failure.path, format_code(failure.error.code), failure.error.what);
    for (const std::string& note : failure.error.notes) text += "  " + note + "\n";
  }
  if (!text.empty()) text += "\n";
  size_t width = 0;
  for (const plugin::HandlerInfo* info : registry.all()) width = std::max(width, info->type.size());
  for (const plugin::HandlerInfo* info : registry.all())
    text += fmt::format("{:<{}}  {}\n", info->type, width, info->summary);
  return text;
}

std::string handlers_json(const plugin::Registry& registry) {
  using nlohmann::ordered_json;
  ordered_json json = {{"version", 1}, {"failed", ordered_json::array()}, {"handlers", ordered_json::array()}};
  for (const plugin::LoadFailure& failure : registry.failures())
    json["failed"].push_back({{"path", failure.path},
                              {"code", format_code(failure.error.code)},
                              {"what", failure.error.what},
                              {"notes", failure.error.notes}});
  for (const plugin::HandlerInfo* info : registry.all())
    json["handlers"].push_back(
        {{"type", info->type}, {"summary", info->summary}, {"plugin", info->plugin}, {"path", info->path}});
  return json.dump(2) + "\n";
}

std::string wrapped(const std::string& words) {
  std::string text;
  size_t column = 0;
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    if (column > 0 && column + 1 + word.size() > kColumns) {
      text += '\n';
      column = 0;
    }
    if (column > 0) text += ' ';
    column += (column > 0) + word.size();
    text += word;
    begin = end + 1;
  }
  return text + "\n";
}

} // namespace

int handlers(const ListCommand& command) {
  plugin::Registry registry;
  scan_plugins(registry, command.plugin_paths);
  write_file("-", command.json ? handlers_json(registry) : handlers_text(registry));
  return kDone;
}

int inspect(const ListCommand& command) {
  plugin::Registry registry;
  scan_plugins(registry, command.plugin_paths);
  if (const plugin::HandlerInfo* info = registry.find(command.type)) {
    write_file("-", command.json ? describe_json(*info) : describe_text(*info));
    return kDone;
  }
  std::vector<std::string> names;
  for (const plugin::HandlerInfo* info : registry.all()) names.push_back(info->type);
  Error error{106, "the handler type \"" + command.type + "\" is not known", {}, {}, "", ""};
  if (missing_by_failure(registry, command.type)) {
    for (const plugin::LoadFailure& failure : registry.failures())
      error.notes.push_back("a plugin could not be loaded: " + failure.path + ": " + failure.error.what);
    throw PluginMissing(std::move(error));
  }
  error.nearest = nearest_name(command.type, names);
  if (!error.nearest.empty()) error.edit = "millrace inspect " + error.nearest;
  throw Failure(std::move(error));
}

int explain(const std::string& code) {
  const CodeInfo* info = find_code(parse_code(code));
  if (!info) {
    std::vector<std::string> names;
    for (const CodeInfo& known : error_codes()) names.push_back(format_code(known.code));
    throw Failure(Error{107, "there is no error code \"" + code + "\"", {}, {}, nearest_name(code, names), ""});
  }
  write_file("-", format_code(info->code) + ": " + info->title + "\n\n" + wrapped(info->explanation));
  return kDone;
}

} // namespace millrace::cli
