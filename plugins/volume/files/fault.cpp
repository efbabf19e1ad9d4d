// Words the errors about files; see fault.h.
#include "plugins/volume/files/fault.h"

namespace millrace::volume {

namespace {
constexpr std::array<const char*, 3> kAxes = {"depth", "height", "width"};
} // namespace

VolumeFileError cannot_read(const std::string& path, const std::string& why) {
  return VolumeFileError("cannot read '" + path + "': " + why);
}

std::string wrong_type(std::string_view type) {
  const bool is_small = type.ends_with("int8") || type == "bool", is_short = type.ends_with("int16");
  const char* const nearest = is_small ? "uint8" : is_short ? "uint16" : "float32";
  return "its elements are " + std::string(type) + ", and a volume has uint8, uint16 or float32; the nearest is " +
         nearest;
}

void check_shape(const std::string& path, const std::string& key, const std::array<int64_t, 3>& shape) {
  for (size_t axis = 0; axis < 3; ++axis)
    if (shape[axis] < 1 || shape[axis] > kSideMax)
      throw cannot_read(path, key + ": the " + kAxes[axis] + " is " + std::to_string(shape[axis]) +
                                  ", and may be 1 to " + std::to_string(kSideMax));
}

bool is_voxel_type(DType dtype) {
  return dtype == dtype_of<uint8_t>() || dtype == dtype_of<uint16_t>() || dtype == dtype_of<float>();
}

std::string shown(const std::array<int64_t, 3>& shape) {
  return std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "x" + std::to_string(shape[2]);
}

} // namespace millrace::volume
