// `millrace check-handler`: each check in a process of its own, so that a crash, or a call that never returns, is a
// finding like any other.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/count_allocations.h"
#include "cli/describe.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/subprocess.h"
#include "compose/plugins.h"
#include "graph/graph.h"
#include "millrace/check_handler.h"
#include "observe/error_codes.h"
#include "observe/printable.h"
#include "observe/secrets.h"

namespace millrace::cli {
namespace fs = std::filesystem;

namespace {

using testing::HandlerCheck;
using testing::Verdict;

// A folder for files that the handler writes; removed when the command ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "millrace-check-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw Failure(code::write_failed, "cannot make a folder like " + pattern);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::vector<testing::Setting> given_settings(const plugin::RegisteredType& info, const std::vector<std::string>& sets) {
  std::vector<testing::Setting> settings;
  const mr_host host = plugin::basic_host();
  plugin::Instance instance(info, host, info.type);
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos)
      throw Failure(Error{code::unreadable_assignment,
                          "'" + set + "' assigns nothing",
                          {},
                          {"expected parameter=value"},
                          "",
                          "--set path=out.raw"});
    settings.push_back({set.substr(0, equals), set.substr(equals + 1)});
    instance.set_param(settings.back().name, settings.back().text, {"--set " + set, 0, 0});
  }
  return settings;
}

bool has(const std::vector<testing::Setting>& settings, const std::string& name) {
  return std::any_of(settings.begin(), settings.end(), [&](const auto& setting) { return setting.name == name; });
}

// Adds the settings of the manual's example, whose author knows what the handler needs. Files that the handler writes
// go to `folder`.
std::vector<testing::Setting> with_example(const plugin::RegisteredType& info, std::vector<testing::Setting> settings,
                                           const fs::path& folder) {
  graph::Graph graph;
  try {
    graph = graph::parse_line(example_line(info));
  } catch (const Failure&) {
    return settings; // the manual of a plugin may hold anything
  }
  for (const graph::Handler& handler : graph.handlers) {
    if (handler.type != info.type) continue;
    for (const graph::Param& param : handler.params) {
      if (has(settings, param.name)) continue;
      const bool written = param.name == "path" && !info.is_source();
      settings.push_back({param.name, written ? (folder / fs::path(param.text).filename()).string() : param.text});
    }
    break;
  }
  return settings;
}

// Adds a file to write to if the handler requires one. Refuses to guess any other required parameter.
std::vector<testing::Setting> with_required(const plugin::RegisteredType& info, std::vector<testing::Setting> settings,
                                            const fs::path& folder) {
  for (const plugin::RegisteredType::Param& param : info.params) {
    if (!param.required() || has(settings, param.name)) continue;
    if (param.name != "path" || info.is_source())
      throw Failure(Error{code::handler_not_checkable,
                          info.type + " cannot be checked without its parameter " + param.name,
                          {},
                          {param.name + ": " + param.help},
                          "",
                          "--set " + param.name + "=…"});
    settings.push_back({param.name, (folder / "written").string()});
  }
  return settings;
}

testing::Finding finding_of(const Subprocess& apart, int seconds_max) {
  if (!apart.in_time)
    return {Verdict::fail, fmt::format("it did not return within {} s, even when interrupted", seconds_max)};
  if (apart.signal) return {Verdict::fail, fmt::format("it died: {}", strsignal(apart.signal))};
  if (apart.told.empty()) return {Verdict::fail, fmt::format("it ended the process with status {}", apart.status)};
  return {static_cast<Verdict>(apart.told[0] - '0'), apart.told.substr(1)};
}

// Runs checks until one of them hangs: each further one would take as long again.
class Checker {
 public:
  explicit Checker(const CheckHandlerCommand& command) : command_(command) {}

  testing::Finding check(const HandlerCheck& check, const testing::Subject& subject);

 private:
  const CheckHandlerCommand& command_;
  const HandlerCheck* hung_ = nullptr;
  testing::Finding found_; // the finding of the check that hung
};

