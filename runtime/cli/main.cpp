// The millrace command: reads the command line, calls one command, and turns what went wrong into an exit code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/new.h"
#include "cli/signals.h"
#include "millrace/abi.h"

namespace millrace::cli {

namespace {

// More threads than this is a typing error.
constexpr uint32_t kThreadsMax = 1024;

// CLI11's own says which numbers there are, digit by digit.
const CLI::Validator kAboveZero(
    [](const std::string& text) { return std::strtod(text.c_str(), nullptr) > 0 ? "" : text + " is not above 0"; }, "");

// What belongs to a part of millrace that this version does not have.
[[noreturn]] void not_yet(const std::string& what) {
  throw Failure(Error{109, what + " is not there yet", {}, {}, "", ""});
}

const std::string kVersion = "millrace " MILLRACE_VERSION " (plugin ABI " + std::to_string(MR_ABI_VERSION) + ")";

// The options of every command that works on a pipeline.
CLI::Option* add_pipeline_options(CLI::App& app, PipelineOptions& options) {
  CLI::Option* const pipeline =
      app.add_option("PIPELINE", options.pipeline, "a file, or a line such as 'test.pattern ! null.sink'")->required();
  app.add_option("--set", options.sets, "handler.param=value; may be given again")
      ->type_name("ASSIGNMENT")
      ->allow_extra_args(false);
  app.add_option("--devices", options.devices, "what may be used, in order: cpu, cuda:0, sim:0, …")->type_name("LIST");
  app.add_option("--threads", options.threads, "threads to plan for; default: as many as cores")
      ->check(CLI::Range(uint32_t{1}, kThreadsMax));
  app.add_option("--clock", options.clock, "realtime, free or source")->type_name("MODE");
  app.add_option("--rate", options.rate, "ticks a second: 30, 29.97, 30000/1001")->type_name("FPS");
  app.add_option("--plugin-path", options.plugin_paths, "another folder of plugins; may be given again")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("--machine", options.machine,
                 "what is known of this machine, and simulated devices; default: what calibrate keeps for it")
      ->type_name("FILE");
  return pipeline;
}

void add_plan_options(CLI::App& app, PipelineOptions& options) {
  app.add_option("--facts", options.facts, "JSON: what the sources would say, used instead of asking them")
      ->type_name("FILE");
  app.add_flag("--no-probe", options.no_probe, "do not ask the sources");
}

// The commands as CLI11 knows them, each with what it does.
class Commands {
 public:
  explicit Commands(CLI::App& app) : app_(app) {
    app.require_subcommand(0, 1); // what follows a command is its own, even where it is called as another: bench plan
    add_run();
    add_plan();
    add_lists();
    add_new();
    add_bench();
    add_check_handler();
    add_doctor();
    add_calibrate();
  }

  // Of the command that was named.
  int call() const {
    for (const auto& [command, does] : actions_)
      if (command->parsed()) return does();
    return kWrongUsage;
  }

 private:
  CLI::App& add(const char* name, const char* help, std::function<int()> does) {
    CLI::App* command = app_.add_subcommand(name, help);
    actions_.emplace_back(command, std::move(does));
    return *command;
  }

  void add_run() {
    CLI::App& app = add("run", "runs a pipeline", [this] {
      if (!node_.empty()) not_yet("--node");
      return run(run_);
    });
    add_pipeline_options(app, run_);
    app.add_option("--ticks", run_.ticks, "stop after so many ticks")->check(kAboveZero);
    app.add_option("--duration", run_.duration_s, "stop after so many seconds")->type_name("S")->check(kAboveZero);
    app.add_option("--json", run_.json, "write the report; - for stdout")->type_name("FILE");
    app.add_flag("--quiet", run_.quiet, "no progress and no summary");
    app.add_option("--node", node_, "not there yet: which of the pipeline's nodes this is")->type_name("NAME");
    app.add_option("--plan", run_.plan, "run by a plan that `millrace plan --json` saved, or not at all")
        ->type_name("FILE")
        ->excludes("--devices")
        ->excludes("--threads");
    app.add_option("--trace", run_.trace, "write what ran when, for ui.perfetto.dev")->type_name("FILE");
    app.add_option("--metrics", run_.metrics,
                   "answer Prometheus while it runs: 127.0.0.1:9090, :9090; port 0: a free one")
        ->type_name("ADDR");
  }

  void add_plan() {
    CLI::App& plan_app = add("plan", "explains what would run, and where", [this] { return cli::plan(explain_); });
    add_pipeline_options(plan_app, explain_);
    add_plan_options(plan_app, explain_);
    CLI::Option* json = plan_app.add_flag("--json", explain_.json, "as JSON");
    plan_app.add_flag("--dot", explain_.dot, "as a Graphviz graph")->excludes(json);
    CLI::App& check_app = add("check", "says only what is wrong", [this] { return check(check_); });
    add_pipeline_options(check_app, check_);
    add_plan_options(check_app, check_);
  }

  void add_lists() {
    const auto plugin_path = [this](CLI::App& app) {
      app.add_option("--plugin-path", list_.plugin_paths, "another folder of plugins")
          ->type_name("DIR")
          ->allow_extra_args(false);
      app.add_flag("--json", list_.json, "as JSON");
    };
    plugin_path(add("handlers", "lists the handler types", [this] { return handlers(list_); }));
    CLI::App& inspect_app = add("inspect", "describes a handler type", [this] { return inspect(list_); });
    inspect_app.add_option("TYPE", list_.type, "such as image.blur")->required();
    plugin_path(inspect_app);
    CLI::App& explain_app =
        add("explain", "says more about an error code", [this] { return cli::explain(explain_code_); });
    explain_app.add_option("CODE", explain_code_.code, "such as MR0304; left out, all are listed");
    explain_app.add_flag("--json", explain_code_.json, "as JSON");
  }

