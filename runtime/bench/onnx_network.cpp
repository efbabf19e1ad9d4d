// See onnx_network.h.
#include "bench/onnx_network.h"

#include <vector>

namespace millrace::bench {
namespace {

// Numbers of onnx.proto.
constexpr uint32_t kFloat = 1, kInts = 7;
constexpr uint32_t kIrVersion = 8, kOperators = 13;

// Protobuf: a whole number in groups of seven bits, the lowest first.
std::string varint(uint64_t number) {
  std::string bytes;
  for (; number > 0x7f; number >>= 7) bytes += static_cast<char>((number & 0x7f) | 0x80);
  return bytes + static_cast<char>(number);
}
std::string number(uint32_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string message(uint32_t field, const std::string& content) {
  return varint((field << 3) | 2) + varint(content.size()) + content;
}

// ValueInfoProto of [any, channels, side, side].
std::string picture_port(const std::string& name, uint32_t channels, uint32_t side) {
  std::string dims = message(1, message(2, "any"));
  for (const uint32_t extent : {channels, side, side}) dims += message(1, number(1, extent));
  return message(1, name) + message(2, message(1, number(1, kFloat) + message(2, dims)));
}

// TensorProto: weights of one value that keep sums near what went in.
std::string weights(const std::string& name, uint32_t to, uint32_t from) {
  constexpr uint32_t kSide = 3;
  const float one = 1.0f / static_cast<float>(from * kSide * kSide);
  const std::vector<float> values(size_t{to} * from * kSide * kSide, one);
  std::string bytes;
  for (const uint32_t extent : {to, from, kSide, kSide}) bytes += number(1, extent);
  return bytes + number(2, kFloat) + message(8, name) +
         message(9, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

std::string node(const std::string& kind, const std::vector<std::string>& inputs, const std::string& output,
                 const std::string& attributes = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += message(1, input);
  return bytes + message(2, output) + message(4, kind) + attributes;
}

} // namespace

std::string convolutions_as_onnx(uint32_t side, uint32_t channels, uint32_t layers) {
  std::string padding = message(1, "pads");
  for (int edge = 0; edge < 4; ++edge) padding += number(8, 1);
  padding = message(5, padding + number(20, kInts));
  std::string graph, initializers, last = "patch";
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const std::string index = std::to_string(layer), conv = "conv" + index;
    const bool is_last = layer + 1 == layers;
    initializers += message(5, weights("w" + index, is_last ? 1 : channels, layer == 0 ? 3 : channels));
    graph += message(1, node("Conv", {last, "w" + index}, conv, padding));
    last = is_last ? "scores" : "relu" + index;
    graph += message(1, node("Relu", {conv}, last));
  }
  graph += message(2, "convolutions") + initializers + message(11, picture_port("patch", 3, side)) +
           message(12, picture_port("scores", 1, side));
  return number(1, kIrVersion) + message(7, graph) + message(8, message(1, "") + number(2, kOperators));
}

} // namespace millrace::bench
