// Reads CLI11's errors and says them as the other errors of the command are said; see usage_error.h.
#include "cli/usage_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "compose/plugins.h"
#include "millrace/read_number.h"
#include "observe/error_codes.h"

namespace millrace::cli {

namespace {

// "blur.sigma" for `--set blur.sigma 2`, where `extra`, the "2", should follow a '='; "" if `extra` is no such word.
std::string set_before(const std::vector<std::string>& arguments, const std::string& extra) {
  for (size_t i = 0; i + 2 < arguments.size(); ++i)
    if (arguments[i] == "--set" && arguments[i + 2] == extra && arguments[i + 1].find('=') == std::string::npos)
      return arguments[i + 1];
  return "";
}

// The known handler type that is nearest to `name`; "" if none is near.
std::string type_meant(const std::string& name) {
  plugin::Registry registry;
  compose::scan_plugins(registry, {});
  std::vector<std::string> types;
  for (const plugin::HandlerInfo* info : registry.all()) types.push_back(info->type);
  return nearest_type(name, types);
}

// The error for an argument that nothing takes.
Error refused_extra(const CLI::App& app, const CLI::App& command, const std::string& extra,
                    const std::vector<std::string>& arguments) {
  Error error{code::bad_command_line,
              "",
              {},
              {},
              "",
              "millrace " + (&command == &app ? "" : command.get_name() + " ") + "--help"};
  if (extra.rfind('-', 0) == 0) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    error.what = "there is no option " + extra;
    error.nearest = nearest_name(extra.substr(0, extra.find('=')), names);
    if (&command == &app && (extra == "-v" || extra == "-V")) {
      error.notes.push_back("`millrace run -v` tells what the runtime does");
      error.edit = "millrace --version";
    }
    return error;
  }
  if (&command == &app) return unknown_command(app, extra);
  error.what = "millrace " + command.get_name() + " does not take \"" + extra + "\"";
  if (extra == "!") error.notes.push_back("a pipeline that is written as a line stands within quotes");
  if (const std::string set = set_before(arguments, extra); !set.empty()) {
    error.notes.push_back("--set takes handler.key=value, as one word");
    error.edit = "--set " + set + "=" + extra;
  } else if (command.get_name() == "handlers") {
    error.nearest = type_meant(extra);
    error.notes.push_back("`millrace inspect TYPE` describes one handler type");
    if (!error.nearest.empty()) error.edit = "millrace inspect " + error.nearest;
  }
  return error;
}

// A value that the option or the argument takes, for an edit that works.
std::string example_of(const std::string& name) {
  struct Example {
    std::string_view name, value;
  };
  static constexpr std::array<Example, 31> kExamples = {{
      {"--ticks", "100"},
      {"--duration", "10s"},
      {"--set", "blur.sigma=2"},
      {"--devices", "cpu"},
      {"--threads", "2"},
      {"--clock", "free"},
      {"--rate", "30"},
      {"--plugin-path", "mine/build/plugins"},
      {"--machine", "machine.json"},
      {"--facts", "facts.json"},
      {"--plan", "plan.json"},
      {"--json", "report.json"},
      {"--trace", "trace.json"},
      {"--metrics", "127.0.0.1:9090"},
      {"--control", "off"},
      {"--progress", "lines"},
      {"--log-level", "info"},
      {"--log-file", "run.log"},
      {"--log-format", "json"},
      {"--node", "edge"},
      {"--listen", "0.0.0.0:7433"},
      {"--coordinator", "192.168.1.30:7433"},
      {"--patience", "30s"},
      {"--pipeline", "street"},
      {"--to", "cameras"},
      {"--name", "acme.invert"},
      {"--seconds", "60"},
      {"PIPELINE", "'test.pattern count=100 ! null.sink'"},
      {"TYPE", "image.blur"},
      {"CHANGE", "blur.sigma=2"},
      {"DIR", "mine"},
  }};
  const auto known =
      std::find_if(kExamples.begin(), kExamples.end(), [&](const Example& example) { return example.name == name; });
  return known == kExamples.end() ? "" : std::string(known->value);
}

// The name by which CLI11 calls an option in its messages: "--ticks", "PIPELINE".
std::string name_of(const CLI::Option& option) { return option.get_name(); }

// The option with whose name a message of CLI11 begins: "--ticks: ten is not above 0", "--name is required".
const CLI::Option* option_in(const CLI::App& command, const std::string& words) {
  const CLI::Option* best = nullptr;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = name_of(*option);
    const bool begins = words.starts_with(name) &&
                        (words.size() == name.size() || words[name.size()] == ':' || words[name.size()] == ' ');
    if (begins && (!best || name.size() > name_of(*best).size())) best = option;
  }
  return best;
}

