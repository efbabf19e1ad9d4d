// Writes a network for benchmarks: convolutions with weights of one value, so that nothing has to be fetched.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::bench {

// The bytes of an .onnx file: `patch`, float32 [any, 3, side, side], through 3×3 convolutions of so many channels and
// layers, each with a ReLU, to `scores`, float32 [any, 1, side, side]. Fields are those of ONNX's onnx.proto.
std::string convolutions_as_onnx(uint32_t side, uint32_t channels, uint32_t layers);

} // namespace millrace::bench
