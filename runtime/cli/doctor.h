// Finds which of the things that millrace can use are on this machine; `millrace doctor` prints them.
#pragma once

#include <string>
#include <vector>

#include "plugin/registry.h"

namespace millrace::cli {

// One thing that is there or missing.
struct Finding {
  std::string part; // "devices", "plugins", "codecs", "fonts", or a type and what it offers: "video.writer encoders"
  std::string name; // "cuda", "OpenCV"
  bool there = false;
  std::string detail; // a description, or the reason why it is missing, in the words of the library that was asked
  std::string remedy; // the command that installs it; "" if there is none, or nothing is missing
};

// Looks and changes nothing. `registry` must have scanned its folders.
std::vector<Finding> examine(const plugin::Registry& registry);
std::string findings_text(const std::vector<Finding>& findings);
std::string findings_json(const std::vector<Finding>& findings);

} // namespace millrace::cli
