// Reads what corpus.py packed: the inputs of a fuzzer, one a line.
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace millrace {

// `name`: a file of tests/fuzz/corpus in `source`, the project's folder.
inline std::vector<std::string> unpacked(const std::string& source, const std::string& name) {
  std::ifstream stream(source + "/tests/fuzz/corpus/" + name);
  std::vector<std::string> inputs;
  for (std::string line; std::getline(stream, line);) {
    std::string& input = inputs.emplace_back();
    for (size_t at = 0; at < line.size(); ++at) {
      if (line[at] != '\\') {
        input += line[at];
      } else if (line[++at] == 'x') {
        input += static_cast<char>(std::stoi(line.substr(at + 1, 2), nullptr, 16));
        at += 2;
      } else {
        input += line[at] == 'n' ? '\n' : '\\';
      }
    }
  }
  return inputs;
}

} // namespace millrace
