// The three files of the published compressed index: BASE.idx, BASE.anchors.bin and BASE.assign.bin.
//
// All numbers are little endian. The .idx has 19 bytes: u32 magic 0x564c4341, u16 version 1, u32 anchors, u32
// dimensions, u32 vectors, u8 flags (1: there are Jacobians, 2: there are residuals). The anchors are f16 [anchors,
// dimensions], the assignments u32 [vectors]. Jacobians and residuals are in files of their own, which this program
// does not write, and leaves alone where others did. The files have no checksums: a reader can tell a wrong length, a
// wrong label and a number that is not finite, and no other damage.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/codebook/codebook_file.h"

namespace millrace::codebook {

// A codebook that owns its memory.
struct PublishedCodebook {
  CodebookView view() const { return {anchor_count, dimensions, "", anchors, {}, labels}; }

  uint32_t anchor_count = 0, dimensions = 0;
  std::vector<Float16> anchors;
  std::vector<uint32_t> labels;
};

// True if a path names published files: it ends with .idx.
bool names_published(const std::string& path);
// True if the path is that of a published index: it ends with .idx, and the file is no codebook of our own.
bool is_published_index(const std::string& path);
// The paths of the three files by that of the .idx, which comes first. Throws CodebookFileError for another ending.
std::array<std::string, 3> published_paths(const std::string& path);

// `path`: that of the .idx; the others lie beside it. The .idx gets its name last. Both throw CodebookFileError. A
// label without an anchor, as vectors have that were left out of a fit, is refused: the files have no way to say so.
void write_published(const std::string& path, const CodebookView& codebook);
PublishedCodebook read_published(const std::string& path);

// Bytes of the three files over those of the vectors, as published: (2·m·d + 4·n) / (4·n·d). `element_bytes`: of a
// number of the vectors, for which the published figure takes 4 whatever they are.
double size_ratio(uint64_t anchors, uint64_t dimensions, uint64_t vectors, uint32_t element_bytes);

} // namespace millrace::codebook
