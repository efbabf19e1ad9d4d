// What this machine has of what millrace can use, as `millrace doctor` tells it.
#pragma once

#include <string>
#include <vector>

#include "plugin/registry.h"

namespace millrace::cli {

// One thing that is there or not.
struct Finding {
  std::string part; // "devices", "plugins", "codecs", "fonts", or of a type and what it offers: "video.writer encoders"
  std::string name; // "cuda", "OpenCV"
  bool there = false;
  std::string detail; // what it is, or why it is not there: the words of who knows
  std::string remedy; // the command that brings it; "" where there is none, or nothing is missing
};

// Looks; changes nothing. `registry` has scanned its folders.
std::vector<Finding> examine(const plugin::Registry& registry);
std::string findings_text(const std::vector<Finding>& findings);
std::string findings_json(const std::vector<Finding>& findings);

} // namespace millrace::cli
