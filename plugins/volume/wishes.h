// Reads what handlers of volumes take from a tick: the voxels, and the records of a person who looks at them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "millrace/handler.h"
#include "millrace/nearest.h"
#include "plugins/volume/limits.h"
#include "plugins/volume/voxels.h"

namespace millrace::volume {

template <class Number>
Voxels<Number> voxels_of(const TensorView& volume) {
  const std::span<const int64_t> shape = volume.shape();
  return {volume.elements<Number>().data(), static_cast<int32_t>(shape[2]), static_cast<int32_t>(shape[1]),
          static_cast<int32_t>(shape[0])};
}
// Throws std::invalid_argument if a volume may not have so many voxels along a side.
inline void require_side(int64_t side) {
  if (side < 1 || side > kSideMax)
    throw std::invalid_argument("a side of the volume has " + std::to_string(side) + " voxels, and may have 1 to " +
                                std::to_string(kSideMax));
}
// The same for the sides that are known before the run.
inline void require_sides(const Format& volume) {
  for (int axis = 0; axis < 3 && volume.rank == 3; ++axis)
    if (volume.shape_kind[axis] == MR_DIM_FIXED) require_side(volume.shape[axis]);
}

// The record on this tick; a new one where there is none.
template <class Record>
Record record_of(const Input<Records<Record>>& input, Tick& tick) {
  if (!input.present(tick) || input(tick).size() == 0) return {};
  return input(tick).data()[0];
}
template <class Record>
bool is_equal(const Record& one, const Record& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

// Throws std::invalid_argument for a number that is not in its range, or none.
inline void require(const char* what, float number, Limits limits) {
  if (limits.have(number)) return;
  throw std::invalid_argument(std::string(what) + " is " + std::to_string(number) + ", and may be " +
                              std::to_string(limits.least) + " to " + std::to_string(limits.most));
}

// The name in a field, which a zero ends if it is shorter.
template <size_t kBytes>
std::string text_of(const uint8_t (&field)[kBytes]) {
  return {field, std::find(field, field + kBytes, uint8_t{0})};
}

// The name that a record gives, or the handler's parameter where it gives none. Throws std::invalid_argument for one
// that is not among the choices. `what`: "the look's map".
inline std::string chosen(const char* what, const std::string& given, const std::string& parameter,
                          std::initializer_list<const char*> choices) {
  if (given.empty()) return parameter;
  if (std::find(choices.begin(), choices.end(), given) != choices.end()) return given;
  std::string listed;
  for (const char* const choice : choices) listed += (listed.empty() ? "" : ", ") + std::string(choice);
  const std::string nearest = nearest_name(given, {choices.begin(), choices.end()});
  throw std::invalid_argument(std::string(what) + " is \"" + given + "\", and may be " + listed +
                              (nearest.empty() ? "" : "\ntry: " + nearest));
}

} // namespace millrace::volume
