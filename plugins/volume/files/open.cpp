// Finds out what a path is, and opens it.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "plugins/volume/files/fault.h"
#include "plugins/volume/files/input_file.h"
#include "plugins/volume/files/plain_file.h"
#include "plugins/volume/files/tiff_file.h"
#include "plugins/volume/files/volume_file.h"
#include "plugins/volume/files/zarr_file.h"

namespace millrace::volume {

namespace {

enum class Kind { npy, tiff, unknown };

constexpr const char* kFormats =
    "NPY, TIFF and OME-Zarr are known; raw numbers need shape=DEPTHxHEIGHTxWIDTH and dtype";

bool begins(const std::vector<uint8_t>& bytes, std::string_view with) {
  return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
}

Kind kind_of(const std::vector<uint8_t>& first) {
  using namespace std::string_view_literals;
  if (begins(first, "\x93NUMPY")) return Kind::npy;
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv})
    if (begins(first, magic)) return Kind::tiff;
  return Kind::unknown;
}

// A name that promises a format which the first bytes are not.
std::string promise_of(std::string path) {
  std::transform(path.begin(), path.end(), path.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (path.ends_with(".npy")) return "NPY";
  return path.ends_with(".tif") || path.ends_with(".tiff") || path.ends_with(".btf") ? "TIFF" : "";
}

} // namespace

std::unique_ptr<VolumeFile> open_volume(const std::string& path, const Wishes& wishes) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0)
    throw cannot_read(path, errno == ENOENT ? "there is no such file" : std::strerror(errno));
  if (S_ISDIR(facts.st_mode)) {
    if (!wishes.shape.empty()) throw cannot_read(path, "it is a folder, and shape is for a file of raw numbers");
    return open_zarr(path, wishes);
  }
  for (const auto& [is_given, name] : {std::pair(wishes.level != 0, "level"), std::pair(!wishes.at.empty(), "at")})
    if (is_given) throw cannot_read(path, std::string("it is a file, and ") + name + " is for the folder of a Zarr");
  if (!wishes.shape.empty()) return open_raw(path, wishes);
  switch (kind_of(InputFile(path).first_bytes(8))) {
    case Kind::npy: return open_npy(path);
    case Kind::tiff: return open_tiff(path);
    case Kind::unknown: break;
  }
  const std::string promised = promise_of(path);
  if (!promised.empty())
    throw cannot_read(path, "its name says " + promised + ", and its first bytes are not a " + promised + "'s");
  throw cannot_read(path, std::string("its first bytes are of no format that is known; ") + kFormats);
}

} // namespace millrace::volume
