// See small_networks.h.
#include "bench/small_networks.h"

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

// ValueInfoProto of [any, channels, height, width].
std::string picture_port(const std::string& name, uint32_t channels, const SmallNetwork& network) {
  std::string dims = message(1, message(2, "any"));
  for (const uint32_t extent : {channels, network.height, network.width}) dims += message(1, number(1, extent));
  return message(1, name) + message(2, message(1, number(1, kFloat) + message(2, dims)));
}

constexpr uint32_t kKernel = 3; // the side of a convolution

struct Layer {
  uint32_t from, to; // channels
};
Layer layer_of(const SmallNetwork& network, uint32_t index) {
  return {index == 0 ? 3 : network.channels, index + 1 == network.layers ? 1 : network.channels};
}

// TensorProto: weights of one value, which keeps sums near what went in.
std::string weights(const std::string& name, const Layer& layer) {
  const std::vector<float> values(size_t{layer.to} * layer.from * kKernel * kKernel,
                                  1.0f / static_cast<float>(layer.from * kKernel * kKernel));
  std::string bytes;
  for (const uint32_t extent : {layer.to, layer.from, kKernel, kKernel}) bytes += number(1, extent);
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

std::string as_onnx(const SmallNetwork& network) {
  std::string padding = message(1, "pads");
  for (int edge = 0; edge < 4; ++edge) padding += number(8, 1);
  padding = message(5, padding + number(20, kInts));
  std::string nodes, initializers, last = "patch";
  for (uint32_t index = 0; index < network.layers; ++index) {
    const std::string word = std::to_string(index), weight = "weight" + word, sum = "sum" + word;
    const bool is_last = index + 1 == network.layers;
    initializers += message(5, weights(weight, layer_of(network, index)));
    nodes += message(1, node("Conv", {last, weight}, sum, padding));
    last = is_last ? "scores" : "layer" + word;
    nodes += message(1, node(is_last ? "Sigmoid" : "Relu", {sum}, last));
  }
  const std::string graph = nodes + message(2, network.name) + initializers +
                            message(11, picture_port("patch", 3, network)) +
                            message(12, picture_port("scores", 1, network));
  return number(1, kIrVersion) + message(7, graph) + message(8, message(1, "") + number(2, kOperators));
}

std::string as_torch_script(const SmallNetwork& network) {
  std::string text = "def forward(self, patch):\n    values = patch\n";
  for (uint32_t index = 0; index < network.layers; ++index) {
    const Layer layer = layer_of(network, index);
    const std::string shape = "[" + std::to_string(layer.to) + ", " + std::to_string(layer.from) + ", 3, 3]";
    text += "    weight" + std::to_string(index) + " = torch.ones(" + shape + ") / " +
            std::to_string(layer.from * kKernel * kKernel) + ".0\n";
    text += "    values = torch." + std::string(index + 1 == network.layers ? "sigmoid" : "relu") +
            "(torch.conv2d(values, weight" + std::to_string(index) + ", None, [1, 1], [1, 1]))\n";
  }
  return text + "    return values\n";
}

} // namespace millrace::bench
