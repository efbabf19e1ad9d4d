// Paints over pictures of all formats: straight into interleaved pixels, and band by band if chroma is halved.
#pragma once

#include <millrace/handler.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "handlers/draw/glyphs.h"
#include "handlers/draw/raster.h"
#include "handlers/gpu/inked_pixel.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {

// The formats that paint_over() takes.
inline Pixels drawable_pixels() {
  return pixels(
      {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010});
}

// A few rows of ink, which are laid over a picture once all marks are painted. Owned by one thread. Does not allocate
// for pictures within the reserved width.
class [[gnu::visibility("hidden")]] InkBand { // hidden like what its functions take
 public:
  void reserve(uint32_t width);

  // Calls `paint` with each band of the picture's rows `top` … `bottom` − 1, which paints all marks that it meets; what
  // lies beyond the band is cut off. The picture's chroma is halved.
  template <class Paint>
  void draw(const ImageSpan& picture, int64_t top, int64_t bottom, Paint&& paint) {
    const int64_t last = std::min<int64_t>(bottom, picture.height());
    for (int64_t y = std::max<int64_t>(top, 0) & ~int64_t{1}; y < last; y += kRows) {
      begin(picture, static_cast<uint32_t>(y));
      paint(*this);
      lay(picture);
    }
  }

  // False if none of these rows are in the band.
  bool shows(int64_t top, int64_t bottom) const { return top < area_.bottom && bottom > area_.top; }
  void fill(const Rectangle& area, const Ink& ink);
  void write(const GlyphSet& glyphs, std::string_view text, int64_t x, int64_t y, const Ink& ink,
             const Rectangle& clip = kEverywhere);

 private:
  // Even, so that a band has whole chroma samples. The ink of a line of text in so many rows fits the first-level
  // cache.
  static constexpr uint32_t kRows = 8;
  // Ink is laid, and cleared, in cells of so many pixels in two rows: a frame costs no more than its own cells.
  static constexpr uint32_t kCell = 32;
  // The parts of an InkedPixel, and the share that the letters of one ink take.
  static constexpr uint32_t kParts = 4, kLetters = kParts;

  static uint32_t stride_for(uint32_t width);
  void begin(const ImageSpan& picture, uint32_t top);
  void lay(const ImageSpan& picture);
  template <class Number>
  void lay_run(const ImageSpan& picture, uint32_t pair, uint32_t left, uint32_t right);

  // One part of a row, which is counted from the band's first.
  uint16_t* part(uint32_t which, uint32_t y) { return parts_.data() + (size_t{y} * (kParts + 1) + which) * stride_; }
  // Notes that pixels `left` … `right` − 1 of a row have ink.
  void touch(uint32_t y, uint32_t left, uint32_t right);

  Rectangle area_;               // in the picture
  uint32_t stride_ = 0;          // pixels: a whole number of cells, of which the last lies beyond the picture
  std::vector<uint16_t> parts_;  // [row][part][column]; without ink where no cell is touched
  std::vector<uint8_t> touched_; // [pair of rows][cell]
  std::vector<uint16_t> means_;  // [part][chroma sample], of one pair of rows
};

// Paints into interleaved pixels, as InkBand does into its ink.
struct [[gnu::visibility("hidden")]] InterleavedPaint { // hidden like its member
  ImageSpan picture;
  bool shows(int64_t, int64_t) const { return true; }
  void fill(const Rectangle& area, const Ink& ink) const { fill_rectangle(picture, area, ink); }
  void write(const GlyphSet& glyphs, std::string_view text, int64_t x, int64_t y, const Ink& ink,
             const Rectangle& clip = kEverywhere) const {
    glyphs.draw(picture, text, x, y, ink, clip);
  }
};

// Calls `paint(target)` once or for each band; it paints marks in rows `top` … `bottom` − 1 by fill() and write().
template <class Paint>
void paint_over(const ImageSpan& picture, InkBand& band, int64_t top, int64_t bottom, Paint&& paint) {
  if (halves_chroma(picture.pixel())) return band.draw(picture, top, bottom, paint);
  paint(InterleavedPaint{picture});
}

} // namespace millrace::handlers
