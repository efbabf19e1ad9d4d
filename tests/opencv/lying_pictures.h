// Small picture files, byte by byte, that lie on their side, are transparent or have other numbers than usual.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::opencv::test {

using Colour = std::array<uint8_t, 3>; // red, green, blue

// A picture of 4 × 2 as it is to be seen.
inline constexpr uint32_t kSeenWidth = 4, kSeenHeight = 2;
inline constexpr std::array<Colour, 8> kSeen = {{{250, 10, 20},
                                                 {20, 240, 30},
                                                 {40, 50, 230},
                                                 {220, 210, 60},
                                                 {0, 0, 0},
                                                 {90, 90, 90},
                                                 {180, 180, 180},
                                                 {255, 255, 255}}};

// Its rows as they are stored with an EXIF orientation.
inline std::vector<std::vector<Colour>> stored(int orientation) {
  const uint32_t w = kSeenWidth - 1, h = kSeenHeight - 1;
  const bool lies = orientation >= 5;
  std::vector<std::vector<Colour>> rows(lies ? kSeenWidth : kSeenHeight,
                                        std::vector<Colour>(lies ? kSeenHeight : kSeenWidth));
  for (uint32_t y = 0; y < rows.size(); ++y)
    for (uint32_t x = 0; x < rows[y].size(); ++x) {
      // EXIF 2.32, tag 274: where the stored row and column are seen.
      const std::array<std::array<uint32_t, 2>, 8> seen_at = {
          {{x, y}, {w - x, y}, {w - x, h - y}, {x, h - y}, {y, x}, {w - y, x}, {w - y, h - x}, {y, h - x}}};
      // The unsigned subtraction wraps only for the forms that are not of this orientation.
      const auto [sx, sy] = seen_at[static_cast<size_t>(orientation - 1)];
      rows[y][x] = kSeen[sy * kSeenWidth + sx];
    }
  return rows;
}

inline std::string number(uint64_t value, size_t size, bool is_big_endian) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * (is_big_endian ? size - 1 - i : i) & 0xFF);
  return bytes;
}
inline std::string little(uint64_t value, size_t size) { return number(value, size, false); }
inline std::string big(uint64_t value, size_t size) { return number(value, size, true); }

