// See bench_options.h.
#include "cli/bench_options.h"

namespace millrace::cli {

CLI::App& add_bench(CLI::App& app, BenchOptions& options) {
  CLI::App& bench = *app.add_subcommand("bench", "measures the runtime itself, by the program millrace-bench");
  bench.add_option("NAME", options.names, "which; default: all");
  bench.add_option("--devices", options.devices, "devices that gpu and transfer measure; default: every GPU")
      ->type_name("LIST");
  bench.add_option("--json", options.json, "write the numbers")->type_name("FILE");
  return bench;
}

} // namespace millrace::cli
