// A position in the text that a person wrote.
#pragma once

#include <string>

namespace millrace {

// The file of every place in a one-line pipeline.
inline constexpr const char* kOneLineFile = "pipeline";

// A position in a pipeline text. line and column count from 1; 0: not known.
struct Place {
  std::string file; // as the user named it; kOneLineFile for a one-line pipeline
  int line = 0;
  int column = 0;
  // An edit that is proposed there is written in the syntax of a line, not of a file.
  bool is_one_line() const { return file == kOneLineFile; }
};

} // namespace millrace
