// `millrace run`: compiles, runs to the end or to a signal, reports.
#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "cli/signals.h"

namespace millrace::cli {

int run(const RunCommand& command) {
  Signals signals; // before anything makes a thread
  const Compiled compiled = compile(command, true);
  ProgressLine progress(!command.quiet && isatty(STDERR_FILENO), command.duration_s);
  exec::RunOptions options;
  options.ticks_max = command.ticks;
  options.duration_ns = static_cast<int64_t>(command.duration_s * 1e9);
  options.on_progress = [&](const exec::Progress& now) { progress.show(now); };
  options.on_message = [&](const std::string& line) { progress.message(line); };

  const std::unique_ptr<exec::Run> run = compiled.composition->make_run(options);
  run->start();
  signals.attach(*run);
  const exec::Result result = run->wait();
  signals.detach();

  progress.clear();
  if (!command.quiet) std::fputs(summary_words(result.report).c_str(), stderr);
  if (!command.json.empty()) write_file(command.json, exec::to_json(result) + "\n");
  if (!result.ok) {
    std::fprintf(stderr, "%s\n", format_error(result.error).c_str());
    const ExitCode code = exit_code_of(result.error);
    return code == kDeviceLost ? kDeviceLost : kRunFailed;
  }
  return signals.first() ? kSignalled + signals.first() : kDone;
}

} // namespace millrace::cli
