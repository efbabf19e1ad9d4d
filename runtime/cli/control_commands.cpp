// `millrace set` and `stop`: change and end a run on this machine, over its control socket.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/pipeline.h"
#include "observe/error.h"
#include "observe/printable.h"
#include "serve/client.h"
#include "serve/message.h"
#include "serve/run_folder.h"

namespace millrace::cli {

namespace {

using nlohmann::ordered_json;

// A run answers within a millisecond. One that the system has stopped answers never.
constexpr int kHelloWithinMs = 2000;
// A stream that is added is answered once its camera has answered.
constexpr int kStreamWithinMs = 60'000;
// A change is answered when the next tick begins.
constexpr int kTickWithinMs = 5000;

// A run that listens on this machine.
struct FoundRun {
  pid_t process = 0;
  serve::ControlClient client;
  ordered_json hello; // null: it did not answer
  std::string name() const { return hello.is_null() ? "" : printable(hello.value("pipeline", "")); }
};

std::string words_of(const FoundRun& run) {
  if (run.hello.is_null()) return fmt::format("{}  does not answer", run.process);
  const std::string node = printable(run.hello.value("node", ""));
  return fmt::format("{}  {}{}  runs for {:.0f} s", run.process, run.name(), node.empty() ? "" : ", node " + node,
                     run.hello.value("elapsed_s", 0.0));
}

std::vector<FoundRun> find_runs(std::vector<std::string>& complaints) {
  std::vector<FoundRun> runs;
  for (const serve::RunSocket& socket : serve::find_sockets(complaints)) {
    std::optional<serve::ControlClient> client = serve::ControlClient::dial(socket.path);
    if (!client) continue;
    ordered_json hello;
    try {
      const ordered_json params = {{"protocol", serve::kProtocol}, {"role", "steer"}};
      hello = client->call("hello", params, kHelloWithinMs).value_or(nullptr);
    } catch (const Failure& failure) {
      complaints.push_back(fmt::format("process {}: {}", socket.process, failure.error().what));
      continue;
    }
    runs.push_back({socket.process, std::move(*client), std::move(hello)});
  }
  return runs;
}

bool is_meant(const FoundRun& run, const std::string& asked) {
  return asked.empty() || asked == std::to_string(run.process) || asked == run.name();
}

[[noreturn]] void refuse_choice(const std::string& asked, const std::string& command, const std::vector<FoundRun>& runs,
                                size_t meant, std::vector<std::string> notes) {
  Error error{code::no_such_run, "", {}, {}, "", ""};
  std::vector<std::string> names;
  for (const FoundRun& run : runs) {
    names.push_back(run.name());
    if (meant == 0 || is_meant(run, asked)) error.notes.push_back(words_of(run));
  }
  const std::string named = "\"" + printable(asked) + "\"";
  if (runs.empty()) {
    error.what = "no run of this user is on this machine";
    error.notes.push_back("a run with `--control off` is not found");
  } else if (meant == 0) {
    error.what = "no run here is of a pipeline or process " + named;
    error.nearest = nearest_name(asked, names);
    if (!error.nearest.empty()) error.edit = "millrace " + command + " -p " + error.nearest;
  } else {
    error.what = asked.empty() ? fmt::format("{} runs are here, and -p has to say which one", meant)
                               : fmt::format("{} runs are called {}, and -p has to name a process", meant, named);
    const auto first =
        std::find_if(runs.begin(), runs.end(), [&](const FoundRun& run) { return is_meant(run, asked); });
    error.edit = fmt::format("millrace {} -p {}", command, first->process);
  }
  error.notes.insert(error.notes.end(), notes.begin(), notes.end());
  throw Failure(std::move(error));
}

// The run that -p means. Throws Failure: MR0116 if there is no such run or several, MR0117 if it does not answer.
FoundRun choose_run(const std::string& asked, const std::string& command) {
  std::vector<std::string> complaints;
  std::vector<FoundRun> runs = find_runs(complaints);
  const auto meant = [&](const FoundRun& run) { return is_meant(run, asked); };
  const auto count = static_cast<size_t>(std::count_if(runs.begin(), runs.end(), meant));
  if (count != 1) refuse_choice(asked, command, runs, count, std::move(complaints));
  FoundRun run = std::move(*std::find_if(runs.begin(), runs.end(), meant));
  if (run.hello.is_null())
    throw Failure(Error{code::run_does_not_answer,
                        fmt::format("process {} does not answer", run.process),
                        {},
                        {"it is stopped by the system, or ends just now"},
                        "",
                        ""});
  return run;
}

// {"blur.sigma": "4"}. Throws Failure MR0101 for what assigns nothing, or the same twice.
ordered_json read_changes(const std::vector<std::string>& texts) {
  ordered_json changes = ordered_json::object();
  const auto refuse = [](const std::string& what) {
    throw Failure(Error{
        code::unreadable_assignment, what, {}, {"expected handler.param=value"}, "", "millrace set blur.sigma=2"});
  };
  for (const std::string& text : texts) {
    const size_t equals = text.find('='), dot = text.substr(0, equals).find('.');
    const std::string key = text.substr(0, equals);
    if (equals == std::string::npos || dot == std::string::npos || dot == 0 || dot + 1 == equals)
      refuse("'" + printable(text) + "' assigns nothing");
    if (changes.contains(key)) refuse("'" + printable(key) + "' is assigned twice");
    changes[key] = text.substr(equals + 1);
  }
  return changes;
}

ordered_json json_of(const FoundRun& run) {
  return {{"version", 1}, {"pid", run.process}, {"pipeline", run.hello.at("pipeline")}};
}

// "from tick 7 on"; with several clocks "from tick 7 of main and tick 3 of slow on".
std::string ticks_words(const ordered_json& ticks) {
  std::string words;
  for (const auto& [clock, tick] : ticks.items())
    words += fmt::format("{}tick {}{}", words.empty() ? "from " : " and ", tick.get<uint64_t>(),
                         ticks.size() > 1 ? " of " + clock : "");
  return words + " on";
}

// An answer that this version cannot read.
[[noreturn]] void refuse_answer(const FoundRun& run) {
  throw Failure(code::run_does_not_answer, fmt::format("process {} answers what is no answer", run.process));
}

// The pipeline is valid: it is the command that is wrong.
int fail_as_usage(const Failure& failure) {
  std::fprintf(stderr, "%s\n", format_error(failure.error()).c_str());
  return kWrongUsage;
}

} // namespace

int set(const SetCommand& command) {
  const ordered_json changes = read_changes(command.changes);
  FoundRun run = choose_run(command.run, "set");
  std::optional<ordered_json> result;
  try {
    result = run.client.call("set", {{"changes", changes}}, kTickWithinMs);
  } catch (const Failure& failure) {
    if (exit_code_of(failure.error()) != kInvalidPipeline) throw;
    return fail_as_usage(failure);
  }
  try {
    ordered_json json = json_of(run);
    json["ticks"] = result ? result->at("ticks") : nullptr;
    if (result && result->contains("ended")) json["ended"] = result->at("ended");
    if (command.json) {
      write_file("-", json.dump(2) + "\n");
      return kDone;
    }
    std::string when = result ? ticks_words(json["ticks"]) : "from the next tick on; none has begun for 5 s";
    for (const ordered_json& clock : json.value("ended", ordered_json::array()))
      when += ", " + clock.get<std::string>() + " has ended";
    std::string text;
    for (const auto& [key, value] : changes.items())
      text += fmt::format("{}={} {}\n", key, printable(value.get<std::string>()), when);
    write_file("-", text);
  } catch (const ordered_json::exception&) {
    refuse_answer(run);
  }
  return kDone;
}

int stop(const RunChoice& command) {
  FoundRun run = choose_run(command.run, "stop");
  try {
    const std::optional<ordered_json> result = run.client.call("stop", ordered_json::object(), kHelloWithinMs);
    if (!result) refuse_answer(run);
    ordered_json json = json_of(run);
    json["state"] = result->at("state");
    write_file("-", command.json ? json.dump(2) + "\n"
                                 : fmt::format("{} ({}) takes no more ticks and ends once it has drained\n", run.name(),
                                               run.process));
  } catch (const ordered_json::exception&) {
    refuse_answer(run);
  }
  return kDone;
}

namespace {

ordered_json read_fields(const std::vector<std::string>& texts) {
  ordered_json fields = ordered_json::object();
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Failure(Error{code::unreadable_assignment,
                          "'" + printable(text) + "' assigns nothing",
                          {},
                          {"expected FIELD=VALUE"},
                          "",
                          "millrace streams add gate7 path=gate7.avi"});
    fields[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return fields;
}

// "cameras  gate7  runs  41 ticks"
std::string streams_table(const ordered_json& sets) {
  std::string text;
  for (const auto& [set, streams] : sets.items())
    for (const auto& [name, stream] : streams.items()) {
      text += fmt::format("{}  {}  {}  {} ticks", printable(set), printable(name),
                          printable(stream.at("state").get<std::string>()), stream.at("ticks").get<uint64_t>());
      const uint64_t restarts = stream.at("restarts").get<uint64_t>();
      if (restarts > 0) text += fmt::format(", begun anew {} times", restarts);
      if (stream.contains("error")) text += "  " + printable(stream.at("error").get<std::string>());
      text += "\n";
    }
  return text.empty() ? "the run has no streams\n" : text;
}

void check_streams_command(const StreamsCommand& command) {
  const auto refuse = [](const std::string& what, const std::string& edit) {
    throw Failure(Error{code::bad_command_line, what, {}, {"actions: list, add, remove"}, "", edit});
  };
  const bool changes = command.action == "add" || command.action == "remove";
  if (!changes && command.action != "list" && !command.action.empty())
    refuse("there is no action \"" + printable(command.action) + "\"",
           "millrace streams " + nearest_name(command.action, {"list", "add", "remove"}));
  if (changes && command.name.empty())
    refuse("streams " + command.action + " needs the name of a stream",
           "millrace streams " + command.action + " gate7");
  if (command.action != "add" && !command.fields.empty())
    refuse("only a stream that is added has fields", "millrace streams add " + printable(command.name));
}

} // namespace

int streams(const StreamsCommand& command) {
  check_streams_command(command);
  const bool adds = command.action == "add", removes = command.action == "remove";
  const ordered_json fields = read_fields(command.fields);
  FoundRun run = choose_run(command.run, "streams");
  ordered_json params = ordered_json::object();
  if (adds || removes) params["name"] = command.name;
  if (!command.set.empty() && (adds || removes)) params["set"] = command.set;
  if (adds) params["fields"] = fields;
  std::optional<ordered_json> result;
  try {
    const std::string method = adds ? "streams.add" : removes ? "streams.remove" : "streams.list";
    result = run.client.call(method, params, adds || removes ? kStreamWithinMs : kHelloWithinMs);
  } catch (const Failure& failure) {
    if (exit_code_of(failure.error()) != kInvalidPipeline) throw;
    return fail_as_usage(failure);
  }
  if (!result) refuse_answer(run);
  try {
    ordered_json json = json_of(run);
    if (adds || removes)
      json[adds ? "added" : "removed"] = command.name;
    else
      json["streams"] = *result;
    const std::string words = adds      ? command.name + " has begun\n"
                              : removes ? command.name + " is gone\n"
                                        : streams_table(*result);
    write_file("-", command.json ? json.dump(2) + "\n" : words);
  } catch (const ordered_json::exception&) {
    refuse_answer(run);
  }
  return kDone;
}

} // namespace millrace::cli
