// `millrace get`, `set`, `stop` and `streams`: look at a run on this machine, change and end it, over its control
// socket.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "observe/error.h"
#include "observe/error_codes.h"
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
// The pause before a busy run is asked again.
constexpr std::chrono::milliseconds kAgainAfter{100};

using State = serve::Greeting::State;

// A run that listens on this machine.
struct FoundRun {
  serve::RunSocket socket;
  State state{};
  std::string why; // if it does not answer: the rest of a sentence
  ordered_json hello;
  bool answers() const { return state == State::answers; }
  std::string name() const { return answers() ? printable(hello.value("pipeline", "")) : ""; }
};

// True for a process that the system has stopped, as by Ctrl-Z.
bool is_stopped(pid_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(stat, text);
  const size_t end = text.rfind(')'); // the program's name before it may have any letters
  return end != std::string::npos && (text.compare(end, 3, ") T") == 0 || text.compare(end, 3, ") t") == 0);
}

FoundRun found_run(const serve::RunSocket& socket, serve::Greeting&& greeting) {
  FoundRun run{socket, greeting.state, std::move(greeting.why), std::move(greeting.hello)};
  if (run.state == State::silent && is_stopped(socket.process))
    run.why = "is stopped, as by Ctrl-Z, and does not answer";
  return run;
}

std::string words_of(const FoundRun& run) {
  if (!run.answers()) return fmt::format("{}  {}", run.socket.process, run.why);
  const std::string node = printable(run.hello.value("node", ""));
  return fmt::format("{}  {}{}  runs for {:.0f} s", run.socket.process, run.name(),
                     node.empty() ? "" : ", node " + node, run.hello.value("elapsed_s", 0.0));
}

// All that were not gone, also those that could not be asked for their names.
std::vector<FoundRun> find_runs(std::vector<std::string>& complaints) {
  std::vector<FoundRun> runs;
  for (const serve::RunSocket& socket : serve::find_sockets(complaints)) {
    FoundRun run = found_run(socket, serve::Greeting::of(socket.path, kHelloWithinMs));
    if (run.state != State::gone) runs.push_back(std::move(run));
  }
  return runs;
}

// The runs that -p may mean. A run that could not be asked may have any name.
struct Candidates {
  std::vector<const FoundRun*> named, unasked;
  size_t count() const { return named.size() + unasked.size(); }
  const FoundRun& first() const { return named.empty() ? *unasked[0] : *named[0]; }
};

Candidates candidates_of(const std::vector<FoundRun>& runs, const std::string& asked) {
  Candidates meant;
  for (const FoundRun& run : runs)
    if (asked == std::to_string(run.socket.process)) return {{&run}, {}}; // a process has one number
  for (const FoundRun& run : runs) {
    if (!run.answers())
      meant.unasked.push_back(&run);
    else if (asked.empty() || printable(asked) == run.name())
      meant.named.push_back(&run);
  }
  return meant;
}

// "2 runs are called "twin", and 1 run cannot be asked for its name: -p has to name a process"
std::string unclear_words(const std::string& asked, const Candidates& meant) {
  if (asked.empty()) return fmt::format("{} runs are here, and -p has to say which one", meant.count());
  const std::string named = "\"" + printable(asked) + "\"";
  const size_t count = meant.named.size(), unasked = meant.unasked.size();
  std::string words = count == 0   ? "no run that answers is called " + named
                      : count == 1 ? "1 run is called " + named
                                   : fmt::format("{} runs are called {}", count, named);
  if (unasked > 0)
    words += fmt::format(", and {} cannot be asked for {}", unasked == 1 ? "1 run" : fmt::format("{} runs", unasked),
                         unasked == 1 ? "its name" : "their names");
  return words + (unasked > 0 ? ":" : ", and") + " -p has to name a process";
}

[[noreturn]] void refuse_choice(const std::string& asked, const std::string& command, const std::vector<FoundRun>& runs,
                                const Candidates& meant, const std::vector<std::string>& notes) {
  Error error{code::no_such_run, "", {}, {}, "", ""};
  if (runs.empty()) {
    error.what = "no run of this user is on this machine";
    error.notes.push_back("a run with `--control off` is not found");
  } else if (meant.count() == 0) {
    error.what = "no run here is of a pipeline or process \"" + printable(asked) + "\"";
    std::vector<std::string> names;
    for (const FoundRun& run : runs) {
      names.push_back(run.name());
      error.notes.push_back(words_of(run));
    }
    error.nearest = nearest_name(asked, names);
    if (!error.nearest.empty()) error.edit = "millrace " + command + " -p " + error.nearest;
  } else {
    error.what = unclear_words(asked, meant);
    for (const auto& some : {meant.named, meant.unasked})
      for (const FoundRun* run : some) error.notes.push_back(words_of(*run));
    error.edit = fmt::format("millrace {} -p {}", command, meant.first().socket.process);
  }
  error.notes.insert(error.notes.end(), notes.begin(), notes.end());
  throw Failure(std::move(error));
}

