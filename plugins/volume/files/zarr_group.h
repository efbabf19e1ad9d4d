// The levels of an OME-Zarr group: the same picture in several sizes, the finest first.
//
// Source: the specification of OME-Zarr (NGFF) 0.1 to 0.5. The list `multiscales` stands in .zattrs, or from 0.5 on in
// zarr.json, at attributes.ome.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/volume/files/metadata.h"

namespace millrace::volume {

struct ZarrLevel {
  std::string folder;            // the array
  std::vector<std::string> axes; // their names; empty: the array's own
};

// Throws VolumeFileError, among others if there is no such level.
ZarrLevel find_level(const std::string& group, int64_t level);
// The same of the object that has `multiscales`.
ZarrLevel level_of(const Metadata& metadata, const std::string& group, int64_t level);

} // namespace millrace::volume
