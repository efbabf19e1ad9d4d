// A file of a volume from a stranger: as NPY, TIFF, metadata of Zarr, or one packed chunk.
//
// The first byte says which; the rest is the file.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugins/volume/files/chunk_codec.h"
#include "plugins/volume/files/metadata.h"
#include "plugins/volume/files/volume_file.h"
#include "plugins/volume/files/zarr_array.h"
#include "plugins/volume/files/zarr_axes.h"
#include "plugins/volume/files/zarr_group.h"

namespace millrace::volume {
namespace fuzz {

constexpr uint64_t kDecodedBytesMax = 16 << 20; // a larger volume is opened, and not read

// The bytes as a file that has no name of its own.
class NamelessFile {
 public:
  explicit NamelessFile(std::span<const uint8_t> bytes) : file_(memfd_create("fuzzed", MFD_CLOEXEC)) {
    is_whole_ = file_ >= 0 && ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  ~NamelessFile() { ::close(file_); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  bool is_whole() const { return is_whole_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
  bool is_whole_ = false;
};

inline const char* look_at_file(std::span<const uint8_t> bytes) {
  const NamelessFile file(bytes);
  if (!file.is_whole()) return nullptr;
  const auto volume = open_volume(file.path(), {});
  const VolumeDescription& what = volume->description();
  for (const int64_t side : what.shape)
    if (side < 1 || side > kSideMax) return "a side is 1 to 65536";
  if (const auto voxels = volume->mapped()) {
    if (voxels->size != what.bytes()) return "all voxels are mapped";
    if (voxels->size > bytes.size()) return "what is mapped lies in the file";
  }
  if (what.bytes() > kDecodedBytesMax) return nullptr;
  const auto decoded = std::make_unique<uint8_t[]>(what.bytes()); // of its exact size, for a sanitizer
  Crew crew(1);
  volume->read_into({decoded.get(), what.bytes()}, crew);
  return nullptr;
}

inline const char* look_at_array(const std::string& text) {
  const ZarrArray array = zarr_array_of(Metadata::parse(text, "fuzzed/zarr.json"), "fuzzed");
  if (array.shape.size() != array.chunk.size() || array.shape.size() != array.axes.size()) return "all have all axes";
  if (array.chunk_bytes() < 1 || array.chunk_bytes() > uint64_t{1} << 30) return "a chunk has 1 byte to 1 GiB";
  for (size_t axis = 0; axis < array.shape.size(); ++axis)
    if (array.shape[axis] < 1 || array.chunk[axis] < 1) return "an axis has an element";
  if (array.key_of(array.shape).find("..") != std::string::npos) return "a chunk lies in its folder";
  const VolumeAxes axes = choose_axes(array, "t=1,dim_0=0");
  for (size_t axis = 0; axis < array.shape.size(); ++axis)
    if (axes.place[axis] < 0 || axes.place[axis] >= array.shape[axis]) return "a place lies on its axis";
  return axes.axis[0] < axes.axis[1] && axes.axis[1] < axes.axis[2] ? nullptr : "axes keep their order";
}

inline const char* look_at_group(const std::string& text) {
  const ZarrLevel level = level_of(Metadata::parse(text, "fuzzed/.zattrs"), "fuzzed", 0);
  const bool is_inside = level.folder.starts_with("fuzzed/") && level.folder.find("/../") == std::string::npos;
  return is_inside ? nullptr : "a level lies in its group";
}

// Two bytes say how large a chunk is.
inline const char* look_at_packed(ChunkCodec codec, std::span<const uint8_t> bytes) {
  if (bytes.size() < 2) return nullptr;
  const size_t size = bytes[0] * size_t{256} + bytes[1] + 1;
  const std::vector<uint8_t> file(bytes.begin() + 2, bytes.end());
  const std::span<const uint8_t> head = std::span(file).first(std::min(file.size(), kChunkHeadBytes));
  if (!look_at_chunk(codec, head, file.size(), size).empty()) return nullptr;
  const auto decoded = std::make_unique<uint8_t[]>(size);
  return decode_chunk(codec, file, {decoded.get(), size}).size() < 1000 ? nullptr : "an error is a sentence";
}

} // namespace fuzz

// Returns the rule that is broken; null if none is.
inline const char* look_at_volume(std::span<const uint8_t> input) {
  if (input.empty()) return nullptr;
  const std::span<const uint8_t> rest = input.subspan(1);
  const std::string text(rest.begin(), rest.end());
  try {
    switch (input[0]) {
      case 'f': return fuzz::look_at_file(rest);
      case 'a': return fuzz::look_at_array(text);
      case 'g': return fuzz::look_at_group(text);
      case 'b': return fuzz::look_at_packed(ChunkCodec::blosc, rest);
      case 's': return fuzz::look_at_packed(ChunkCodec::zstd, rest);
      case 'z': return fuzz::look_at_packed(ChunkCodec::zlib, rest);
      case 'p': return fuzz::look_at_packed(ChunkCodec::gzip, rest);
      default: return nullptr;
    }
  } catch (const VolumeFileError&) {
    return nullptr;
  }
}

} // namespace millrace::volume
