// The program millrace-bench, which `millrace bench` runs in its place: the runtime's own benchmarks.
#include <exception>
#include <vector>

#include "bench/bench.h"
#include "cli/bench_options.h"
#include "cli/exit_code.h"
#include "cli/signals.h"
#include "cli/usage_error.h"
#include "observe/error_codes.h"
#include "observe/plain_numbers.h"

namespace millrace::bench {
namespace {

// Reads the arguments as those of `millrace bench`, so that help and errors are the same whichever program reads them.
int main_of(int argc, char** argv) {
  CLI::App app{"the runtime's own benchmarks", "millrace"};
  cli::BenchOptions options;
  cli::refuse_empty_values(cli::add_bench(app, options));
  std::vector<const char*> words = {"millrace", "bench"};
  words.insert(words.end(), argv + 1, argv + argc);
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::Success& success) { // --help
    return app.exit(success);
  } catch (const CLI::ParseError& failure) {
    return cli::fail(cli::usage_error(app, failure, {words.begin() + 1, words.end()}), cli::kWrongUsage);
  }
  try {
    return run_benches(options.names, options.json, options.devices);
  } catch (const Failure& failure) {
    return cli::fail(failure.error(), cli::exit_code_of(failure.error()));
  } catch (const std::exception& failure) {
    return cli::fail(Error{code::handler_failed, failure.what(), {}, {}, "", ""}, cli::kRunFailed);
  }
}

} // namespace
} // namespace millrace::bench

int main(int argc, char** argv) {
  const millrace::PlainNumbers numbers; // as in the command
  millrace::cli::prepare_standard_streams();
  return millrace::bench::main_of(argc, argv);
}
