// The metadata of one array of a Zarr, version 2 (`.zarray`) and 3 (`zarr.json`).
//
// Source: the specifications of Zarr 2 and 3 (zarr-specs). An array is cut into chunks of one shape, those at the far
// edges too; each is a file of its own, whose name has the chunk's place along each axis.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugins/volume/files/chunk_codec.h"
#include "plugins/volume/files/metadata.h"

namespace millrace::volume {

struct ZarrArray {
  std::string folder;
  std::string file; // the metadata, for errors
  int version = 2;
  std::vector<int64_t> shape, chunk; // one number for each axis, at least 1
  std::vector<std::string> axes;     // their names: "z"; "dim_0" where nothing names them
  DType dtype{MR_DTYPE_UINT, 8, 1};
  bool is_big_endian = false;
  ChunkCodec codec = ChunkCodec::none;
  std::array<uint8_t, 4> fill{}; // one element in this machine's byte order
  std::string key_prefix;        // "c/" or ""
  char separator = '.';

  uint64_t chunk_bytes() const;
  // The file of a chunk within the folder: "c/0/3/1".
  std::string key_of(std::span<const int64_t> place) const;
};

// True if the folder is an array and no group. Throws VolumeFileError for metadata that cannot be read.
bool is_zarr_array(const std::string& folder);
// Reads the metadata, and refuses what a volume cannot have. Throws VolumeFileError.
ZarrArray read_zarr_array(const std::string& folder);
// The same of metadata that were read: `.zarray` or `zarr.json` of an array.
ZarrArray zarr_array_of(const Metadata& metadata, const std::string& folder);

// True if a file, a folder or anything else has this path.
bool is_there(const std::string& path);

} // namespace millrace::volume
