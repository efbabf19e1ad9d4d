// A check that a file gives the bytes of the volume that it was made of.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "plugins/volume/files/volume_file.h"
#include "tests/volume/made_files.h"

namespace millrace::volume::test {

inline constexpr DType kVoxelTypes[] = {dtype_of<uint8_t>(), dtype_of<uint16_t>(), dtype_of<float>()};

// Chunks, strips and tiles end within it.
inline MadeVolume sample(DType dtype) { return made_volume(dtype, {7, 13, 21}); }

inline std::string decoded(const VolumeFile& file, uint32_t threads = 3) {
  std::string bytes(file.description().bytes(), '\0');
  Crew crew(threads);
  file.read_into({reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}, crew);
  return bytes;
}

// Opens a file, and compares what it says and has, decoded and mapped, with the volume.
inline void check_same(const std::string& path, const MadeVolume& volume, const Wishes& wishes = {}) {
  const auto file = open_volume(path, wishes);
  CHECK(file->description().dtype == volume.dtype);
  CHECK(std::equal(volume.shape.begin(), volume.shape.end(), file->description().shape.begin()));
  CHECK((decoded(*file) == volume.bytes));
  CHECK((decoded(*file, 1) == volume.bytes));
  if (const auto voxels = file->mapped())
    CHECK((std::string(voxels->bytes().begin(), voxels->bytes().end()) == volume.bytes));
}

} // namespace millrace::volume::test
