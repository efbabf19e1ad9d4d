// Writes networks for benchmarks, as .onnx files and as TorchScript, so that nothing has to be fetched.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::bench {

// Layers of 3×3 convolutions of float32 [any, 3, height, width], all weights of a layer equal, to one score a pixel:
// [any, 1, height, width]. Between the layers a ReLU, after the last one a sigmoid.
struct SmallNetwork {
  const char* name;
  uint32_t width, height;
  uint32_t channels, layers;
};
inline constexpr SmallNetwork kDisc{"disc", 64, 48, 3, 1}, kDeep{"deep", 64, 64, 16, 4};

// The bytes of an .onnx file; the fields are those of ONNX's onnx.proto.
std::string as_onnx(const SmallNetwork& network);
// A text for make_network.
std::string as_torch_script(const SmallNetwork& network);

} // namespace millrace::bench
