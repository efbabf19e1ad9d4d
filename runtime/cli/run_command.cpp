// `millrace run`: compiles a pipeline, runs it to its end or to a signal, and reports.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/exit_code.h"
#include "cli/log_settings.h"
#include "cli/metrics_site.h"
#include "cli/metrics_text.h"
#include "cli/node_status.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "cli/signals.h"
#include "compose/node_folder.h"
#include "compose/pipeline.h"
#include "embed/crash_report.h"
#include "embed/streams.h"
#include "exec/counters.h"
#include "exec/param_change.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "graph/confine.h"
#include "http/server.h"
#include "node/node.h"
#include "node/report.h"
#include "node/trace.h"
#include "observe/error_codes.h"
#include "observe/log.h"
#include "observe/secrets.h"
#include "observe/start_thread.h"
#include "plan/notes.h"
#include "plan/picture.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plugin/call_watch.h"
#include "plugin/registry.h"
#include "serve/control.h"
#include "serve/log_tail.h"
#include "serve/picture_json.h"
#include "serve/run_folder.h"
#include "serve/socket.h"
#include "serve/values.h"
#include "serve/web.h"
#include "serve/web_certificate.h"

namespace millrace::cli {

namespace {

// Refuses to write a report and the bytes of a handler to stdout: they could not be told apart.
void refuse_shared_stdout(const embed::Composition& composition, const char* option) {
  const plan::Plan& plan = composition.plan();
  for (uint32_t h = 0; h < plan.handlers.size(); ++h) {
    for (const graph::Param& param : composition.declared_of(h).params) {
      const auto* known = plan.type_of(plan.handlers[h]).find_param(param.name);
      if (known && (known->raw.flags & MR_PARAM_WRITES_PATH) && param.text == "-")
        throw Failure(
            Error{code::bad_command_line,
                  std::string(option) + " - and " + plan.handlers[h].name + " would both write to standard output",
                  {},
                  {},
                  "",
                  std::string(option) + " report.json"});
    }
  }
}

void refuse_shared_outputs(const embed::Composition& composition, const RunCommand& command) {
  if (!command.json.empty() && command.json == command.trace)
    throw Failure(code::bad_command_line, "--json and --trace would both write to " + command.json);
  if (command.json == "-") refuse_shared_stdout(composition, "--json");
  if (command.trace == "-") refuse_shared_stdout(composition, "--trace");
}

// As the options ask; else `bar` on a terminal and `lines` for a log.
Progress progress_of(const RunCommand& command) {
  if (command.quiet) return Progress::none;
  if (!command.progress.empty()) {
    if (const std::optional<Progress> asked = parse_progress(command.progress)) return *asked;
    throw Failure(Error{code::bad_command_line,
                        "--progress is lines, bar or none, not '" + command.progress + "'",
                        {},
                        {},
                        "",
                        "--progress lines"});
  }
  return isatty(STDERR_FILENO) ? Progress::bar : Progress::lines;
}

// Also logs the error that keeps a pipeline from running; main() prints it on the terminal.
template <class Function>
auto logged(Log& log, Function&& function) {
  try {
    return function();
  } catch (const Failure& failure) {
    Log::Context context;
    context.code = failure.error().code;
    context.on_terminal = false;
    log.say(LogLevel::error, log.source(), failure.error().what, context);
    throw;
  }
}

// A log file on a disk that hangs must not delay the report for longer than this.
constexpr int64_t kLogWrittenWithinNs = 2'000'000'000;
// The same after a second signal, which must end the process at once.
constexpr int64_t kLogLeftWithinNs = 300'000'000;

// The most that a terminal which takes no output may delay the stop of a run.
constexpr std::chrono::milliseconds kTellWithin{50};
// The end of a run waits longer for the sentence about the signal: a busy machine may be slow to write it.
constexpr std::chrono::milliseconds kToldWithin{1000};
// The most calls that a message lists: a wide graph has many calls under way at any moment.
constexpr size_t kCallsNamedMax = 3;

std::string list_of(const std::vector<std::string>& calls) {
  std::string list;
  for (size_t i = 0; i < std::min(calls.size(), kCallsNamedMax); ++i) list += (i == 0 ? "" : ", ") + calls[i];
  if (calls.size() > kCallsNamedMax) list += fmt::format(" and {} more", calls.size() - kCallsNamedMax);
  return list;
}

std::string in_flight(const std::vector<std::string>& calls) {
  return calls.empty() ? "what is in flight" : list_of(calls);
}

// "nodes: all of edge, gpu run here; …"; "" if the pipeline is of one machine.
std::string nodes_here(const graph::Graph& graph) {
  if (graph.nodes.size() < 2) return "";
  std::string list;
  for (const std::string& name : graph::node_names(graph)) list += (list.empty() ? "" : ", ") + name;
  return "nodes: all of " + list + " run here; `millrace plan --node NAME` shows what is one node's";
}

// The name of the pipeline; a file that says none is called as itself, and a line is its own name.
std::string name_of(const graph::Graph& graph, const std::string& pipeline) {
  if (!graph.name.empty()) return graph.name;
  const std::filesystem::path path(pipeline);
  const std::string extension = path.extension().string();
  const bool is_file = extension == ".yaml" || extension == ".yml" || extension == ".json";
  return is_file ? path.stem().string() : pipeline;
}

std::string name_of_signal(int signal) { return std::string("SIG") + sigabbrev_np(signal); }

// One run of the command. Threads of the signals and of the watchdog call it too, so it outlives them.
class LiveRun {
 public:
  explicit LiveRun(const RunCommand& command)
      : command_(command),
        progress_(progress_of(command), command.duration_s),
        log_(settings_of(command, progress_, log_tail_)),
        watch_(std::make_shared<plugin::CallWatch>(
            plugin::CallWatch::Options{.on_message = [this](const std::string& line) { log_.log_line(line); }})) {}
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  ProgressLine& progress() { return progress_; }
  exec::Run& run() { return *run_; }
  // Empty while there is no run.
  Report report() {
    const std::shared_ptr<exec::Run> run = running();
    Report report = run ? run->report() : Report{};
    const std::lock_guard lock(mutex_);
    if (node_) report.links = node_->links();
    return report;
  }