// The value that was given to the option on the command line; "" if there is none.
std::string value_given(const CLI::Option& option, const std::vector<std::string>& arguments) {
  const std::string name = name_of(option);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(name + "=")) return arguments[i].substr(name.size() + 1);
    if (arguments[i] == name && i + 1 < arguments.size()) return arguments[i + 1];
  }
  return "";
}

std::string in_shell(const std::string& word) {
  if (word.find_first_of(" \t'\"$&|;()<>*?!") == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + "'";
}

// "my plugin" → "my_plugin.invert": the name of a handler in a project of this name.
std::string handler_in(const std::string& folder) {
  std::string family;
  for (const char c : folder.substr(folder.find_last_of('/') + 1)) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter || (!family.empty() && c >= '0' && c <= '9'))
      family += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    else if (!family.empty() && family.back() != '_')
      family += '_';
  }
  while (!family.empty() && family.back() == '_') family.pop_back();
  return family.empty() ? "acme.invert" : family + ".invert";
}

// The command line as it was given, as a shell reads it: "millrace new 'my plugin'".
std::string repeated(const std::vector<std::string>& arguments) {
  std::string line = "millrace";
  for (const std::string& argument : arguments) line += " " + in_shell(argument);
  return line;
}

// An option or an argument that the command cannot do without.
Error refused_missing(const CLI::App& command, const CLI::Option& option, const std::vector<std::string>& arguments) {
  const std::string name = name_of(option);
  Error error{code::bad_command_line, "millrace " + command.get_name() + " needs " + name, {}, {}, "", ""};
  error.notes.push_back(name + ": " + option.get_description());
  std::string value = example_of(name), folder;
  size_t words = 0;
  if (name == "--name")
    for (const std::string& argument : arguments)
      if (argument != command.get_name() && !argument.starts_with("-")) folder += (words++ == 0 ? "" : "_") + argument;
  if (words > 0) value = handler_in(folder);
  if (words > 1) { // a name of several words, which the shell took apart
    error.edit = "millrace new " + in_shell(folder) + " --name " + value;
    return error;
  }
  error.edit = repeated(arguments) + (option.get_positional() ? " " : " " + name + " ") + value;
  if (name == "DIR") error.edit = "millrace new " + value + " --name acme.invert"; // the other half is missing too
  return error;
}

// The values that a validator takes, by its complaint: "a number above 0", "off or on"; "" if that does not say.
std::string expected_in(const std::string& complaint, std::vector<std::string>& choices) {
  const size_t open = complaint.find('{'), close = complaint.find('}');
  if (open != std::string::npos && close != std::string::npos && complaint.find("not in") != std::string::npos) {
    std::string list;
    for (size_t at = open + 1; at < close;) {
      const size_t end = std::min(complaint.find(',', at), close);
      choices.push_back(complaint.substr(at, end - at));
      at = end + 1;
    }
    for (size_t i = 0; i < choices.size(); ++i)
      list += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
    return list;
  }
  constexpr std::string_view kRange = "not in range "; // "Value 0 not in range 1 to 1024"
  const size_t range = complaint.find(kRange);
  return range == std::string::npos ? "" : "a whole number from " + complaint.substr(range + kRange.size());
}

bool is_real(const CLI::Option& option) { return option.get_type_name().find("FLOAT") != std::string::npos; }
bool is_whole(const CLI::Option& option) { return option.get_type_name().find("INT") != std::string::npos; }

// The number that a value begins with, for an option that takes one: "30" of "30fps"; "" if there is none.
std::string number_in(const CLI::Option& option, const std::string& value) {
  size_t length = 0;
  const double number = v1::detail::leading_number(value, length);
  constexpr double kExactMax = 9e15; // below this every whole number is a distinct double
  if (length == 0 || !(number > 0) || number > kExactMax) return "";
  if (is_real(option)) return fmt::format("{}", number);
  return number >= 1 ? fmt::format("{}", static_cast<int64_t>(number)) : "";
}

