// The runtime's own benchmarks, run by `millrace bench`.
#pragma once

#include <string>
#include <vector>

namespace millrace::cli {

// Runs those named (all where none is) and prints a table; writes JSON where a path is given:
// [{bench, case, metric, unit, p50, p99, n}]. `devices`: where those run that measure a device, as `--devices` writes
// them; "": on all GPUs. Returns the exit code. Throws Failure: an unknown name (MR0110), no device for what is named
// (MR0408).
int run_benches(const std::vector<std::string>& names, const std::string& json_path, const std::string& devices);

} // namespace millrace::cli
