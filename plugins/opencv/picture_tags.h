// Reads the tags of picture files that OpenCV's decoders leave out: how a picture lies, what its alpha means, what its
// numbers are, and how many pictures there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace::opencv {

using PictureBytes = std::span<const unsigned char>;

// The tags of one directory of a TIFF file, or of the EXIF data in another file, which are a TIFF file too.
// Source: TIFF 6.0, section 2; BigTIFF as libtiff has it. Bytes that are damaged give fewer tags.
class TiffTags {
 public:
  struct Tag {
    uint32_t number = 0, type = 0;
    uint64_t count = 0;
    size_t value_at = 0; // offset of its first value in the file
  };

  // The tags of the first directory; empty if these bytes are no TIFF file.
  explicit TiffTags(PictureBytes bytes);
  // The tags of the directory after `earlier` ones.
  TiffTags(PictureBytes bytes, const TiffTags& earlier);

  bool empty() const { return tags_.empty(); }
  bool has_next() const { return next_at_ > 0; }
  // The first value of a tag of whole numbers.
  std::optional<uint64_t> value(uint32_t number) const;
  // Replaces the first value of a tag that has whole numbers. `bytes` are those that the tags were read from.
  void write_value(std::span<unsigned char> bytes, uint32_t number, uint64_t value) const;

 private:
  uint64_t read(size_t at, size_t size) const;
  const Tag* whole_number(uint32_t number) const;
  void read_directory(uint64_t at);

  PictureBytes bytes_;
  bool is_big_endian_ = false, is_large_ = false; // large: BigTIFF
  uint64_t next_at_ = 0;                          // the next directory; 0: this is the last
  std::vector<Tag> tags_;
};

inline constexpr uint32_t kTagSubfile = 254, kTagBits = 258, kTagOrientation = 274, kTagExtraSamples = 338,
                          kTagSampleFormat = 339;

// The EXIF orientation of a JPEG, PNG or WebP file, from 1 (upright) to 8; 1 for everything else. TIFF files have their
// own tag, which OpenCV reads.
int exif_orientation(PictureBytes bytes);

// True for a PNG file with several pictures, an APNG.
bool is_animated_png(PictureBytes bytes);
bool is_animated_webp(PictureBytes bytes);
// The number of pages of a TIFF file, at most 2: thumbnails of other pages do not count. 0 if it is no TIFF file.
int tiff_pages(PictureBytes bytes);

} // namespace millrace::opencv
