// The millrace command: reads the command line, calls one command, and turns an error into an exit code.
#include <unistd.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string_view>

#include "cli/bench_options.h"
#include "cli/beside.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/new.h"
#include "cli/plugin_commands.h"
#include "cli/signals.h"
#include "cli/usage_error.h"
#include "compose/plugins.h"
#include "embed/outcome.h"
#include "graph/quantity.h"
#include "millrace/abi.h"
#include "millrace/read_number.h"
#include "observe/error_codes.h"
#include "observe/plain_numbers.h"
#include "plan/probe.h"
#include "serve/web.h"

namespace millrace::cli {

namespace {

// Times are counted in nanoseconds and all other numbers in 64 bits; a double holds larger numbers than these.
constexpr double kSecondsMax = 9e9, kNumberMax = 0x1p63;
// The number at the beginning of the text; 0 if there is none.
double number_in(std::string_view text) {
  size_t length = 0;
  return v1::detail::leading_number(text, length);
}

// CLI11 has such a validator, but its message lists the range with all digits.
CLI::Validator above_zero(double most) {
  const auto complaint = [most](const std::string& text) -> std::string {
    const double number = number_in(text);
    if (!(number > 0)) return text + " is not above 0";
    return number < most ? "" : text + " is too large";
  };
  return {complaint, ""};
}

// Seconds as a number, or a duration as a pipeline file writes it: "10", "1.5", "10s", "2m". Leaves the number.
std::string read_seconds(std::string& text) {
  if (const auto ns = graph::read_duration(text); ns && *ns > 0) {
    text = fmt::format("{}", static_cast<double>(*ns) * 1e-9);
    return "";
  }
  const auto number = text.substr(0, text.find_first_not_of("0123456789."));
  if (number == text && number_in(text) > 0) return "";
  const std::string_view unit = std::string_view(text).substr(number.size());
  const bool is_zero = !number.empty() && number_in(number) <= 0;
  const bool hours = unit == "h" && !is_zero;
  const std::string meant = number.empty() || is_zero ? "10s"
                            : hours                   ? std::to_string(std::lround(number_in(number) * 3600)) + "s"
                            : unit.substr(0, 1) == "m" && unit.substr(0, 2) != "ms" ? number + "m"
                                                                                    : number + "s";
  throw Failure(Error{code::bad_command_line,
                      "\"" + text + "\" is no duration",
                      {},
                      {"a duration is a number of seconds above 0, or has a unit: 10, 1.5, 500ms, 10s, 2m"},
                      "",
                      "--duration " + meant});
}
const CLI::Validator kSeconds(read_seconds, "");

const std::string kVersion = "millrace " MILLRACE_VERSION " (plugin ABI " + std::to_string(MR_ABI_VERSION) + ")";

// The options of every command that works on a pipeline.
CLI::Option* add_pipeline_options(CLI::App& app, compose::PipelineOptions& options) {
  CLI::Option* const pipeline =
      app.add_option("PIPELINE", options.pipeline, "a file, or a line such as 'test.pattern ! null.sink'")->required();
  app.add_option("--set", options.sets, "handler.param=value; may be given again")
      ->type_name("ASSIGNMENT")
      ->allow_extra_args(false);
  app.add_option("--devices", options.devices, "devices that may be used, in order: cpu, cuda:0, sim:0, …")
      ->type_name("LIST");
  app.add_option("--threads", options.threads, "threads to plan for; default: as many as cores")
      ->check(CLI::Range(uint32_t{1}, embed::kThreadsMax));
  app.add_option("--clock", options.clock, "realtime, free or source")->type_name("MODE");
  app.add_option("--rate", options.rate, "ticks a second: 30, 29.97, 30000/1001")->type_name("FPS");
  app.add_option("--plugin-path", options.plugin_paths, "another folder of plugins; may be given again")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("--machine", options.machine,
                 "costs of this machine, and simulated devices; default: the file that calibrate keeps for it")
      ->type_name("FILE");
  return pipeline;
}

void add_confine_option(CLI::App& app, compose::PipelineOptions& options) {
  app.add_option("--confine", options.confine,
                 "refuse files outside of this folder, in the pipeline and in options; addresses too")
      ->type_name("DIR");
}

void add_plan_options(CLI::App& app, compose::PipelineOptions& options) {
  add_confine_option(app, options);
  app.add_option("--facts", options.facts, "JSON: the sources' facts, used instead of asking them")->type_name("FILE");
  app.add_flag("--no-probe", options.no_probe, "do not ask the sources");
}

// The commands as CLI11 knows them, each with what it does.
class Commands {
 public:
  // `arguments`: the command line without the program's name.
  Commands(CLI::App& app, std::vector<std::string> arguments) : app_(app), arguments_(std::move(arguments)) {
    app.require_subcommand(0, 1); // words after a command belong to it, even the name of another command: bench plan
    add_run();
    add_plan();
    add_lists();
    add_control();
    add_nodes();
    add_new();
    add_bench();
    add_check_handler();
    add_doctor();
    add_calibrate();
    add_help();
    for (const auto& [command, does] : actions_) refuse_empty_values(*command);
    list_plugin_commands(app);
  }

