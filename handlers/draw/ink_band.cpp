// Collects ink pixel by pixel and lays it over planes. The parts of a row lie apart, so that the loops vectorise.
#include "handlers/draw/ink_band.h"

#include <cstring>

#include "handlers/image/vectorize.h"

namespace millrace::handlers {
namespace {

constexpr uint32_t kBlock = GlyphSet::kMaskSlack; // pixels of a letter that one step of a loop takes

// Adds what a letter covers to the shares that the letters before it take. Reads and writes whole blocks: the bytes
// beyond the letter's edge are masked out, and the shares there stay the same.
MILLRACE_VECTORIZE void add_letter(const GlyphSet::Stamp& stamp, uint8_t alpha, size_t share_stride, uint16_t* shares) {
  const uint8_t* mask = stamp.mask;
  for (uint32_t y = 0; y < stamp.height; ++y, mask += stamp.mask_stride, shares += share_stride)
    for (uint32_t x = 0; x < stamp.width; x += kBlock) {
      uint64_t bytes; // the first one lowest
      std::memcpy(&bytes, mask + x, kBlock);
      if (stamp.width - x < kBlock) bytes &= (uint64_t{1} << 8 * (stamp.width - x)) - 1;
      uint8_t coverage[kBlock];
      std::memcpy(coverage, &bytes, kBlock);
      uint16_t block[kBlock];
      std::memcpy(block, shares + x, sizeof block);
#pragma GCC unroll 1 // else the loop is taken apart before it could become vectors
      for (uint32_t i = 0; i < kBlock; ++i) block[i] = share_of_both(block[i], share_of(coverage[i], alpha));
      std::memcpy(shares + x, block, sizeof block);
    }
}

MILLRACE_VECTORIZE void paint_rows(uint16_t* part, size_t stride, uint32_t rows, uint32_t count, uint16_t ink,
                                   uint16_t share) {
  for (; rows > 0; --rows, part += stride)
    for (uint32_t x = 0; x < count; ++x) part[x] = painted_over(part[x], ink, share);
}
MILLRACE_VECTORIZE void paint_shares(uint16_t* part, uint32_t count, uint16_t ink, const uint16_t* shares) {
  for (uint32_t x = 0; x < count; ++x) part[x] = painted_over(part[x], ink, shares[x]);
}

using Pair [[gnu::may_alias]] = uint32_t; // two neighbours of a row, whose address is a multiple of 4

// The means of 2×2 pixels, from the means of each column.
MILLRACE_VECTORIZE void find_columns(const uint16_t* top, const uint16_t* bottom, uint32_t count, uint16_t* columns) {
  for (uint32_t x = 0; x < count; ++x) columns[x] = mean_of(top[x], bottom[x]);
}
MILLRACE_VECTORIZE void find_means(const uint16_t* columns, uint32_t count, uint16_t* means) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t pair = reinterpret_cast<const Pair*>(columns)[i];
    means[i] = mean_of(static_cast<uint16_t>(pair), static_cast<uint16_t>(pair >> 16));
  }
}

MILLRACE_VECTORIZE void interleave(const uint16_t* first, const uint16_t* second, uint32_t count, uint16_t* pairs) {
  for (uint32_t i = 0; i < count; ++i) {
    reinterpret_cast<Pair*>(pairs)[i] = first[i] | uint32_t{second[i]} << 16;
  }
}

template <class Number>
MILLRACE_VECTORIZE void lay_part(Number* numbers, uint32_t count, const uint16_t* share, const uint16_t* ink) {
  for (uint32_t i = 0; i < count; ++i) numbers[i] = inked(numbers[i], share[i], ink[i]);
}

} // namespace

uint32_t InkBand::stride_for(uint32_t width) { return ((width + kCell - 1) / kCell + 1) * kCell; }

void InkBand::reserve(uint32_t width) {
  const size_t stride = stride_for(width);
  parts_.reserve(stride * kRows * (kParts + 1));
  touched_.reserve(stride / kCell * (kRows / 2));
  means_.reserve(stride * kParts);
}

void InkBand::begin(const ImageSpan& picture, uint32_t top) {
  area_ = {0, top, picture.width(), std::min<int64_t>(int64_t{top} + kRows, picture.height())};
  const uint32_t stride = stride_for(picture.width());
  if (stride == stride_) return;
  stride_ = stride;
  parts_.assign(size_t{stride} * kRows * (kParts + 1), 0);
  for (uint32_t y = 0; y < kRows; ++y) std::fill_n(part(0, y), stride, kWholeShare);
  touched_.assign(stride / kCell * (kRows / 2), 0);
  means_.resize(size_t{stride} * kParts);
}

void InkBand::touch(uint32_t y, uint32_t left, uint32_t right) {
  uint8_t* const touched = touched_.data() + y / 2 * (stride_ / kCell);
  std::fill(touched + left / kCell, touched + (right - 1) / kCell + 1, uint8_t{1});
}