[[noreturn]] void refuse_unasked(const FoundRun& run) {
  Error error{code::run_does_not_answer, fmt::format("process {} {}", run.socket.process, run.why), {}, {}, "", ""};
  if (run.state == State::gone) error.what = fmt::format("process {} has just ended", run.socket.process);
  if (run.state == State::silent && is_stopped(run.socket.process))
    error.edit = fmt::format("kill -CONT {}", run.socket.process);
  else if (run.state == State::silent)
    error.notes.push_back("it hangs, or its machine is busy: only a signal can end it now");
  throw Failure(std::move(error));
}

// The run that -p means. Throws Failure: MR0116 if there is no such run or several, MR0117 if it does not answer.
FoundRun choose_run(const std::string& asked, const std::string& command) {
  std::vector<std::string> complaints;
  const std::vector<FoundRun> runs = find_runs(complaints);
  const Candidates meant = candidates_of(runs, asked);
  // The only run there is needs no name; a name is not clear while a run cannot be asked for its own.
  const bool is_clear = meant.count() == 1 && (asked.empty() || meant.unasked.empty());
  if (!is_clear) refuse_choice(asked, command, runs, meant, complaints);
  if (!meant.first().answers()) refuse_unasked(meant.first());
  return meant.first();
}

// Dials the run anew, because those that were asked before may have taken long to answer. A busy one is asked again for
// a while. Nothing if no answer came within `patience_ms`. Throws Failure.
std::optional<ordered_json> ask(const FoundRun& run, const std::string& method, const ordered_json& params,
                                int patience_ms) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(kHelloWithinMs);
  while (true) {
    serve::Greeting greeting = serve::Greeting::of(run.socket.path, kHelloWithinMs);
    if (greeting.state != State::answers) refuse_unasked(found_run(run.socket, std::move(greeting)));
    try {
      return greeting.client->call(method, params, patience_ms);
    } catch (const serve::Busy&) {
      if (Clock::now() >= until) throw;
    }
    std::this_thread::sleep_for(kAgainAfter);
  }
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
  return {{"version", 1}, {"pid", run.socket.process}, {"pipeline", run.hello.at("pipeline")}};
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
  throw Failure(code::run_does_not_answer, fmt::format("process {} answers what is no answer", run.socket.process));
}

// The pipeline is valid: it is the command that is wrong.
int fail_as_usage(const Failure& failure) {
  std::fprintf(stderr, "%s\n", format_error(failure.error()).c_str());
  return kWrongUsage;
}

} // namespace

int set(const SetCommand& command) {
  const ordered_json changes = read_changes(command.changes);
  const FoundRun run = choose_run(command.run, "set");
  std::optional<ordered_json> result;
  try {
    result = ask(run, "set", {{"changes", changes}}, kTickWithinMs);
  } catch (const Failure& failure) {
    if (exit_code_of(failure.error()) != kInvalidPipeline) throw;
    return fail_as_usage(failure);
  }
  try {
    ordered_json json = json_of(run);
    json["ticks"] = result ? result->at("ticks") : nullptr;
    if (result && result->contains("ended")) json["ended"] = result->at("ended");
    if (result && result->contains("away")) json["away"] = result->at("away");
    if (command.json) {
      write_file("-", json.dump(2) + "\n");
      return kDone;
    }
    std::string when = result ? ticks_words(json["ticks"]) : "from the next tick on; none has begun for 5 s";
    for (const ordered_json& clock : json.value("ended", ordered_json::array()))
      when += ", " + clock.get<std::string>() + " has ended";
    for (const ordered_json& node : json.value("away", ordered_json::array()))
      when += ", " + printable(node.get<std::string>()) + " takes it once it is back";
    std::string text;
    for (const auto& [key, value] : changes.items())
      text += fmt::format("{}={} {}\n", key, printable(value.get<std::string>()), when);
    write_file("-", text);
  } catch (const ordered_json::exception&) {
    refuse_answer(run);
  }
  return kDone;
}