  // Throws what compose::compile() throws, and Failure for files that it cannot or may not write.
  void compile() {
    compiled_ = logged(log_, [&] { return compose::compile(command_, print_warning, watch_); });
    refuse_shared_outputs(*compiled_.composition, command_);
    open_files(); // before anything runs
  }

  // Throws what exec::Run::start() throws.
  void start() {
    exec::RunOptions options = run_options();
    options.quiet = command_.quiet;
    options.ticks_max = command_.ticks;
    options.duration_ns = static_cast<int64_t>(command_.duration_s * 1e9);
    const std::shared_ptr<exec::Run> run = compiled_.composition->make_run(options);
    logged(log_, [&] { run->start(); });
    take(run, std::make_shared<embed::Streams>(*compiled_.composition, *run), compiled_.composition.get());
  }

  // Opens the page's port before anything runs, because its address may be refused. Throws Failure.
  void listen() {
    serve::WebOptions options{command_.web, command_.web_hosts, certificate()};
    options.on_page = [this](const serve::HandlerPage& page, const std::string& link, const std::string& watch_link) {
      print_links(page.title, link, watch_link);
    };
    web_.emplace(std::move(options));
  }

  // Lets other processes of this user, and pages, watch and steer the run from now on.
  void open_control() {
    if (command_.control == "off" && command_.web.empty()) return;
    control_ = std::make_unique<serve::Control>(steered_run());
    if (command_.control != "off") open_socket();
    if (!command_.web.empty()) open_pages();
  }

  std::string web_metrics() const { return web_ ? web_metrics_text(web_->refusals()) : ""; }

  // Called once the run is over: its clients are told so.
  void close_control() {
    std::unique_ptr<serve::ControlSocket> socket;
    {
      const std::lock_guard lock(mutex_);
      socket = std::move(socket_);
    }
    if (web_) web_->stop();
    if (control_) control_->end();
  }

