// Keeps what was found by computing a network, so that the next plan computes nothing: the shapes of its outputs, and
// the bytes that it took of a GPU.
//
//   millrace network shapes 1
//   3f0c9a51e2b47d88-4745517 1x3x320x320 -> 1x1x320x320
//   90b1d3c8f7a6e254-22310042 1x3x640x640 weights as f16, bytes on a GPU -> 276824064
//
// A line has the hash and the size of the network's file and the shapes of its inputs. After the arrow are the shapes
// of its outputs, or the bytes. The file is network_shapes.txt beside the machine file. It holds nothing that cannot be
// computed again: one that is damaged or cannot be written costs time alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace::model {

// The file's path: in the folder of $MILLRACE_MACHINE if that is set ("": there is none), else in the user's folder of
// settings for millrace. "": nothing is kept.
std::string path_of_shapes();

// Says which network and which inputs: the beginning of a line. Reads the network's file as a whole. Throws
// std::runtime_error if it cannot be read.
std::string key_of_shapes(const std::string& network, const std::vector<std::vector<int64_t>>& inputs);

struct KeptShapes {
  std::optional<std::vector<std::vector<int64_t>>> outputs; // none: these are not kept
  bool is_damaged = false;                                  // the file has lines that are none; they are passed over
};
KeptShapes find_shapes(const std::string& path, const std::string& key);

// Adds a line, and leaves out damaged ones. False if the file cannot be written.
bool keep_shapes(const std::string& path, const std::string& key, const std::vector<std::vector<int64_t>>& outputs);

} // namespace millrace::model
