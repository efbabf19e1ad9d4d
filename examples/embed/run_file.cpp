// An application that runs a pipeline from a file as the command does: run_file FILE [NODE [ADDRESS [DEVICES]]].
#include <millrace/file_run.h>

#include <cstdio>

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: run_file FILE [NODE [ADDRESS [DEVICES]]]\n");
    return 2;
  }
  millrace::FileRunOptions options;
  options.pipeline = words[1];
  if (count > 2) options.node = words[2];                                 // "": all nodes here
  if (count > 3 && words[3][0] != '\0') options.coordinator = {words[3]}; // "": as the pipeline says
  if (count > 4) options.devices = words[4];
  options.on_message = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  try {
    millrace::FileRun run(options);
    const millrace::Outcome outcome = run.run();
    std::printf("%llu ticks\n", static_cast<unsigned long long>(outcome.ticks));
    if (!outcome.ok) std::fprintf(stderr, "%s\n", outcome.error.c_str());
    return outcome.ok ? 0 : 1;
  } catch (const millrace::RuntimeError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