  // Runs one node of the pipeline to the end of the whole run. Throws Failure if it could not begin. `running` is
  // called once there is a run to report of.
  Result run_node(const std::function<void()>& running) {
    return logged(log_, [&] {
      pipeline_ = compose::load_node(command_, print_warning, watch_);
      node::NodeHooks hooks;
      hooks.prepare = [this] { return pipeline_->prepare(); };
      hooks.run_options = [this] { return run_options(); };
      const embed::Composition* composed = nullptr;
      hooks.composed = [this, &composed](const embed::Composition& composition) {
        refuse_shared_outputs(composition, command_);
        open_files();
        composed = &composition;
      };
      hooks.running = [this, &composed, running](const std::shared_ptr<exec::Run>& run) {
        take(run, run ? std::make_shared<embed::Streams>(*composed, *run) : nullptr, run ? composed : nullptr);
        if (run) running();
      };
      hooks.tell = [this](const std::string& line) {
        if (!command_.quiet) progress_.message(line);
      };
      hooks.warn = [this](const std::string& line) { progress_.message(line); };
      open_control(); // before the node says that it listens, since whoever reads that may steer it
      auto node = std::make_unique<node::Node>(pipeline_->graph, node_options(), hooks);
      {
        const std::lock_guard lock(mutex_);
        node_ = std::move(node);
        if (stopped_) node_->stop();
      }
      NodeStatus::Options status;
      status.folder = compose::node_folder();
      status.pipeline = command_.pipeline;
      status.node = command_.node;
      status.program = MILLRACE_VERSION;
      status.fleet = [this] { return node_->look_around(); };
      status.report = [this] { return report(); };
      status.on_trouble = [this](const std::string& words) { progress_.set_trouble(words); };
      const NodeStatus told(status);
      node::NodeResult ended = node_->run();
      {
        const std::lock_guard lock(mutex_);
        reports_ = std::move(ended.reports);
        traces_ = std::move(ended.traces);
      }
      return std::move(ended.result);
    });
  }

  // Called once the run has started: if it cannot start, the error comes first.
  void print_notes() {
    if (!command_.web_hosts.empty() && !web_->listens())
      progress_.message("warning: --web-host names the machine of a page, and there is none; --web makes one");
    if (command_.quiet) return;
    if (const std::string nodes = nodes_here(compiled_.composition->graph()); !nodes.empty()) progress_.message(nodes);
    for (const std::string& note : plan::notes_of_run(compiled_.composition->plan(), command_.verbose > 0))
      progress_.message("note: " + note);
  }

  // Begins the end of the run, before anything is written. Does not return if another thread is ending the process.
  void begin_end(int64_t log_within_ns = kLogWrittenWithinNs) {
    if (ended_.exchange(true))
      for (;;) pause();
    withdraw_control();
    log_.flush(log_within_ns);
    progress_.end();
  }

  // Writes the report and the trace, and says which of them, and of the log, could not be written. False: one could
  // not. Throws Failure if a signal came before the files were opened, and they cannot be opened.
  [[nodiscard]] bool write_files(const Result& result) {
    open_files();
    std::vector<std::optional<Error>> errors;
    errors.push_back(json_->write([&](std::ostream& out) { out << report_of(result) << "\n"; }));
    if (const std::shared_ptr<exec::Run> run = running())
      errors.push_back(trace_->write([&](std::ostream& out) { write_trace(traces_of(*run), out); }));
    if (!command_.log_file.empty() && log_.has_failed())
      errors.push_back(Error{code::write_failed, "the log " + command_.log_file + " is not complete", {}, {}, "", ""});
    std::erase_if(errors, [](const std::optional<Error>& error) { return !error; });
    for (const std::optional<Error>& error : errors) std::fprintf(stderr, "%s\n", format_error(*error).c_str());
    return errors.empty();
  }

  // Waits until the sentence about the signal was printed, so that it comes before the run's end; kToldWithin at most.
  void await_told() {
    std::unique_lock lock(mutex_);
    told_changed_.wait_for(lock, kToldWithin, [&] { return told_; });
  }

  // Called for the first signal.
  void stop(int signal) {
    // Lists the calls that are waited for before it stops the run, which may then be over at once. A terminal that
    // takes no output must not hold up the run.
    std::packaged_task<void()> tell([this, signal] { print_stop(signal); });
    const std::future<void> told = tell.get_future();
    std::thread teller;
    try {
      teller = start_thread("the thread that tells of a signal", [&tell] { tell(); });
      told.wait_for(kTellWithin);
    } catch (const Failure&) { // it is printed below
    }
    stop_run();
    if (teller.joinable())
      teller.join();
    else
      tell();
  }