  // Runs the command that was named and returns its exit code.
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
    CLI::App& app = add("run", "runs a pipeline", [this] { return run(run_); });
    add_pipeline_options(app, run_);
    add_confine_option(app, run_);
    app.add_option("--ticks", run_.ticks, "stop after so many ticks")->check(above_zero(kNumberMax));
    app.add_option("--duration", run_.duration_s, "stop after so many seconds; also 500ms, 10s, 2m")
        ->type_name("S")
        ->transform(kSeconds)
        ->check(above_zero(kSecondsMax));
    app.add_option("--json", run_.json, "write the report; - for stdout")->type_name("FILE");
    app.add_flag("--quiet", run_.quiet, "no notes, no progress and no summary");
    app.add_option("--progress", run_.progress,
                   "bar: one line, rewritten; lines: one a minute; none; default: bar on a terminal, else lines")
        ->type_name("KIND");
    app.add_flag("--explain", run_.explain, "add the plan's predictions to the summary");
    CLI::Option* const node =
        app.add_option("--node", run_.node,
                       "run this one of the pipeline's nodes, together with the others; default: all of them here")
            ->type_name("NAME");
    app.add_option("--listen", run_.listen, "with --node: the other nodes reach this one there; may be given again")
        ->type_name("ADDR")
        ->needs(node)
        ->allow_extra_args(false);
    app.add_option("--coordinator", run_.coordinator, "with --node: the first node is reached there")
        ->type_name("ADDR")
        ->needs(node)
        ->allow_extra_args(false);
    app.add_option("--patience", run_.patience_s,
                   "with --node: the run ends if a node is away for so long; default: 30")
        ->type_name("S")
        ->needs(node)
        ->transform(kSeconds)
        ->check(above_zero(kSecondsMax));
    app.add_option("--wait", run_.wait_s,
                   "with --node: end if nodes are missing for so long before the start; default: wait for ever")
        ->type_name("S")
        ->needs(node)
        ->transform(kSeconds)
        ->check(above_zero(kSecondsMax));
    app.add_option("--plan", run_.plan, "run exactly the plan that `millrace plan --json` saved, or refuse")
        ->type_name("FILE")
        ->excludes(node)
        ->excludes("--devices")
        ->excludes("--threads");
    app.add_option("--trace", run_.trace, "write a trace of the run, for ui.perfetto.dev; - for stdout")
        ->type_name("FILE");
    app.add_flag("--sync-devices", run_.sync_devices,
                 "submit bodies and copies to devices one by one and wait for each, to find the one that fails");
    CLI::Option* const metrics =
        app.add_option("--metrics", run_.metrics,
                       "serve metrics to Prometheus while it runs: 127.0.0.1:9090, :9090; port 0: a free one")
            ->type_name("ADDR");
    app.add_option("--metrics-host", run_.metrics_hosts,
                   "with --metrics: another name by which requests may call this machine; may be given again")
        ->type_name("NAME")
        ->needs(metrics)
        ->allow_extra_args(false);
    add_page_options(app);
    app.add_option("--control", run_.control, "off: `millrace set` and `stop` do not find this run; default: on")
        ->type_name("on|off")
        ->check(CLI::IsMember({"on", "off"}));
    add_log_options(app);
  }

