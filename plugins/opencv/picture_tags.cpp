// Walks through the containers of pictures; see picture_tags.h.
#include "plugins/opencv/picture_tags.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace millrace::opencv {

namespace {

constexpr size_t kTagsMax = 4096; // in a directory; real ones have a few dozen
constexpr size_t kPagesMax = 16;  // thumbnails before a second page

// Sizes of TIFF's types: byte, text, short, long, rational, their signed forms, float, double, and BigTIFF's.
size_t size_of_type(uint32_t type) {
  constexpr size_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < std::size(kSizes) ? kSizes[type] : 0;
}

uint64_t number_at(PictureBytes bytes, size_t at, size_t size, bool is_big_endian) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= uint64_t{bytes[at + i]} << 8 * (is_big_endian ? size - 1 - i : i);
  return number;
}

bool has_at(PictureBytes bytes, size_t at, std::string_view word) {
  return at <= bytes.size() && bytes.size() - at >= word.size() &&
         std::equal(word.begin(), word.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
                    [](char c, unsigned char byte) { return static_cast<unsigned char>(c) == byte; });
}

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kExif("Exif\0\0", 6);

bool is_webp(PictureBytes bytes) { return has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WEBP"); }

// W3C, Portable Network Graphics, section 5: length, type, data, checksum.
PictureBytes png_chunk(PictureBytes bytes, std::string_view type, std::string_view until) {
  for (size_t at = kPng.size(); bytes.size() >= at + 12;) {
    const size_t length = number_at(bytes, at, 4, true);
    if (length > bytes.size() - at - 12 || (!until.empty() && has_at(bytes, at + 4, until))) break;
    if (has_at(bytes, at + 4, type)) return bytes.subspan(at + 8, length);
    at += 12 + length;
  }
  return {};
}

// Google, WebP Container Specification: type, length, data, which is padded to an even length.
PictureBytes webp_chunk(PictureBytes bytes, std::string_view type) {
  for (size_t at = 12; bytes.size() >= at + 8;) {
    const size_t length = std::min<size_t>(number_at(bytes, at + 4, 4, false), bytes.size() - at - 8);
    if (has_at(bytes, at, type)) return bytes.subspan(at + 8, length);
    at += 8 + length + length % 2;
  }
  return {};
}

// ITU-T T.81, annex B: markers with their lengths, up to the first scan. EXIF data are in an APP1.
PictureBytes jpeg_exif(PictureBytes bytes) {
  constexpr unsigned char kMarker = 0xFF, kApp1 = 0xE1, kScan = 0xDA;
  for (size_t at = 2; bytes.size() >= at + 4 && bytes[at] == kMarker && bytes[at + 1] != kScan;) {
    if (bytes[at + 1] == kMarker) { // a fill byte
      ++at;
      continue;
    }
    const size_t length = number_at(bytes, at + 2, 2, true);
    if (length < 2 || length > bytes.size() - at - 2) break;
    const PictureBytes data = bytes.subspan(at + 4, length - 2);
    if (bytes[at + 1] == kApp1 && has_at(data, 0, kExif)) return data.subspan(kExif.size());
    at += 2 + length;
  }
  return {};
}

PictureBytes exif_of(PictureBytes bytes) {
  PictureBytes exif;
  if (has_at(bytes, 0, "\xff\xd8\xff")) return jpeg_exif(bytes);
  if (has_at(bytes, 0, kPng)) exif = png_chunk(bytes, "eXIf", "");
  if (is_webp(bytes)) exif = webp_chunk(bytes, "EXIF");
  return has_at(exif, 0, kExif) ? exif.subspan(kExif.size()) : exif; // some programs write JPEG's beginning here too
}

} // namespace

TiffTags::TiffTags(PictureBytes bytes) : bytes_(bytes) {
  if (bytes.size() < 8) return;
  is_big_endian_ = has_at(bytes, 0, "MM");
  if (!is_big_endian_ && !has_at(bytes, 0, "II")) return;
  constexpr uint64_t kClassic = 42, kBig = 43;
  const uint64_t version = read(2, 2);
  if (version != kClassic && version != kBig) return;
  is_large_ = version == kBig;
  if (is_large_ && bytes.size() < 16) return;
  read_directory(is_large_ ? read(8, 8) : read(4, 4));
}