  // True if a client of the control socket stopped the run.
  bool is_stopped_by_control() const { return stopped_by_control_.load(); }

  // Called for the second signal: writes what there is to report, and does not wait for calls that hang.
  void give_up(int signal) {
    begin_end(kLogLeftWithinNs);
    node::Node* node = nullptr;
    {
      const std::lock_guard lock(mutex_);
      node = node_.get();
    }
    if (node) node->leave_at_once();
    Result result;
    result.ok = false;
    result.error.code = code::ended_before_drained;
    result.error.what = "the run was ended by " + name_of_signal(signal) + " before it had drained";
    if (const std::vector<std::string> calls = calls_under_way(); !calls.empty())
      result.error.notes.push_back("it waited for " + list_of(calls));
    end_with(std::move(result));
    if (const std::shared_ptr<exec::Run> run = running()) run->interrupt(); // so that a camera or a socket is released
  }

 private:
  static LogSettings settings_of(const RunCommand& command, ProgressLine& progress,
                                 const std::shared_ptr<serve::LogTail>& tail) {
    LogSettings settings = log_settings(command);
    if (command.control != "off" || !command.web.empty())
      settings.on_record = [tail](const LogRecord& record) { tail->put(record); };
    settings.record_level =
        std::min(settings.line_level, settings.line_level_of_handlers); // clients make nothing heard
    if (!settings.file.empty()) settings.record_level = std::min(settings.record_level, settings.file_level);
    settings.on_line = [&progress](const std::string& line) { progress.message(line); };
    return settings;
  }

  exec::RunOptions run_options() {
    exec::RunOptions options;
    options.trace_all = !command_.trace.empty();
    options.sync_devices = command_.sync_devices;
    options.explain_crashes = true;
    options.on_progress = [this](const exec::Progress& now) { progress_.show(now); };
    options.log = &log_;
    options.on_hang = [this](const Error& error) { end_hung(error); };
    options.pages = &*web_;
    return options;
  }

  node::NodeOptions node_options() const {
    node::NodeOptions options;
    options.name = command_.node;
    for (const std::string& address : command_.listen) options.listen.push_back(net::parse_endpoint(address));
    for (const std::string& address : command_.coordinator) options.coordinator.push_back(net::parse_endpoint(address));
    options.patience_ns = static_cast<int64_t>(command_.patience_s * 1e9);
    if (command_.wait_s > 0) options.wait_ns = static_cast<int64_t>(command_.wait_s * 1e9);
    options.folder = compose::node_folder();
    options.program = MILLRACE_VERSION;
    options.decided.clock = pipeline_->choices.clock;
    options.decided.rate = pipeline_->choices.rate;
    options.decided.ticks_max = command_.ticks;
    options.decided.duration_s = command_.duration_s;
    options.decided.trace = !command_.trace.empty();
    return options;
  }

  void stop_run() {
    watch_->stop();
    std::shared_ptr<exec::Run> run;
    node::Node* node = nullptr;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      run = run_;
      node = node_.get();
    }
    if (node)
      node->stop(); // and the run with it
    else if (run)
      run->stop();
  }

