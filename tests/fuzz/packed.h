// Reads what corpus.py packed: the inputs of a fuzzer, one a line.
#pragma once

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

namespace millrace {

inline std::vector<std::vector<std::byte>> unpacked(const std::string& path) {
  std::ifstream stream(path);
  std::vector<std::vector<std::byte>> inputs;
  for (std::string line; std::getline(stream, line);) {
    std::vector<std::byte>& input = inputs.emplace_back();
    for (size_t at = 0; at < line.size(); ++at) {
      if (line[at] != '\\') {
        input.push_back(static_cast<std::byte>(line[at]));
      } else if (line[++at] == 'x') {
        input.push_back(static_cast<std::byte>(std::stoi(line.substr(at + 1, 2), nullptr, 16)));
        at += 2;
      } else {
        input.push_back(static_cast<std::byte>(line[at] == 'n' ? '\n' : '\\'));
      }
    }
  }
  return inputs;
}

} // namespace millrace