namespace {

std::string value_words(const ordered_json& value) { return printable(value.dump()); }

// "blur.sigma  6.0  default 2.0, changed at tick 103 by millrace"
std::string value_line(const std::string& name, size_t width, const ordered_json& param) {
  std::vector<std::string> words;
  if (!param.value("live", false)) words.emplace_back("not live");
  if (param.contains("declared") && param.contains("tick"))
    words.push_back("declared " + value_words(param.at("declared")));
  if (param.contains("default")) words.push_back("default " + value_words(param.at("default")));
  if (param.contains("tick")) {
    const std::string by = param.at("by").get<std::string>();
    words.push_back(fmt::format("changed at tick {}", param.at("tick").get<uint64_t>()) +
                    (by.empty() ? "" : " by " + printable(by)));
  }
  std::string line = fmt::format("{:<{}}  {}", printable(name), width,
                                 param.contains("value") ? value_words(param.at("value")) : "not known");
  for (size_t i = 0; i < words.size(); ++i) line += (i ? ", " : "  ") + words[i];
  return line + "\n";
}

// Those of the answer that the command asked for, by handler.param; "": all. `asked` is the handler's name, or that of
// a template. Throws Failure: MR0310.
ordered_json chosen_values(const ordered_json& handlers, const std::string& asked, const std::string& param) {
  ordered_json chosen = ordered_json::object();
  std::vector<std::string> names;
  for (const auto& [handler, one] : handlers.items()) {
    const ordered_json& parameters = one.at("parameters");
    for (const auto& [name, value] : parameters.items()) {
      names.push_back(name);
      if (param.empty() || param == name) chosen[handler + "." + name] = value;
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (chosen.empty() && !param.empty())
    throw Failure(Error{code::unknown_parameter,
                        printable(asked) + " has no parameter \"" + printable(param) + "\"",
                        {},
                        {"there are: " + listed_from(param, names)},
                        nearest_name(param, names),
                        ""});
  return chosen;
}

} // namespace

int get(const GetCommand& command) {
  const FoundRun run = choose_run(command.run, "get");
  ordered_json values = ordered_json::object();
  try {
    std::vector<std::string> wanted = command.wanted;
    if (wanted.empty()) wanted.emplace_back();
    for (const std::string& one : wanted) {
      const std::string handler = one.substr(0, one.find('.'));
      const std::string param = handler.size() < one.size() ? one.substr(handler.size() + 1) : "";
      ordered_json params = ordered_json::object();
      if (!handler.empty()) params["handler"] = handler;
      const std::optional<ordered_json> result = ask(run, "get", params, kHelloWithinMs);
      if (!result) refuse_answer(run);
      const ordered_json chosen = chosen_values(*result, handler, param);
      for (const auto& [name, value] : chosen.items())
        if (!one.empty() || value.value("live", false)) values[name] = value;
    }
  } catch (const Failure& failure) {
    if (exit_code_of(failure.error()) != kInvalidPipeline) throw;
    return fail_as_usage(failure);
  } catch (const ordered_json::exception&) {
    refuse_answer(run);
  }
  try {
    ordered_json json = json_of(run);
    json["values"] = values;
    size_t width = 0;
    for (const auto& [name, value] : values.items()) width = std::max(width, name.size());
    std::string text;
    for (const auto& [name, value] : values.items()) text += value_line(name, width, value);
    if (text.empty())
      text = command.wanted.empty() ? "no parameter of the run is live\n" : "there are no parameters of these names\n";
    write_file("-", command.json ? json.dump(2) + "\n" : text);
  } catch (const ordered_json::exception&) {
    refuse_answer(run);
  }
  return kDone;
}

int stop(const RunChoice& command) {
  const FoundRun run = choose_run(command.run, "stop");
  try {
    const std::optional<ordered_json> result = ask(run, "stop", ordered_json::object(), kHelloWithinMs);
    if (!result) refuse_answer(run);
    ordered_json json = json_of(run);
    json["state"] = result->at("state");
    write_file("-", command.json ? json.dump(2) + "\n"
                                 : fmt::format("{} ({}) takes no more ticks and ends once it has drained\n", run.name(),
                                               run.socket.process));
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
  const FoundRun run = choose_run(command.run, "streams");
  ordered_json params = ordered_json::object();
  if (adds || removes) params["name"] = command.name;
  if (!command.set.empty() && (adds || removes)) params["set"] = command.set;
  if (adds) params["fields"] = fields;
  std::optional<ordered_json> result;
  try {
    const std::string method = adds ? "streams.add" : removes ? "streams.remove" : "streams.list";
    result = ask(run, method, params, adds || removes ? kStreamWithinMs : kHelloWithinMs);
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