TiffTags::TiffTags(PictureBytes bytes, const TiffTags& earlier)
    : bytes_(bytes), is_big_endian_(earlier.is_big_endian_), is_large_(earlier.is_large_) {
  read_directory(earlier.next_at_);
}

void TiffTags::read_directory(uint64_t at) {
  const size_t count_size = is_large_ ? 8 : 2, tag_size = is_large_ ? 20 : 12, word = is_large_ ? 8 : 4;
  if (at == 0 || at > bytes_.size() || bytes_.size() - at < count_size) return;
  const uint64_t count = read(at, count_size);
  const size_t first = at + count_size;
  if (count > kTagsMax || (bytes_.size() - first) / tag_size < count) return;
  for (size_t i = 0; i < count; ++i) {
    const size_t tag_at = first + i * tag_size;
    Tag tag{static_cast<uint32_t>(read(tag_at, 2)), static_cast<uint32_t>(read(tag_at + 2, 2)), read(tag_at + 4, word),
            tag_at + 4 + word};
    const size_t size = size_of_type(tag.type);
    if (size == 0 || tag.count == 0) continue;
    if (tag.count > word / size) { // the values do not fit in the tag, which says where they are
      const uint64_t elsewhere = read(tag.value_at, word);
      if (elsewhere > bytes_.size()) continue;
      tag.value_at = elsewhere;
    }
    if (bytes_.size() - tag.value_at >= size) tags_.push_back(tag);
  }
  const size_t end = first + count * tag_size;
  if (bytes_.size() - end >= word) next_at_ = read(end, word);
  if (next_at_ > bytes_.size()) next_at_ = 0;
}

uint64_t TiffTags::read(size_t at, size_t size) const { return number_at(bytes_, at, size, is_big_endian_); }

// Null if there is no such tag, or if it has other values.
const TiffTags::Tag* TiffTags::whole_number(uint32_t number) const {
  constexpr uint32_t kByte = 1, kShort = 3, kLong = 4;
  const auto tag = std::find_if(tags_.begin(), tags_.end(), [&](const Tag& one) { return one.number == number; });
  const bool is_whole = tag != tags_.end() && (tag->type == kByte || tag->type == kShort || tag->type == kLong);
  return is_whole ? &*tag : nullptr;
}

std::optional<uint64_t> TiffTags::value(uint32_t number) const {
  const Tag* const tag = whole_number(number);
  if (!tag) return {};
  return read(tag->value_at, size_of_type(tag->type));
}

void TiffTags::write_value(std::span<unsigned char> bytes, uint32_t number, uint64_t value) const {
  const Tag* const tag = whole_number(number);
  if (!tag) return;
  const size_t size = size_of_type(tag->type);
  for (size_t i = 0; i < size; ++i)
    bytes[tag->value_at + i] = static_cast<unsigned char>(value >> 8 * (is_big_endian_ ? size - 1 - i : i));
}

int exif_orientation(PictureBytes bytes) {
  const std::optional<uint64_t> said = TiffTags(exif_of(bytes)).value(kTagOrientation);
  return said && *said >= 1 && *said <= 8 ? static_cast<int>(*said) : 1;
}

bool is_animated_png(PictureBytes bytes) {
  const PictureBytes control = has_at(bytes, 0, kPng) ? png_chunk(bytes, "acTL", "IDAT") : PictureBytes();
  return control.size() >= 4 && number_at(control, 0, 4, true) > 1;
}

bool is_animated_webp(PictureBytes bytes) {
  constexpr unsigned char kAnimation = 0x02;
  const PictureBytes head = is_webp(bytes) ? webp_chunk(bytes, "VP8X") : PictureBytes();
  return !head.empty() && (head[0] & kAnimation) != 0;
}

int tiff_pages(PictureBytes bytes) {
  constexpr uint64_t kReduced = 1;
  TiffTags page(bytes);
  if (page.empty()) return 0;
  for (size_t i = 0; page.has_next() && i < kPagesMax; ++i) {
    page = TiffTags(bytes, page);
    if (page.empty()) break;
    if ((page.value(kTagSubfile).value_or(0) & kReduced) == 0) return 2;
  }
  return 1;
}

} // namespace millrace::opencv
