// The runtime's own benchmarks, run by `millrace bench`.
#pragma once

#include <string>
#include <vector>

namespace millrace::cli {

// Runs those named (all where none is) and prints a table; writes JSON where a path is given:
// [{bench, case, metric, unit, p50, p99, n}]. Returns the exit code; an unknown name is a Failure (MR01xx).
int run_benches(const std::vector<std::string>& names, const std::string& json_path);

} // namespace millrace::cli