// EXIF data of one tag.
inline std::string exif(int orientation, bool is_big_endian = false) {
  const auto n = [&](uint64_t value, size_t size) { return number(value, size, is_big_endian); };
  return (is_big_endian ? "MM" : "II") + n(42, 2) + n(8, 4) + n(1, 2) + n(0x0112, 2) + n(3, 2) + n(1, 4) +
         n(static_cast<uint64_t>(orientation), 2) + n(0, 2) + n(0, 4);
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  uint32_t crc = 0xFFFFFFFFu; // W3C, Portable Network Graphics, annex D
  for (const char c : type + data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return big(data.size(), 4) + type + data + big(~crc, 4);
}

enum class PngKind : uint8_t { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgba = 6 };

// Grey ones have the green of each pixel; a palette has `alpha` for all its colours.
inline std::string png(int orientation, PngKind kind, uint8_t alpha, const std::string& more_chunks = "") {
  const auto rows = stored(orientation);
  std::string raw, palette;
  for (const Colour& colour : kSeen) palette += std::string(colour.begin(), colour.end());
  for (const auto& row : rows) {
    raw += '\0';
    for (const Colour& pixel : row) {
      const bool is_grey = kind == PngKind::grey || kind == PngKind::grey_alpha;
      if (is_grey) raw += static_cast<char>(pixel[1]);
      if (kind == PngKind::palette)
        raw += static_cast<char>(std::find(kSeen.begin(), kSeen.end(), pixel) - kSeen.begin());
      if (kind == PngKind::rgb || kind == PngKind::rgba) raw += std::string(pixel.begin(), pixel.end());
      if (kind == PngKind::grey_alpha || kind == PngKind::rgba) raw += static_cast<char>(alpha);
    }
  }
  uint32_t a = 1, b = 0; // RFC 1950: Adler-32
  for (const char c : raw) a = (a + static_cast<unsigned char>(c)) % 65521, b = (b + a) % 65521;
  // RFC 1951: one block that is not compressed.
  const std::string zlib = std::string("\x78\x01\x01", 3) + little(raw.size(), 2) + little(~raw.size() & 0xFFFF, 2) +
                           raw + big(b << 16 | a, 4);
  std::string file = "\x89PNG\r\n\x1a\n";
  file += png_chunk(
      "IHDR", big(rows[0].size(), 4) + big(rows.size(), 4) + '\x08' + static_cast<char>(kind) + std::string(3, '\0'));
  file += more_chunks;
  if (orientation > 1) file += png_chunk("eXIf", exif(orientation, true));
  if (kind == PngKind::palette)
    file += png_chunk("PLTE", palette) + png_chunk("tRNS", std::string(kSeen.size(), static_cast<char>(alpha)));
  return file + png_chunk("IDAT", zlib) + png_chunk("IEND", "");
}

struct TiffForm {
  uint16_t samples = 3; // 1: grey, 2: with alpha, 3: rgb, 4: with alpha
  uint16_t extra = 0;   // ExtraSamples: 1 multiplied with alpha, 2 straight
  uint16_t format = 1;  // SampleFormat: 1 unsigned, 2 signed, 3 floating point
  uint16_t bits = 8;
  uint8_t alpha = 255;
  bool is_big_endian = false;
  int pages = 1;
};

// The same picture again on each page.
inline std::string tiff(int orientation, const TiffForm& form) {
  const auto n = [&](uint64_t value, size_t size) { return number(value, size, form.is_big_endian); };
  const auto rows = stored(orientation);
  std::string data;
  for (const auto& row : rows)
    for (const Colour& pixel : row)
      for (uint16_t s = 0; s < form.samples; ++s) {
        const bool is_alpha = s + 1 == form.samples && form.samples % 2 == 0;
        const uint8_t colour = form.samples <= 2 ? pixel[1] : s < 3 ? pixel[s] : uint8_t{0};
        const uint64_t value = is_alpha ? form.alpha : form.extra == 1 ? (colour * form.alpha + 127) / 255 : colour;
        data += n(form.bits == 16 ? value * 257 : value, form.bits / 8u);
      }
  std::string file = (form.is_big_endian ? "MM" : "II") + n(42, 2) + n(8 + data.size(), 4) + data;
  struct Tag {
    uint16_t number, type;
    uint32_t count;
    uint64_t value;
  };
  for (int page = 0; page < form.pages; ++page) {
    std::vector<Tag> tags = {{256, 3, 1, rows[0].size()},
                             {257, 3, 1, rows.size()},
                             {258, 3, form.samples, form.bits},
                             {259, 3, 1, 1},
                             {262, 3, 1, form.samples <= 2 ? 1u : 2u},
                             {273, 4, 1, 8},
                             {274, 3, 1, static_cast<uint64_t>(orientation)},
                             {277, 3, 1, form.samples},
                             {278, 3, 1, rows.size()},
                             {279, 4, 1, data.size()},
                             {284, 3, 1, 1}};
    if (form.extra > 0) tags.push_back({338, 3, 1, form.extra});
    tags.push_back({339, 3, form.samples, form.format});
    const size_t end = file.size() + 2 + 12 * tags.size() + 4;
    std::string directory = n(tags.size(), 2), values;
    for (const Tag& tag : tags) {
      directory += n(tag.number, 2) + n(tag.type, 2) + n(tag.count, 4);
      if (tag.count > 2) {
        directory += n(end + values.size(), 4);
        for (uint32_t i = 0; i < tag.count; ++i) values += n(tag.value, 2);
      } else if (tag.type == 4) {
        directory += n(tag.value, 4);
      } else {
        directory += n(tag.value, 2) + n(tag.count == 2 ? tag.value : 0, 2);
      }
    }
    file += directory + n(page + 1 < form.pages ? end + values.size() : 0, 4) + values;
  }
  return file;
}

} // namespace millrace::opencv::test