  serve::SteeredRun steered_run() {
    serve::SteeredRun run;
    run.version = MILLRACE_VERSION;
    run.pipeline = name_of(pipeline_ ? pipeline_->graph : compiled_.composition->graph(), command_.pipeline);
    run.node = command_.node;
    run.elapsed_s = [begun = std::chrono::steady_clock::now()] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    };
    run.set = [this](const std::vector<exec::ParamChange>& changes, const serve::SetDone& done) { set(changes, done); };
    run.stop = [this] { stop_by_control(); };
    run.add_stream = [this](const std::string& set, const graph::Stream& stream, exec::StreamDone done) {
      streams()->add(set, stream, std::move(done));
    };
    run.remove_stream = [this](const std::string& set, const std::string& name, exec::StreamDone done) {
      streams()->remove(set, name, std::move(done));
    };
    run.streams = [this] { return report().streams; };
    run.describe = [this] { return describe_run(); };
    run.values = [this](const std::string& handler) {
      const std::lock_guard lock(composition_mutex_);
      const std::shared_ptr<exec::Run> now = running();
      if (!now || !composition_) refuse_unplanned();
      return serve::values_json(composition_->plan(), composition_->graph(), now->values(), handler);
    };
    run.counters = [this]() -> std::shared_ptr<exec::Counters> {
      const std::shared_ptr<exec::Run> now = running();
      if (!now) return nullptr;
      return {now->counters().release(), [now](exec::Counters* counters) { delete counters; }};
    };
    run.tap = [this](const std::string& output, const exec::TapOptions& options) {
      const std::shared_ptr<exec::Run> now = running();
      if (!now) refuse_unplanned();
      return now->tap(output, options);
    };
    run.state = [this] {
      const std::lock_guard lock(mutex_);
      return stopped_ ? "drains" : run_ ? "runs" : "starts";
    };
    run.log = log_tail_;
    return run;
  }

  // Without a socket the run goes on as well.
  void open_socket() {
    try {
      const std::lock_guard lock(mutex_); // from before the file is there: a signal finds it and removes it
      socket_ = std::make_unique<serve::ControlSocket>(*control_, serve::open_run_folder());
    } catch (const Failure& failure) {
      Log::Context context;
      context.code = code::control_not_open;
      const Error& why = failure.error();
      log_.say(LogLevel::warning, log_.source(), "no control socket: " + why.place.file + ": " + why.what, context);
    }
  }

  void open_pages() {
    web_->serve(*control_);
    print_links("page", web_->link(), web_->watch_link());
  }

  // Throws Failure if it cannot be used.
  http::Certificate certificate() const {
    if (!command_.tls_cert.empty()) return serve::read_certificate(command_.tls_cert, command_.tls_key);
    return command_.tls ? serve::own_certificate(compose::node_folder(), command_.web_hosts) : http::Certificate();
  }

  // The terminal alone has the links, and the log has not: with the first one anybody may steer the run.
  void print_links(const std::string& page, const std::string& link, const std::string& watch_link) {
    progress_.message_with_secret(page + ": " + link);
    progress_.message_with_secret("to watch alone: " + watch_link);
    if (web_->is_readable_on_the_way())
      progress_.message(
          "warning: the page is plain HTTP: on the way its token can be read, and with it the run can be "
          "steered; --tls encrypts it, or `ssh -L` leads to a page on the loopback");
  }

  // Called by the thread of the control socket, as the next two are.
  void stop_by_control() {
    if (stopped_by_control_.exchange(true)) return;
    const std::vector<std::string> calls = calls_under_way(); // once it is stopped they may be over
    stop_run();
    if (command_.quiet) return;
    progress_.message("stopped by `millrace stop` or another client: no more ticks; waiting for " + in_flight(calls));
  }

  void set(const std::vector<exec::ParamChange>& changes, const serve::SetDone& done) {
    const std::shared_ptr<exec::Run> run = running();
    if (!run)
      throw Failure(Error{code::parameter_not_live,
                          "no parameter can be changed yet",
                          {},
                          {"the run has not begun: its nodes have not met"},
                          "",
                          ""});
    if (node_)
      node_->set(run, changes, [done](const node::ChangesAnswer& answer) {
        done({answer.ticks, answer.away, answer.error});
      });
    else
      run->set(changes, [done](const std::vector<exec::TickOfClock>& ticks) { done({ticks}); });
  }

  void withdraw_control() {
    const std::lock_guard lock(mutex_);
    if (socket_) socket_->withdraw();
  }

  // Throws Failure: what a client asks of the plan is not known yet, or not any more.
  [[noreturn]] static void refuse_unplanned() {
    throw Failure(Error{
        code::parameter_not_live, "there is no plan yet", {}, {"the nodes have not met, or the run is over"}, "", ""});
  }