  void add_new() {
    CLI::App& app = add("new", "writes a plugin project", [this] {
      write_plugin_project(word_, name_);
      std::printf("wrote %s; its README.md says how to build and run it\n", word_.c_str());
      return kDone;
    });
    app.add_option("DIR", word_, "an empty folder, or one that is not there")->required();
    app.add_option("--name", name_, "family.name of the handler")->required();
  }

  void add_bench() {
    CLI::App& app =
        add("bench", "measures the runtime itself", [this] { return run_benches(benches_, json_, bench_devices_); });
    app.add_option("NAME", benches_, "which; default: all");
    app.add_option("--devices", bench_devices_, "where gpu and transfer measure; default: every GPU")
        ->type_name("LIST");
    app.add_option("--json", json_, "write the numbers")->type_name("FILE");
  }

  void add_check_handler() {
    CLI::App& app = add("check-handler", "drives a handler through odd lives and odd inputs",
                        [this] { return check_handler(check_handler_); });
    app.add_option("TYPE", check_handler_.type, "such as image.blur")->required();
    app.add_option("--set", check_handler_.sets, "parameter=value; may be given again")
        ->type_name("ASSIGNMENT")
        ->allow_extra_args(false);
    app.add_option("--plugin-path", check_handler_.plugin_paths, "another folder of plugins; may be given again")
        ->type_name("DIR")
        ->allow_extra_args(false);
    app.add_flag("--json", check_handler_.json, "as JSON");
    app.add_flag("--in-process", check_handler_.in_process, "no process for each check, for a debugger");
  }

  void add_doctor() {
    CLI::App& app = add("doctor", "says what this machine has, and what it lacks", [this] { return doctor(doctor_); });
    app.add_flag("--json", doctor_.json, "as JSON");
    app.add_option("--plugin-path", doctor_.plugin_paths, "another folder of plugins; may be given again")
        ->type_name("DIR")
        ->allow_extra_args(false);
  }

  void add_calibrate() {
    CLI::App& app = add("calibrate", "measures hops, and the handlers of a pipeline, and keeps their costs",
                        [this] { return cli::calibrate(calibrate_); });
    add_pipeline_options(app, calibrate_)->required(false);
    for (const char* pace : {"--clock", "--rate"}) // bodies are timed under `free`
      app.remove_option(app.get_option(pace));
    app.add_option("--ticks", calibrate_.ticks, "that the pipeline runs on each device; default 200")
        ->check(kAboveZero);
  }

  CLI::App& app_;
  std::vector<std::pair<CLI::App*, std::function<int()>>> actions_;
  RunCommand run_;
  PlanCommand explain_;
  PipelineOptions check_;
  ListCommand list_;
  CheckHandlerCommand check_handler_;
  DoctorCommand doctor_;
  CalibrateCommand calibrate_;
  ExplainCommand explain_code_;
  std::string node_, word_, name_, json_;
  std::vector<std::string> benches_;
  std::string bench_devices_;
};

// An argument that nothing takes.
void describe_extra(const CLI::App& app, const CLI::App& command, const std::string& extra, Error& error) {
  std::vector<std::string> names;
  if (extra.rfind('-', 0) == 0) {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    error.what = "there is no option " + extra;
  } else if (&command == &app) {
    for (const CLI::App* known : app.get_subcommands({})) names.push_back(known->get_name());
    error.what = "there is no command \"" + extra + "\"";
  } else {
    error.what = "millrace " + command.get_name() + " does not take \"" + extra + "\"";
    if (extra == "!") error.notes.push_back("a pipeline that is written as a line stands within quotes");
  }
  error.nearest = nearest_name(extra.substr(0, extra.find('=')), names);
}

// What CLI11 could not read, as an error with the nearest name.
Error usage_error(const CLI::App& app, const CLI::ParseError& failure) {
  const CLI::App& command = app.get_subcommands().empty() ? app : *app.get_subcommands().front();
  Error error{
      105, failure.what(), {}, {}, "", "millrace " + (&command == &app ? "" : command.get_name() + " ") + "--help"};
  const std::vector<std::string> extras = command.remaining();
  if (failure.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !extras.empty())
    describe_extra(app, command, extras.front(), error);
  return error;
}

int fail(const Error& error, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", format_error(error).c_str());
  return code;
}

int main_of(int argc, char** argv) {
  CLI::App app{"a dataflow stream runtime", "millrace"};
  app.set_version_flag("--version", kVersion);
  Commands commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) { // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& failure) {
    return fail(usage_error(app, failure), kWrongUsage);
  }
  if (app.get_subcommands().empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kWrongUsage;
  }
  try {
    return commands.call();
  } catch (const PluginMissing& missing) {
    return fail(missing.error(), kPluginNotLoaded);
  } catch (const Failure& failure) {
    return fail(failure.error(), exit_code_of(failure.error()));
  } catch (const std::exception& failure) {
    return fail(Error{601, failure.what(), {}, {}, "", ""}, kRunFailed);
  }
}

} // namespace

} // namespace millrace::cli

int main(int argc, char** argv) {
  millrace::cli::prepare_standard_streams();
  return millrace::cli::main_of(argc, argv);
}
