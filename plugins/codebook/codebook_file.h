// clang-format off: the format's table keeps its lines.
// A codebook in one file, which is mapped and not read in.
//
// All numbers are little endian. A header of 64 bytes is followed by a table of sections and by the sections, each at a
// multiple of 64 bytes, with zeros in between.
//
//   header      magic "MRCODEBK", u32 version 1, u32 sections, u64 bytes of the file, u32 CRC-32C of the table,
//               u32 CRC-32C of the 28 bytes before it, zeros
//   table       for each section 32 bytes: u32 kind, u32 CRC-32C of its bytes, u64 offset, u64 bytes, u32 rows, u32
//   columns settings    kind 1: text of lines `key=value`, a row for each byte anchors     kind 2: f16 [anchors,
//   dimensions] deviations  kind 3, may be missing: f16 [anchors, dimensions], the root of the mean of (x − a)² over a
//   cell's members labels      kind 4, may be missing: u32 [vectors, 1], below the number of anchors, or kNoLabel
//
// There is at most one section of a kind. A file is written beside its place and renamed when it is whole. A reader
// looks at every byte: at the checksums of header, table and sections, and that the bytes between are zeros. So a
// damaged file is refused, with the section that is damaged. A file that somebody else cuts off while it is mapped ends
// the program, as with any mapped file.
// clang-format on
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "millrace/payload/half_floats.h"

namespace millrace::codebook {

// The label of a vector that was left out of a fit.
inline constexpr uint32_t kNoLabel = 0xffffffffu;

// A codebook as files have it. The spans point into memory of the caller.
struct CodebookView {
  uint32_t anchor_count = 0, dimensions = 0;
  std::string settings;                // lines `key=value`
  std::span<const Float16> anchors;    // [anchor_count, dimensions]
  std::span<const Float16> deviations; // the same, or empty
  std::span<const uint32_t> labels;    // one for each vector, or empty
};

// A file that cannot be written or read. The sentence names path, section and reason.
struct CodebookFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws CodebookFileError.
void write_codebook(const std::string& path, const CodebookView& codebook);

// The views of a file's bytes, which begin at a multiple of 4. `path` names it in errors. Throws CodebookFileError.
CodebookView read_codebook(std::span<const std::byte> bytes, const std::string& path);

// A file that is open for reading. Views are valid while it lives.
class CodebookFile {
 public:
  // Throws CodebookFileError if the file cannot be opened, is of another kind or version, or is damaged.
  explicit CodebookFile(const std::string& path);
  ~CodebookFile();
  CodebookFile(const CodebookFile&) = delete;
  CodebookFile& operator=(const CodebookFile&) = delete;

  const CodebookView& view() const { return view_; }
  size_t bytes() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_; // mapped
  CodebookView view_;
};

// True if the file begins as a codebook's file does. False if it cannot be read.
bool is_codebook_file(const std::string& path);

// The value of a key in settings; "" if it has none.
std::string setting(const std::string& settings, const std::string& key);

} // namespace millrace::codebook