testing::Finding Checker::check(const HandlerCheck& check, const testing::Subject& subject) {
  if (&check == hung_) return found_; // subject_of() has run it already
  if (hung_) return {Verdict::skipped, fmt::format("not made, because '{}' did not return", hung_->name)};
  if (command_.in_process) return check.run(subject);
  const auto told = [&] {
    const testing::Finding found = check.run(subject);
    return std::to_string(static_cast<int>(found.verdict)) + found.reason;
  };
  const Subprocess apart = run_in_subprocess(told, command_.seconds_max, false);
  const testing::Finding found = finding_of(apart, command_.seconds_max);
  if (!apart.in_time) {
    hung_ = &check;
    found_ = found;
  }
  return found;
}

// The handler with its defaults if it works so, else with the settings of its manual's example.
testing::Subject subject_of(const plugin::RegisteredType& info, const std::vector<testing::Setting>& given,
                            const fs::path& folder, Checker& checker) {
  const auto works = std::find_if(testing::kHandlerChecks.begin(), testing::kHandlerChecks.end(),
                                  [](const HandlerCheck& check) { return std::string_view(check.name) == "works"; });
  testing::Subject plain{*info.table, {}, allocation_counter()}, example = plain;
  example.settings = with_required(info, with_example(info, given, folder), folder);
  const bool needs_example = std::any_of(info.params.begin(), info.params.end(), [&](const auto& param) {
    return param.required() && !has(given, param.name) && has(example.settings, param.name);
  });
  if (needs_example) return example;
  plain.settings = given;
  if (checker.check(*works, plain).verdict != Verdict::fail) return plain;
  return checker.check(*works, example).verdict == Verdict::fail ? plain : example;
}

const char* word_of(Verdict verdict) {
  return verdict == Verdict::pass ? "pass" : verdict == Verdict::fail ? "FAIL" : "skipped";
}

struct Checked {
  const HandlerCheck* check;
  testing::Finding found;
};

std::string line_of(const Checked& one) {
  std::string line = fmt::format("{:<7}  {:<16}  {}", word_of(one.found.verdict), one.check->name, one.check->sentence);
  if (!one.found.reason.empty()) line += "\n                           " + printable(one.found.reason);
  return line + "\n";
}

std::string settings_line(const plugin::RegisteredType& info, const std::vector<testing::Setting>& settings) {
  std::string line = info.type;
  for (const testing::Setting& setting : settings) line += " " + setting.name + "=" + setting.text;
  return without_secrets(line) + "\n";
}

std::string json_of(const plugin::RegisteredType& info, const std::vector<Checked>& checked) {
  using nlohmann::ordered_json;
  ordered_json json = {{"version", 1}, {"type", info.type}, {"plugin", info.plugin}, {"checks", ordered_json::array()}};
  for (const Checked& one : checked)
    json["checks"].push_back({{"name", one.check->name},
                              {"sentence", one.check->sentence},
                              {"verdict", word_of(one.found.verdict)},
                              {"reason", one.found.reason}});
  hide_secrets(json);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace

int check_handler(const CheckHandlerCommand& command) {
  plugin::Registry registry;
  compose::scan_for(registry, command.type, command.plugin_paths);
  const plugin::RegisteredType& info = compose::require_type(registry, command.type, "check-handler");
  const TemporaryFolder folder;
  Checker checker(command);
  const testing::Subject subject = subject_of(info, given_settings(info, command.sets), folder.path(), checker);

  if (!command.json && !subject.settings.empty()) write_file("-", settings_line(info, subject.settings));
  std::vector<Checked> checked;
  for (const HandlerCheck& check : testing::kHandlerChecks) {
    checked.push_back({&check, checker.check(check, subject)});
    if (!command.json) write_file("-", line_of(checked.back()));
  }
  const auto count = [&](Verdict verdict) {
    return std::count_if(checked.begin(), checked.end(),
                         [&](const Checked& one) { return one.found.verdict == verdict; });
  };
  const auto failed = count(Verdict::fail);
  if (command.json)
    write_file("-", json_of(info, checked));
  else
    write_file("-", fmt::format("{}: {} passed, {} failed, {} skipped\n", info.type, count(Verdict::pass), failed,
                                count(Verdict::skipped)));
  return failed == 0 ? kDone : kRunFailed;
}

} // namespace millrace::cli
