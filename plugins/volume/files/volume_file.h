// Volumes in files: raw numbers, NPY, TIFF and OME-Zarr, all under one interface.
//
// open_volume() checks everything that can be checked without decoding: headers, sizes, the parts of the file and the
// codecs. So a damaged file is refused while the plan is made. Only a part that proves damaged when it is decoded is
// an error of read_into(). No size is believed that the file contradicts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "millrace/payload.h"
#include "plugins/crew/crew.h"
#include "plugins/volume/voxels.h"

namespace millrace::volume {

// The sentence names the file, the key where there is one, the reason, and what would be right.
struct VolumeFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The wishes of a person who gives a path.
struct Wishes {
  // These describe raw numbers. A shape makes any file raw.
  std::string shape;           // "depth x height x width" without spaces; "": the file says it
  std::string dtype = "uint8"; // uint8, uint16 or float32
  bool is_big_endian = false;
  uint64_t offset = 0; // bytes before the first voxel
  // These choose a part of a Zarr.
  int64_t level = 0;          // 0: the finest
  std::string at;             // places on axes that a volume does not have: "t=0,c=1"
  bool fills_missing = false; // chunks without a file have the fill value; else they are an error
};

struct VolumeDescription {
  std::string format;               // "TIFF"
  DType dtype{MR_DTYPE_UINT, 8, 1}; // uint8, uint16 or float32
  std::array<int64_t, 3> shape{};   // depth, height, width; each 1 to kSideMax

  uint64_t bytes() const {
    return static_cast<uint64_t>(shape[0]) * static_cast<uint64_t>(shape[1]) * static_cast<uint64_t>(shape[2]) *
           (dtype.bits / 8);
  }
};

// The voxels of a file, mapped into memory. The mapping stays while `first` or a copy of it is held, also when its
// VolumeFile is gone. A file that somebody else cuts off while it is mapped ends the program, as with any mapped file.
struct MappedVoxels {
  std::shared_ptr<const uint8_t> first; // at a multiple of the element's size
  size_t size = 0;
  std::span<const uint8_t> bytes() const { return {first.get(), size}; }
};

// An open volume. One thread at a time calls it.
class VolumeFile {
 public:
  explicit VolumeFile(const VolumeDescription& description) : description_(description) {}
  virtual ~VolumeFile() = default;
  VolumeFile(const VolumeFile&) = delete;
  VolumeFile& operator=(const VolumeFile&) = delete;

  const VolumeDescription& description() const { return description_; }
  // The voxels without a copy, if they lie in the file as they lie in memory.
  virtual std::optional<MappedVoxels> mapped() const { return std::nullopt; }
  // Reads and decodes all voxels into `target`, which has description().bytes(). The crew shares the parts. Throws
  // VolumeFileError, and Interrupted if the crew was to stop.
  virtual void read_into(std::span<uint8_t> target, Crew& crew) const = 0;

 private:
  const VolumeDescription description_;
};

// Opens and checks a file, or a folder that is a Zarr. Throws VolumeFileError.
std::unique_ptr<VolumeFile> open_volume(const std::string& path, const Wishes& wishes);

} // namespace millrace::volume
