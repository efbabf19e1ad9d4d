// The runtime's own benchmarks, run by `millrace bench`.
#pragma once

#include <string>
#include <vector>

namespace millrace::bench {

// Runs the named benchmarks (all if none is named) and prints a table. Writes JSON if a path is given:
// [{bench, case, metric, unit, p50, p99, n}]. `devices`: the devices to measure, as `--devices` writes them; "": all
// GPUs. Returns the exit code. Throws Failure: an unknown name (MR0110), no device for a benchmark that is named
// (MR0408).
int run_benches(const std::vector<std::string>& names, const std::string& json_path, const std::string& devices);

} // namespace millrace::bench