// A value that the option does not take. `words`: CLI11's.
Error refused_value(const CLI::Option& option, const std::string& words, const std::vector<std::string>& arguments) {
  const std::string name = name_of(option), value = value_given(option, arguments);
  Error error{code::bad_command_line, name + " cannot be \"" + value + "\"", {}, {}, "", ""};
  std::vector<std::string> choices;
  std::string expected = expected_in(words, choices);
  const bool is_too_large = words.find("too large") != std::string::npos;
  if (expected.empty() && (is_real(option) || is_whole(option)))
    expected = std::string(is_real(option) ? "a number" : "a whole number") + " above 0";
  if (is_too_large) error.what += ", which is too large";
  if (value.empty()) error.what = name + " has an empty value";
  if (!expected.empty()) error.notes.push_back("expected " + expected);
  error.notes.push_back(name + ": " + option.get_description());
  error.nearest = nearest_name(value, choices);
  std::string usable = choices.empty() ? number_in(option, value) : error.nearest;
  if (usable.empty() || is_too_large || words.find("in range") != std::string::npos) usable = example_of(name);
  error.edit = usable.empty() ? "millrace --help" : name + " " + usable;
  return error;
}

// "--ticks: 1 required INT missing"
Error refused_without_value(const CLI::Option& option) {
  const std::string name = name_of(option), example = example_of(name);
  return Error{code::bad_command_line,
               name + " needs a value",
               {},
               {name + ": " + option.get_description()},
               "",
               example.empty() ? "" : name + " " + example};
}

// "--listen requires --node", "--plan excludes --devices"
Error refused_together(const CLI::Option& option, const std::string& words, bool excludes) {
  const std::string name = name_of(option), other = words.substr(words.rfind(' ') + 1);
  if (excludes)
    return Error{code::bad_command_line,   name + " and " + other + " exclude each other", {}, {}, "",
                 "leave " + other + " out"};
  return Error{code::bad_command_line,
               name + " is for a run with " + other + ", and there is none",
               {},
               {name + ": " + option.get_description()},
               "",
               other + " " + example_of(other)};
}

} // namespace

void refuse_empty_values(CLI::App& command) {
  const CLI::Validator not_empty([](const std::string& text) { return text.empty() ? "it is empty" : ""; }, "");
  for (CLI::Option* option : command.get_options())
    if (!option->get_positional() && option->get_items_expected_max() > 0) option->check(not_empty);
}

Error unknown_command(const CLI::App& app, const std::string& name, const std::vector<std::string>& others) {
  std::vector<std::string> names = others;
  for (const CLI::App* known : app.get_subcommands({})) names.push_back(known->get_name());
  const std::string nearest = nearest_name(name, names);
  return Error{code::bad_command_line,
               "there is no command \"" + name + "\"",
               {},
               {},
               nearest,
               nearest.empty() ? "millrace --help" : "millrace " + nearest + " --help"};
}

Error usage_error(const CLI::App& app, const CLI::ParseError& failure, const std::vector<std::string>& arguments) {
  const CLI::App& command = app.get_subcommands().empty() ? app : *app.get_subcommands().front();
  const std::string words = failure.what();
  const auto is = [&](CLI::ExitCodes code) { return failure.get_exit_code() == static_cast<int>(code); };
  const std::vector<std::string> extras = command.remaining();
  if (is(CLI::ExitCodes::ExtrasError) && !extras.empty()) return refused_extra(app, command, extras.front(), arguments);
  const size_t at = words.find("--"); // a conversion's message begins otherwise: "Could not convert: --ticks = 1e3"
  const CLI::Option* option = option_in(command, words);
  if (!option && at != std::string::npos) option = option_in(command, words.substr(at));
  if (option && is(CLI::ExitCodes::RequiredError)) return refused_missing(command, *option, arguments);
  if (option && is(CLI::ExitCodes::ArgumentMismatch)) return refused_without_value(*option);
  if (option && is(CLI::ExitCodes::RequiresError)) return refused_together(*option, words, false);
  if (option && is(CLI::ExitCodes::ExcludesError)) return refused_together(*option, words, true);
  if (option && (is(CLI::ExitCodes::ConversionError) || is(CLI::ExitCodes::ValidationError)))
    return refused_value(*option, words, arguments);
  return Error{code::bad_command_line,
               words,
               {},
               {},
               "",
               "millrace " + (&command == &app ? "" : command.get_name() + " ") + "--help"};
}

} // namespace millrace::cli