  std::string describe_run() {
    const std::lock_guard lock(composition_mutex_);
    if (!composition_) refuse_unplanned();
    const plan::Plan& plan = composition_->plan();
    std::string types;
    for (const plugin::HandlerInfo& info : plan.types)
      types += fmt::format("{}\"{}\": {}", types.empty() ? "" : ", ", info.type, declaration_json(info));
    return fmt::format("{{\"plan\": {}, \"types\": {{{}}}, \"picture\": {}, \"pages\": {}}}", plan::print_json(plan),
                       types, serve::picture_json(plan::picture_of(plan)), serve::pages_json(web_->pages()));
  }

  // `composition`: that of the run; null if there is none any more.
  void take(const std::shared_ptr<exec::Run>& run, std::shared_ptr<embed::Streams> streams,
            const embed::Composition* composition) {
    {
      const std::lock_guard lock(composition_mutex_);
      composition_ = composition;
    }
    {
      const std::lock_guard lock(mutex_);
      std::swap(streams_, streams);
    }
    streams.reset(); // the former ones, before their run goes; without the lock, because they answer
    {
      const std::lock_guard lock(mutex_);
      run_ = run;
      if (run && stopped_ && !node_) run->stop();
    }
    if (control_) control_->forget_run(); // the former one
  }

  std::shared_ptr<embed::Streams> streams() {
    if (pipeline_ && command_.node != graph::node_names(pipeline_->graph)[0])
      throw Failure(code::no_place, "streams come and go on node " + graph::node_names(pipeline_->graph)[0]);
    const std::lock_guard lock(mutex_);
    if (!streams_) throw Failure(code::no_place, "the nodes have not met yet");
    return streams_;
  }

  // Locked because a signal may ask for the report while the run still opens its files.
  void open_files() {
    const std::lock_guard lock(mutex_);
    if (!json_) json_.emplace(command_.json);
    if (!trace_) trace_.emplace(command_.trace);
  }

  std::string report_of(const Result& result) {
    if (command_.node.empty()) return to_json(result);
    const std::lock_guard lock(mutex_);
    return node::report_of_all(result, command_.node, reports_);
  }

  std::vector<TraceOfRun> traces_of(const exec::Run& run) {
    if (command_.node.empty()) return {run.trace()};
    const std::lock_guard lock(mutex_);
    return node::traces_of_all(run.trace(), command_.node, traces_);
  }

  std::shared_ptr<exec::Run> running() {
    const std::lock_guard lock(mutex_);
    return run_;
  }

  std::vector<std::string> calls_under_way() {
    std::vector<std::string> calls = watch_->words();
    if (const std::shared_ptr<exec::Run> run = running())
      for (const exec::CallUnderWay& call : run->calls_under_way()) calls.push_back(words_of(call));
    return calls;
  }

  void print_stop(int signal) {
    if (!command_.quiet && !ended_.load()) {
      progress_.message(name_of_signal(signal) + ": no more ticks; waiting for " + in_flight(calls_under_way()) +
                        "; a second signal ends it at once");
    }
    const std::lock_guard lock(mutex_);
    told_ = true;
    told_changed_.notify_all();
  }

  // Called by the monitor's thread if a handler does not return from its call.
  void end_hung(const Error& error) {
    begin_end(kLogLeftWithinNs);
    Result result;
    result.ok = false;
    result.error = error;
    end_with(std::move(result));
    _exit(kRunFailed);
  }

  void end_with(Result result) {
    std::fprintf(stderr, "%s\n", format_error(result.error).c_str());
    if (const std::shared_ptr<exec::Run> run = running()) result.report = run->report();
    try {
      (void)write_files(result); // the process ends with the code of its signal, or of the call that hangs
    } catch (const Failure& failure) {
      std::fprintf(stderr, "%s\n", format_error(failure.error()).c_str());
    }
    std::fflush(nullptr);
  }