  void add_page_options(CLI::App& app) {
    app.add_flag_callback(
        "--web",
        [this] {
          if (run_.web.empty()) run_.web = serve::kWebAddress;
        },
        "show the running graph in a browser: prints a link to a page on this machine's loopback");
    app.add_option("--web-listen", run_.web, "as --web, at another address: 127.0.0.1:8080, :8080")->type_name("ADDR");
    app.add_option("--web-host", run_.web_hosts,
                   "with a page: another name by which browsers may call this machine; may be given again")
        ->type_name("NAME")
        ->allow_extra_args(false);
    app.add_flag("--tls", run_.tls,
                 "serve pages by https, with a certificate of this user's own, made on first use; browsers ask before "
                 "they take it");
    CLI::Option* const cert =
        app.add_option("--tls-cert", run_.tls_cert,
                       "serve pages by https, with the certificate and its chain in this file (PEM)")
            ->type_name("FILE");
    CLI::Option* const key =
        app.add_option("--tls-key", run_.tls_key, "with --tls-cert: its key (PEM)")->type_name("FILE");
    cert->needs(key);
    key->needs(cert);
  }

  void add_log_options(CLI::App& app) {
    app.add_flag("-v,--verbose", run_.verbose, "log to stderr what the runtime does; -vv: everything");
    app.add_option("--log-level", run_.log_level, "least level of the log; else info in a file, and warnings on stderr")
        ->type_name("LEVEL")
        ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
    app.add_option("--log-file", run_.log_file,
                   "write the log to a file; at 10 MiB it becomes FILE.1, and 4 such are kept")
        ->type_name("FILE");
    app.add_option("--log-format", run_.log_format, "of the log: text, or json with a record a line")
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"text", "json"}));
  }

  void add_plan() {
    CLI::App& plan_app = add("plan", "explains what would run, and where", [this] { return cli::plan(explain_); });
    add_pipeline_options(plan_app, explain_);
    add_plan_options(plan_app, explain_);
    plan_app
        .add_option("--node", explain_.node, "the plan of one of the pipeline's nodes; default: of all of them, here")
        ->type_name("NAME");
    CLI::Option* json = plan_app.add_flag("--json", explain_.json, "as JSON");
    CLI::Option* dot = plan_app.add_flag("--dot", explain_.dot, "as a Graphviz graph")->excludes(json);
    plan_app.add_option("--svg", explain_.svg, "as a picture, into a file; -: to stdout")
        ->type_name("FILE")
        ->excludes(json)
        ->excludes(dot);
    CLI::App& check_app = add("check", "reports errors only", [this] { return check(check_); });
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
    explain_app.add_option("CODE", explain_code_.code, "such as MR0304; default: list all");
    explain_app.add_flag("--json", explain_code_.json, "as JSON");
    explain_app.footer("The words of the messages, such as tick, firing and late: docs/guide/glossary.md");
  }

  void add_control() {
    const auto choice = [](CLI::App& app, RunChoice& options) {
      app.add_option("-p,--pipeline", options.run,
                     "which run: its pipeline's name or its process; default: the only one")
          ->type_name("NAME|PID");
      app.add_flag("--json", options.json, "as JSON");
    };
    CLI::App& get_app =
        add("get", "lists parameters of a run with their values now", [this] { return cli::get(get_); });
    get_app.add_option("NAME", get_.wanted, "handler or handler.param; default: all that can be set");
    choice(get_app, get_);
    CLI::App& set_app = add("set", "changes live parameters of a run", [this] { return cli::set(set_); });
    set_app.add_option("CHANGE", set_.changes, "handler.param=value; several change on the same tick")->required();
    choice(set_app, set_);
    CLI::App& stop_app = add("stop", "ends a run as a first signal does: its sources end, and it drains",
                             [this] { return cli::stop(stop_); });
    choice(stop_app, stop_);
    CLI::App& streams_app = add("streams", "lists the streams of a run; adds one, or removes one",
                                [this] { return cli::streams(streams_); });
    streams_app.add_option("ACTION", streams_.action, "list, add or remove; default: list");
    streams_app.add_option("NAME", streams_.name, "of the stream");
    streams_app.add_option("FIELD", streams_.fields, "add: FIELD=VALUE, as in an item of the pipeline");
    streams_app.add_option("--to", streams_.set, "add: the set of streams; default: the only one that has room")
        ->type_name("SET");
    choice(streams_app, streams_);
  }

  void add_nodes() {
    CLI::App& identity_app =
        add("identity", "says the id by which other nodes know this machine", [this] { return identity(identity_); });
    identity_app.add_flag("--json", identity_.json, "as JSON");
    CLI::App& nodes_app = add("nodes", "lists the nodes that this machine trusts; adds one, or forgets one",
                              [this] { return cli::nodes(nodes_); });
    nodes_app.add_option("ACTION", nodes_.action, "add or forget; default: list them");
    nodes_app.add_option("NAME", nodes_.name, "of the node; forget: or its id");
    nodes_app.add_option("ID", nodes_.id, "add: what `millrace identity` says there");
    nodes_app.add_option("ADDRESS", nodes_.addresses,
                         "add: where it listens, such as 192.168.1.31:7433; none or several");
    nodes_app.add_flag("--json", nodes_.json, "as JSON, with the nodes that run here and what they see of the others");
    nodes_app.add_flag("--watch", nodes_.watch, "shows the nodes that run here and what they see, once a second");
  }

  void add_new() {
    CLI::App& app = add("new", "writes a plugin project", [this] {
      write_plugin_project(word_, name_,
                           with_cuda_    ? Project::cuda
                           : with_model_ ? Project::model
                           : with_items_ ? Project::items
                                         : Project::tick);
      std::printf("wrote %s; its README.md says how to build and run it\n", word_.c_str());
      return kDone;
    });
    app.add_option("DIR", word_, "an empty folder, or one that is not there")->required();
    app.add_option("--name", name_, "family.name of the handler")->required();
    CLI::Option* const cuda =
        app.add_flag("--cuda", with_cuda_, "also writes a body for GPUs, which is built if nvcc is there");
    CLI::Option* const items =
        app.add_flag("--items", with_items_, "writes a body that takes several ticks in one call")->excludes(cuda);
    app.add_flag("--model", with_model_, "writes a decoder: makes boxes of what a network gives")
        ->excludes(cuda)
        ->excludes(items);
  }

  // The program reads the arguments again; here they are read for the help, and so that errors need no program.
  void add_bench() {
    actions_.emplace_back(&cli::add_bench(app_, bench_), [this]() -> int {
      const auto word = std::find(arguments_.begin(), arguments_.end(), "bench");
      become(find_beside("millrace-bench", "millrace-dev"), {word + 1, arguments_.end()});
    });
  }

  void add_check_handler() {
    CLI::App& app = add("check-handler", "tests a handler with unusual life cycles and inputs",
                        [this] { return check_handler(check_handler_); });
    app.add_option("TYPE", check_handler_.type, "such as image.blur")->required();
    app.add_option("--set", check_handler_.sets, "parameter=value; may be given again")
        ->type_name("ASSIGNMENT")
        ->allow_extra_args(false);
    app.add_option("--plugin-path", check_handler_.plugin_paths, "another folder of plugins; may be given again")
        ->type_name("DIR")
        ->allow_extra_args(false);
    app.add_flag("--json", check_handler_.json, "as JSON");
    app.add_option("--seconds", check_handler_.seconds_max,
                   "that a check may take; if one takes longer, the remaining ones are skipped")
        ->check(above_zero(kSecondsMax));
    app.add_flag("--in-process", check_handler_.in_process, "run all checks in this process, for a debugger");
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
        ->check(above_zero(kNumberMax));
  }

  // Works like the `help` of git and cargo.
  void add_help() {
    CLI::App& app = add("help", "says what there is, or what a command takes", [this] {
      if (!word_.empty()) hand_over_to_plugin(app_, word_, {"--help"});
      const CLI::App* about = word_.empty() ? &app_ : app_.get_subcommand(word_);
      const std::string name = word_.empty() ? "millrace" : "millrace " + word_;
      // App::help() is not used here: once a command was named, it describes that command.
      std::fputs(about->get_formatter()->make_help(about, name, CLI::AppFormatMode::Normal).c_str(), stdout);
      return kDone;
    });
    app.add_option("COMMAND", word_, "such as run");
  }

  CLI::App& app_;
  const std::vector<std::string> arguments_;
  std::vector<std::pair<CLI::App*, std::function<int()>>> actions_;
  RunCommand run_;
  PlanCommand explain_;
  compose::PipelineOptions check_;
  ListCommand list_;
  CheckHandlerCommand check_handler_;
  DoctorCommand doctor_;
  CalibrateCommand calibrate_;
  ExplainCommand explain_code_;
  GetCommand get_;
  SetCommand set_;
  RunChoice stop_;
  StreamsCommand streams_;
  IdentityCommand identity_;
  NodesCommand nodes_;
  BenchOptions bench_;
  std::string word_, name_;
  bool with_cuda_ = false, with_items_ = false, with_model_ = false;
};

