// The choices of a person who runs or plans a pipeline, as texts: those of the command line, or of an application.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace millrace::compose {

// Texts are as given; "" if not given.
struct PipelineOptions {
  std::string pipeline; // a file, or a line
  std::vector<std::string> sets;
  std::string devices; // "": those of the node in the pipeline, else the host
  std::string clock, rate, facts;
  uint32_t threads = 0;
  bool no_probe = false;
  std::vector<std::string> plugin_paths;
  std::string installed_plugins; // a folder that counts as one of the standard ones
  std::string machine;           // a file; "": this machine's own
  std::string plan;              // a saved plan
  std::string confine;           // the folder of all files; "": anywhere
  std::string node;              // the node that is planned for, or run; "": all of them run here
};

// Takes a warning, one line. Null: nobody wants warnings.
using Warn = std::function<void(const std::string& line)>;

} // namespace millrace::compose