  const RunCommand command_;
  ProgressLine progress_;
  const std::shared_ptr<serve::LogTail> log_tail_ = std::make_shared<serve::LogTail>();
  Log log_; // before the handlers, which may log until they are destroyed
  std::optional<ReportFile> json_, trace_;
  const std::shared_ptr<plugin::CallWatch> watch_;
  compose::Compiled compiled_;
  std::optional<compose::NodePipeline> pipeline_;       // with --node
  std::unique_ptr<node::Node> node_;                    // set once it is there, under `mutex_`
  std::map<std::string, std::string> reports_, traces_; // other nodes gave them; under `mutex_`
  std::mutex mutex_;
  std::shared_ptr<exec::Run> run_; // set once it has started
  bool stopped_ = false;
  bool told_ = false; // true once the first signal was reported
  std::condition_variable told_changed_;
  std::atomic<bool> ended_{false}, stopped_by_control_{false};
  std::shared_ptr<embed::Streams> streams_;         // null: the nodes have not met; under `mutex_`
  std::mutex composition_mutex_;                    // taken before `mutex_`
  const embed::Composition* composition_ = nullptr; // that of `run_`; under `composition_mutex_`
  std::unique_ptr<serve::Control> control_;
  std::unique_ptr<serve::ControlSocket> socket_; // last, as the next one: their threads use all of the above
  std::optional<serve::Web> web_;                // set before anything runs
};

// The driver of a lost device may never let its process exit. All is written, so this does not wait for it.
[[noreturn]] void leave(int code) {
  std::fflush(nullptr);
  _exit(code);
}

int run_to_end(LiveRun& live, const RunCommand& command, const Signals& signals) {
  std::optional<http::Server> metrics; // before anything runs, because an address may be refused
  if (!command.metrics.empty())
    metrics.emplace(http::Listen{"--metrics", command.metrics, command.metrics_hosts, "--metrics-host"});
  live.listen();
  bool serves = false;
  const auto serve_metrics = [&] {
    if (!metrics || std::exchange(serves, true)) return; // another run may take the place of one that did not begin
    metrics->serve(metrics_site([&] { return metrics_text(live.report()) + live.web_metrics(); }));
    live.progress().message("metrics: " + metrics->url() +
                            "/metrics"); // the first message: scripts read the port there
  };
  // If a signal came, an error that a handler reports at its start is no failure: it was interrupted.
  const auto ended_at_start = [&] {
    live.close_control();
    const int signalled = signals.first();
    if (signalled) live.await_told();
    live.begin_end();
    if (!live.write_files({})) return static_cast<int>(kNotWritten);
    return signalled ? kSignalled + signalled : static_cast<int>(kDone);
  };
  Result result;
  bool came_at_start = false;
  try {
    if (!command.node.empty()) {
      result = live.run_node(serve_metrics);
    } else {
      live.compile();
      if (signals.first()) return ended_at_start();
      live.start();
      came_at_start = signals.first() != 0;
    }
  } catch (const Failure&) {
    if (signals.first() || live.is_stopped_by_control()) return ended_at_start();
    throw;
  }
  if (command.node.empty()) {
    serve_metrics();
    live.open_control();
    live.print_notes();
    result = live.run().wait();
  }
  const int signalled = signals.first();
  if (metrics) metrics->stop();
  live.close_control();

  if (signalled) live.await_told();
  live.begin_end();
  // Errors come first, and the numbers of the run last.
  if (!result.ok) std::fprintf(stderr, "%s\n", format_error(result.error).c_str());
  const bool are_written = live.write_files(result);
  if (!command.quiet) std::fputs(without_secrets(summary_words(result.report, command.explain)).c_str(), stderr);
  if (!result.ok) {
    if (exit_code_of(result.error) == kDeviceLost) leave(kDeviceLost);
    return came_at_start ? kSignalled + signalled : kRunFailed;
  }
  if (!are_written) return kNotWritten;
  return signalled ? kSignalled + signalled : kDone;
}

} // namespace

int run(const RunCommand& command) {
  if (!command.confine.empty()) { // before the log's file is opened
    const graph::Confine confine(command.confine);
    confine.require("--json", command.json, true);
    confine.require("--trace", command.trace, true);
    confine.require("--log-file", command.log_file, true);
  }
  refuse_unwritable(command.json);
  refuse_unwritable(command.trace);
  const embed::CrashReport crashes;
  LiveRun live(command);
  const Signals signals(
      {.stop = [&](int signal) { live.stop(signal); }, .give_up = [&](int signal) { live.give_up(signal); }});
  return run_to_end(live, command, signals);
}

} // namespace millrace::cli