int main_of(int argc, char** argv) {
  CLI::App app{"a dataflow stream runtime", "millrace"};
  app.set_version_flag("--version", kVersion);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const Commands commands(app, arguments);
  try {
    // All words after the name of a plugin's command belong to its program: CLI11 would take some for itself.
    if (!arguments.empty() && !arguments[0].starts_with('-'))
      hand_over_to_plugin(app, arguments[0], {arguments.begin() + 1, arguments.end()});
    app.parse(argc, argv);
  } catch (const CLI::Success& success) { // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& failure) {
    return fail(usage_error(app, failure, arguments), kWrongUsage);
  } catch (const Failure& failure) { // of a plugin's command, or of a validator that reads a value as the file does
    return fail(failure.error(), exit_code_of(failure.error()));
  }
  if (app.get_subcommands().empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kWrongUsage;
  }
  // `run` handles signals itself, from the first moment on.
  if (app.get_subcommands().front()->get_name() != "run") release_signals();
  try {
    return commands.call();
  } catch (const compose::PluginMissing& missing) {
    return fail(missing.error(), kPluginNotLoaded);
  } catch (const Failure& failure) {
    return fail(failure.error(), exit_code_of(failure.error()));
  } catch (const std::exception& failure) {
    return fail(Error{code::handler_failed, failure.what(), {}, {}, "", ""}, kRunFailed);
  }
}

} // namespace

} // namespace millrace::cli

int main(int argc, char** argv) {
  const millrace::PlainNumbers numbers; // CLI11 reads them by the locale, which a preloaded library may have set
  millrace::cli::prepare_standard_streams();
  millrace::cli::hold_signals();
  const int code = millrace::cli::main_of(argc, argv);
  if (!millrace::plan::any_probe_goes_on()) return code;
  std::fflush(nullptr);
  _exit(code);
}
