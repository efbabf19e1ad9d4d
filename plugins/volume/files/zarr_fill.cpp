// Reads the fill value of an array; see zarr_fill.h.
#include "plugins/volume/files/zarr_fill.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace millrace::volume {

namespace {

template <class Number>
void put(std::array<uint8_t, 4>& fill, Number number) {
  std::memcpy(fill.data(), &number, sizeof number);
}

std::optional<float> float_of(const std::string& text) {
  if (text == "NaN") return std::numeric_limits<float>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<float>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<float>::infinity();
  uint32_t bits = 0;
  if (text.size() != 10 || !text.starts_with("0x")) return std::nullopt;
  const auto [end, problem] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

} // namespace

std::array<uint8_t, 4> zarr_fill(const Metadata& metadata, DType dtype) {
  std::array<uint8_t, 4> element{};
  const std::optional<Metadata> fill = metadata.find("fill_value");
  if (!fill) return element; // null: anything will do
  if (dtype == dtype_of<float>()) {
    std::optional<float> number;
    const double real = fill->json().is_number() ? fill->json().get<double>() : 0;
    if (fill->json().is_number() && std::abs(real) <= std::numeric_limits<float>::max())
      number = static_cast<float>(real);
    if (fill->json().is_string()) number = float_of(fill->text());
    if (!number) throw fill->fault("it is no number of float32");
    put(element, *number);
  } else if (dtype == dtype_of<uint16_t>()) {
    put(element, static_cast<uint16_t>(fill->whole(0, UINT16_MAX)));
  } else {
    put(element, static_cast<uint8_t>(fill->whole(0, UINT8_MAX)));
  }
  return element;
}

} // namespace millrace::volume
