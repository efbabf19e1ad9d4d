// The command line of `millrace bench`: the command reads it for its help and its errors, millrace-bench to do the
// work.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace::cli {

struct BenchOptions {
  std::vector<std::string> names; // none: all benchmarks
  std::string devices;            // "": every GPU
  std::string json;               // a file; "": none
};

// Adds the command `bench`. `options` has to outlive the App.
CLI::App& add_bench(CLI::App& app, BenchOptions& options);

} // namespace millrace::cli
