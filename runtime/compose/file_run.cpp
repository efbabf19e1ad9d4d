// Implements file_run.h: a composition and its run, or one node of several.
#include "millrace/file_run.h"

#include <mutex>
#include <stdexcept>

#include "compose/node_folder.h"
#include "compose/pipeline.h"
#include "embed/outcome.h"
#include "embed/translated.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "node/node.h"
#include "node/report.h"
#include "observe/log.h"
#include "plugin/call_watch.h"
#include "plugin/registry.h"

namespace millrace {

namespace {

compose::PipelineOptions pipeline_options(const FileRunOptions& options) {
  embed::check_threads(options.threads);
  compose::PipelineOptions given;
  given.pipeline = options.pipeline;
  given.sets = options.sets;
  given.devices = options.devices;
  given.clock = options.clock;
  given.rate = options.rate;
  given.threads = options.threads;
  given.plugin_paths = options.plugin_paths;
  given.installed_plugins = options.installed_plugins;
  given.machine = options.machine;
  given.node = options.node;
  return given;
}

// Gives lines of all threads to the application, one at a time.
std::function<void(const std::string&)> one_at_a_time(std::function<void(const std::string&)> on_message) {
  if (!on_message) return [](const std::string&) {};
  const auto mutex = std::make_shared<std::mutex>();
  return [mutex, tell = std::move(on_message)](const std::string& line) {
    const std::lock_guard lock(*mutex);
    tell(line);
  };
}

LogSettings log_settings(const std::function<void(const std::string&)>& tell) {
  LogSettings settings;
  settings.on_line = tell;
  return settings;
}

std::vector<net::Endpoint> endpoints(const std::vector<std::string>& addresses) {
  std::vector<net::Endpoint> endpoints;
  for (const std::string& address : addresses) endpoints.push_back(net::parse_endpoint(address));
  return endpoints;
}

} // namespace

// The mutex guards `run_`, `node_` and `stopped_`, which stop() looks at.
class FileRun::Work {
 public:
  explicit Work(FileRunOptions options)
      : options_(std::move(options)),
        given_(pipeline_options(options_)),
        tell_(one_at_a_time(options_.on_message)),
        log_(log_settings(tell_)),
        watch_(std::make_shared<plugin::CallWatch>(plugin::CallWatch::Options{.on_message = tell_})) {
    if (given_.node.empty()) {
      compiled_ = compose::compile(given_, tell_, watch_);
      return;
    }
    pipeline_ = compose::load_node(given_, tell_, watch_);
    auto node = std::make_unique<node::Node>(pipeline_.graph, node_options(), hooks());
    const std::lock_guard lock(mutex_);
    node_ = std::move(node);
  }

  Outcome run() {
    if (has_run_) throw std::logic_error("a FileRun runs once");
    has_run_ = true;
    Result result;
    std::string report;
    if (node_) {
      node::NodeResult ended = node_->run();
      result = std::move(ended.result);
      report = node::report_of_all(result, given_.node, ended.reports);
    } else {
      exec::RunOptions options = run_options();
      options.ticks_max = options_.ticks_max;
      options.duration_ns = options_.duration_ns;
      const std::shared_ptr<exec::Run> run = compiled_.composition->make_run(options);
      run->start();
      take(run);
      result = run->wait();
      report = to_json(result);
    }
    log_.flush(embed::kLogWrittenWithinNs);
    return embed::outcome_of(result, std::move(report));
  }

  void stop() {
    watch_->stop();
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (node_)
      node_->stop(); // and the run with it
    else if (run_)
      run_->stop();
  }

 private:
  exec::RunOptions run_options() {
    exec::RunOptions options;
    options.log = &log_;
    return options;
  }

  node::NodeOptions node_options() const {
    node::NodeOptions options;
    options.name = given_.node;
    options.listen = endpoints(options_.listen);
    options.coordinator = endpoints(options_.coordinator);
    options.patience_ns = options_.patience_ns;
    if (options_.wait_ns > 0) options.wait_ns = options_.wait_ns;
    options.folder = compose::node_folder();
    options.program = MILLRACE_VERSION;
    options.decided.clock = pipeline_.choices.clock;
    options.decided.rate = pipeline_.choices.rate;
    options.decided.ticks_max = options_.ticks_max;
    options.decided.duration_s = static_cast<double>(options_.duration_ns) * 1e-9;
    return options;
  }

  node::NodeHooks hooks() {
    node::NodeHooks hooks;
    hooks.prepare = [this] { return pipeline_.prepare(); };
    hooks.run_options = [this] { return run_options(); };
    hooks.composed = [](const embed::Composition&) {};
    hooks.running = [this](const std::shared_ptr<exec::Run>& run) { take(run); };
    hooks.tell = hooks.warn = tell_;
    return hooks;
  }

  void take(const std::shared_ptr<exec::Run>& run) {
    const std::lock_guard lock(mutex_);
    run_ = run;
    if (run && stopped_ && !node_) run->stop();
  }

  const FileRunOptions options_;
  const compose::PipelineOptions given_;
  const std::function<void(const std::string&)> tell_; // any thread
  Log log_;                                            // before the handlers, which may log until they are destroyed
  const std::shared_ptr<plugin::CallWatch> watch_;
  compose::Compiled compiled_;     // without a node
  compose::NodePipeline pipeline_; // with one
  bool has_run_ = false;
  std::mutex mutex_;
  std::unique_ptr<node::Node> node_;
  std::shared_ptr<exec::Run> run_;
  bool stopped_ = false;
};

FileRun::FileRun(FileRunOptions options)
    : work_(embed::translated([&] { return std::make_unique<Work>(std::move(options)); })) {}
FileRun::~FileRun() {
  const PlainNumbers numbers; // handlers are stopped
  work_ = nullptr;
}
Outcome FileRun::run() {
  return embed::translated([&] { return work_->run(); });
}
void FileRun::stop() { work_->stop(); }

} // namespace millrace