void InkBand::fill(const Rectangle& area, const Ink& ink) {
  const Rectangle seen = common_part(area, area_);
  if (seen.left >= seen.right || seen.top >= seen.bottom || ink.alpha == 0) return;
  const auto left = static_cast<uint32_t>(seen.left), right = static_cast<uint32_t>(seen.right);
  const auto top = static_cast<uint32_t>(seen.top - area_.top), bottom = static_cast<uint32_t>(seen.bottom - area_.top);
  for (uint32_t y = top / 2 * 2; y < bottom; y += 2) touch(y, left, right);
  for (uint32_t which = 0; which < kParts; ++which)
    paint_rows(part(which, top) + left, size_t{stride_} * (kParts + 1), bottom - top, right - left, ink.parts[which],
               share_of(255, ink.alpha));
}

void InkBand::write(const GlyphSet& glyphs, std::string_view text, int64_t x, int64_t y, const Ink& ink,
                    const Rectangle& clip) {
  if (ink.alpha == 0) return;
  const auto band_top = static_cast<uint32_t>(area_.top);
  uint32_t left = UINT32_MAX, right = 0, top = kRows, bottom = 0; // the place of all letters
  glyphs.each_stamp(text, x, y, common_part(clip, area_), [&](const GlyphSet::Stamp& stamp) {
    add_letter(stamp, ink.alpha, size_t{stride_} * (kParts + 1), part(kLetters, stamp.top - band_top) + stamp.left);
    left = std::min(left, stamp.left), right = std::max(right, stamp.left + stamp.width);
    top = std::min(top, stamp.top - band_top), bottom = std::max(bottom, stamp.top - band_top + stamp.height);
  });
  for (uint32_t row = top; row < bottom; ++row) {
    touch(row, left, right);
    uint16_t* const shares = part(kLetters, row) + left;
    for (uint32_t which = 0; which < kParts; ++which)
      paint_shares(part(which, row) + left, right - left, ink.parts[which], shares);
    std::fill_n(shares, right - left, uint16_t{0});
  }
}

void InkBand::lay(const ImageSpan& picture) {
  const uint32_t cells = stride_ / kCell, rows = static_cast<uint32_t>(area_.bottom - area_.top);
  for (uint32_t pair = 0; 2 * pair < rows; ++pair) {
    uint8_t* const touched = touched_.data() + pair * cells;
    for (uint32_t cell = 0; cell < cells; ++cell) {
      if (!touched[cell]) continue;
      const uint32_t first = cell;
      while (touched[cell]) touched[cell++] = 0; // the cell beyond the picture is never touched
      const uint32_t left = first * kCell, right = std::min(cell * kCell, picture.width());
      if (picture.pixel() == Pixel::p010)
        lay_run<uint16_t>(picture, pair, left, right);
      else
        lay_run<uint8_t>(picture, pair, left, right);
    }
  }
}

// Lays the ink of columns `left` … `right` − 1 of two rows, and clears it. In a picture with an odd side the last
// column or row counts for the one beyond it too.
template <class Number>
void InkBand::lay_run(const ImageSpan& picture, uint32_t pair, uint32_t left, uint32_t right) {
  const auto numbers = [&](uint32_t plane, uint32_t x, uint32_t y) {
    const Plane<uint8_t> at = plane_of(picture, plane);
    return reinterpret_cast<Number*>(at.row(y) + size_t{x} * at.sample_bytes());
  };
  const uint32_t y = static_cast<uint32_t>(area_.top) + 2 * pair, count = right - left, pairs = (count + 1) / 2;
  const uint32_t rows = y + 1 < picture.height() ? 2 : 1;
  for (uint32_t row = 0; row < rows; ++row)
    lay_part(numbers(0, left, y + row), count, part(0, 2 * pair + row) + left, part(1, 2 * pair + row) + left);
  const auto means = [&](uint32_t which) { return means_.data() + size_t{which} * stride_; };
  for (uint32_t which = 0; which < kParts; ++which) {
    uint16_t *const top = part(which, 2 * pair) + left, *const bottom = part(which, 2 * pair + rows - 1) + left;
    if (which != 1) {
      find_columns(top, bottom, count, top);
      if (count % 2 > 0) top[count] = top[count - 1];
      find_means(top, pairs, means(which));
    }
    for (uint16_t* const row : {top, bottom}) // kWholeShare has the same byte twice
      std::memset(row, which == 0 ? 0xFF : 0, (size_t{count} + 1) * sizeof *row);
  }
  if (plane_of(picture, 1).channels == 1) {
    for (uint32_t plane : {1u, 2u}) lay_part(numbers(plane, left / 2, y / 2), pairs, means(0), means(1 + plane));
    return;
  }
  interleave(means(2), means(3), pairs, means(1));
  interleave(means(0), means(0), pairs, means(2));
  lay_part(numbers(1, left / 2, y / 2), 2 * pairs, means(2), means(1));
}

} // namespace millrace::handlers
