// Files of volumes, written by other code than that which reads them: libtiff, blosc, zstd, zlib, and a slow Zarr.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/payload.h"

namespace millrace::volume::test {

// Numbers without a pattern that a codec could take for another, but that can be packed. In this machine's order.
struct MadeVolume {
  DType dtype;
  std::vector<int64_t> shape; // depth, height, width; an array of a Zarr may have further ones
  std::string bytes;

  size_t element() const { return dtype.bits / 8; }
};
MadeVolume made_volume(DType dtype, std::vector<int64_t> shape, uint64_t seed = 1);
std::string with_swapped(std::string bytes, size_t element);

// ---- NPY
std::string npy_bytes(const MadeVolume& volume, int version = 1, bool is_big_endian = false,
                      const char* order = "False");

// ---- TIFF
struct TiffLook {
  const char* mode = "w";   // "w8": BigTIFF; "wb": big-endian
  uint16_t compression = 1; // none
  uint32_t rows_per_strip = 3;
  uint32_t tile = 0;      // its side; 0: strips
  uint16_t predictor = 1; // none
  std::string description = "";
};
void write_tiff(const std::string& path, const MadeVolume& volume, const TiffLook& look = {});

// ---- Zarr
struct ZarrLook {
  int version = 2;
  std::string codec = "none", inside = "lz4"; // inside: blosc
  std::vector<int64_t> chunk = {4, 5, 6};
  std::string separator = "/";
  bool has_prefix = true; // version 3: the chunk key encoding "default"
  bool is_big_endian = false;
  std::vector<std::string> names = {}; // version 3: dimension_names
};
// Writes an array as a folder, its chunks' files too.
void write_zarr(const std::string& folder, const MadeVolume& array, const ZarrLook& look = {});
// The metadata alone.
std::string zarr_metadata(const MadeVolume& array, const ZarrLook& look);
// Bytes that the codec has packed.
std::string packed(const std::string& codec, const std::string& bytes, size_t element,
                   const std::string& inside = "lz4");
// Writes a file; its folders are made.
void put(const std::string& path, const std::string& bytes);

} // namespace millrace::volume::test
