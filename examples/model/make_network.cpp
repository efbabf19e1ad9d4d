// Writes a TorchScript network without Python: from a text that holds the body of its class, with a method `forward`.
//
//   make_network disc.txt disc.pt
//
// millrace builds it where it finds libtorch. By itself, with Debian's libtorch-dev:
//
//   g++ -std=c++17 make_network.cpp -o make_network -I/usr/include/torch/csrc/api/include -ltorch_cpu -lc10
#include <torch/script.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

int main(int count, char** words) {
  if (count != 3) {
    std::cerr << "usage: make_network TEXT NETWORK.pt\n";
    return 2;
  }
  std::stringstream text;
  if (!(text << std::ifstream(words[1]).rdbuf())) {
    std::cerr << words[1] << " cannot be read, or is empty\n";
    return 1;
  }
  try {
    torch::jit::Module network("Network");
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
