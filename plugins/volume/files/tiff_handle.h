// A TIFF that libtiff has open, and the facts of one of its pages.
#pragma once

#include <tiffio.h>

#include <cstdint>
#include <memory>
#include <string>

#include "plugins/volume/files/volume_file.h"

namespace millrace::volume {

// The layout of a page's pixels. All pages of a volume must have the same element type and size.
struct TiffPage {
  uint32_t width = 0, height = 0;
  DType dtype{MR_DTYPE_UINT, 8, 1};
  uint16_t compression = 0;
  // A piece is a tile, or a strip of rows as wide as the page.
  bool is_tiled = false;
  uint32_t piece_width = 0, piece_height = 0;

  uint32_t across() const { return (width + piece_width - 1) / piece_width; }
  uint32_t down() const { return (height + piece_height - 1) / piece_height; }
  uint64_t bytes_of(uint64_t pixels) const { return pixels * (dtype.bits / 8); }
};

// libtiff's errors go to this object instead of to the screen. One thread at a time uses it. The functions throw
// VolumeFileError.
class TiffHandle {
 public:
  explicit TiffHandle(std::string path);
  ~TiffHandle();
  TiffHandle(const TiffHandle&) = delete;
  TiffHandle& operator=(const TiffHandle&) = delete;

  TIFF* raw() const { return tiff_; }
  // True if there is a further page, which is then the current one. A chain of pages that breaks is an error.
  bool next_page();
  // Goes to the page that begins at this offset.
  void go_to(uint64_t offset);
  // Checks the current page, its pieces too. `number` counts pages from 0, for errors. `file_bytes` is the file's size.
  TiffPage check_page(size_t number, uint64_t file_bytes) const;
  // The error for the current page, with libtiff's words if there are any.
  VolumeFileError fault(size_t number, const std::string& why) const;

 private:
  void check_pieces(const TiffPage& page, size_t number, uint64_t file_bytes) const;

  std::string path_;
  std::string words_; // libtiff's last error
  TIFF* tiff_ = nullptr;
};

} // namespace millrace::volume
