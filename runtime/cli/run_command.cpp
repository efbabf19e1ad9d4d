// `millrace run`: compiles, runs to the end or to a signal, reports.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/metrics_server.h"
#include "cli/metrics_text.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "cli/signals.h"

namespace millrace::cli {

namespace {

void write_trace(const exec::Run& run, const std::string& path) {
  std::ofstream file(path);
  if (file) run.write_trace(file);
  if (!file.flush()) throw Failure(111, "cannot write " + path);
}

// The report and a handler's bytes in one stream could not be told apart.
void refuse_shared_stdout(const embed::Composition& composition) {
  for (const plan::HandlerPlan& planned : composition.plan().handlers) {
    for (const graph::Handler& handler : composition.graph().handlers) {
      if (handler.name != planned.name) continue;
      for (const graph::Param& param : handler.params) {
        const auto* known = planned.info->find_param(param.name);
        if (known && (known->raw.flags & MR_PARAM_WRITES_PATH) && param.text == "-")
          throw Failure(Error{105,
                              "--json - and " + handler.name + " would both write to standard output",
                              {},
                              {},
                              "",
                              "--json report.json"});
      }
    }
  }
}

} // namespace

int run(const RunCommand& command) {
  Signals signals;                      // before anything makes a thread
  std::optional<MetricsServer> metrics; // before anything runs: an address may be refused
  if (!command.metrics.empty()) metrics.emplace(command.metrics);
  const Compiled compiled = compile(command, true);
  if (command.json == "-") refuse_shared_stdout(*compiled.composition);
  ProgressLine progress(!command.quiet && isatty(STDERR_FILENO), command.duration_s);
  exec::RunOptions options;
  options.ticks_max = command.ticks;
  options.duration_ns = static_cast<int64_t>(command.duration_s * 1e9);
  options.trace_all = !command.trace.empty();
  options.on_progress = [&](const exec::Progress& now) { progress.show(now); };
  options.on_message = [&](const std::string& line) { progress.message(line); };

  const std::unique_ptr<exec::Run> run = compiled.composition->make_run(options);
  signals.expect_run([&] {
    for (const auto& handler : compiled.composition->plan().handlers)
      if (plugin::Instance* instance = compiled.composition->find(handler.name)) instance->interrupt();
  });
  try {
    run->start();
  } catch (...) {
    signals.detach();
    if (signals.came_at_start()) return kSignalled + signals.first(); // it was interrupted as it was asked
    throw;
  }
  signals.attach(*run);
  if (metrics) metrics->serve([&] { return metrics_text(run->report()); });
  if (metrics) progress.message("metrics: " + metrics->url());
  const exec::Result result = run->wait();
  if (metrics) metrics->stop();
  signals.detach();

  progress.clear();
  if (!command.quiet) std::fputs(summary_words(result.report).c_str(), stderr);
  if (!command.json.empty()) write_file(command.json, exec::to_json(result) + "\n");
  if (!command.trace.empty()) write_trace(*run, command.trace);
  if (!result.ok) {
    std::fprintf(stderr, "%s\n", format_error(result.error).c_str());
    if (signals.came_at_start()) return kSignalled + signals.first(); // that interrupted handlers in mid-start
    const ExitCode code = exit_code_of(result.error);
    return code == kDeviceLost ? kDeviceLost : kRunFailed;
  }
  return signals.first() ? kSignalled + signals.first() : kDone;
}

} // namespace millrace::cli
