// `millrace handlers`, `inspect` and `explain`: list the handler types, describe one, and explain an error code.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "compose/plugins.h"
#include "embed/app_handlers.h"
#include "observe/error_codes.h"

namespace millrace::cli {

namespace {

constexpr size_t kColumns = 80; // explanations are read in a terminal

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

// The code that was probably meant: that with letters read as the digits that they look like, else the nearest one of
// its family, else the nearest by name.
std::string nearest_code(const std::string& text) {
  std::string digits;
  for (char c : text) digits += c == 'O' || c == 'o' ? '0' : c == 'l' || c == 'I' ? '1' : c;
  if (find_code(parse_code(digits))) return format_code(parse_code(digits));
  std::vector<std::string> names;
  for (const CodeInfo& known : error_codes()) names.push_back(format_code(known.code));
  const int code = parse_code(digits);
  if (code == 0) return nearest_name(text, names);
  const CodeInfo* best = nullptr;
  for (const CodeInfo& known : error_codes())
    if (known.code / 100 == code / 100 && (!best || std::abs(known.code - code) < std::abs(best->code - code)))
      best = &known;
  return best ? format_code(best->code) : nearest_name(format_code(code), names);
}

// One code, or all.
std::string codes_json(const CodeInfo* one) {
  using nlohmann::ordered_json;
  ordered_json json = {{"version", 1}, {"codes", ordered_json::array()}};
  for (const CodeInfo& known : error_codes()) {
    if (one && one->code != known.code) continue;
    json["codes"].push_back({{"code", format_code(known.code)},
                             {"number", known.code},
                             {"name", known.name},
                             {"title", known.title},
                             {"explanation", known.explanation},
                             {"exit_code", exit_code_of(Error{known.code, "", {}, {}, "", ""})}});
  }
  return json.dump(2) + "\n";
}

} // namespace

int handlers(const ListCommand& command) {
  plugin::Registry registry;
  compose::scan_plugins(registry, command.plugin_paths);
  write_file("-", command.json ? handlers_json(registry) : handlers_text(registry));
  return kDone;
}

int inspect(const ListCommand& command) {
  plugin::Registry registry;
  registry.add(embed::app_plugin(), ""); // for applications: no command runs these, so `handlers` does not list them
  compose::scan_for(registry, command.type, command.plugin_paths);
  const plugin::RegisteredType& info = compose::require_type(registry, command.type, "inspect");
  write_file("-", command.json ? describe_json(info) : describe_text(info));
  return kDone;
}

int explain(const ExplainCommand& command) {
  const CodeInfo* info = find_code(parse_code(command.code));
  if (!command.code.empty() && !info) {
    const std::string nearest = nearest_code(command.code);
    throw Failure(Error{code::unknown_error_code,
                        "there is no error code \"" + command.code + "\"",
                        {},
                        {},
                        nearest,
                        nearest.empty() ? "`millrace explain` lists all codes" : "millrace explain " + nearest});
  }
  if (command.json)
    write_file("-", codes_json(info));
  else if (info)
    write_file("-", format_code(info->code) + ": " + info->title + "\n\n" + wrapped(info->explanation));
  else
    for (const CodeInfo& known : error_codes()) write_file("-", format_code(known.code) + "  " + known.title + "\n");
  return kDone;
}

} // namespace millrace::cli
