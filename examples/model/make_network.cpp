// Writes a TorchScript network without Python: from a text that holds the body of its class, with a method `forward`.
//
//   make_network disc.txt disc.pt
//   make_network layer.txt layer.pt weights=16x3x3x3 bias=16
//
// The words after the files are parameters of the network, self.weights in the text: of this shape, with numbers from
// -1 to 1 in equal steps. A network that learnt its own comes from Python.
//
// millrace builds it where it finds libtorch. By itself, with Debian's libtorch-dev:
//
//   g++ -std=c++17 make_network.cpp -o make_network -I/usr/include/torch/csrc/api/include -ltorch_cpu -lc10
#include <torch/script.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

// Adds the parameter that a word like weights=16x3x3x3 says. False if it says none.
bool add_parameter(torch::jit::Module& network, const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos) return false;
  std::vector<int64_t> shape;
  int64_t count = 1;
  std::stringstream rest(word.substr(equals + 1));
  for (int64_t extent = 0; rest >> extent && extent > 0;) {
    shape.push_back(extent);
    count *= extent;
    if (char by = 0; rest >> by) {
      if (by != 'x') return false;
      continue;
    }
    network.register_parameter(word.substr(0, equals), torch::linspace(-1, 1, count).view(shape), false);
    return true;
  }
  return false;
}

} // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "usage: make_network TEXT NETWORK.pt [PARAMETER=16x3x3x3 …]\n";
    return 2;
  }
  std::stringstream text;
  if (!(text << std::ifstream(words[1]).rdbuf())) {
    std::cerr << words[1] << " cannot be read, or is empty\n";
    return 1;
  }
  try {
    torch::jit::Module network("Network");
    for (int word = 3; word < count; ++word) {
      if (add_parameter(network, words[word])) continue;
      std::cerr << words[word] << " names no parameter with its shape, as weights=16x3x3x3 does\n";
      return 2;
    }
    network.define(text.str());
    if (const std::filesystem::path folder = std::filesystem::path(words[2]).parent_path(); !folder.empty())
      std::filesystem::create_directories(folder);
    network.save(words[2]);
  } catch (const c10::Error& error) {
    std::cerr << error.what_without_backtrace() << "\n";
    return 1;
  } catch (const std::exception& error) { // the text is no TorchScript
    std::cerr << error.what() << "\n";
    return 1;
  }
}
