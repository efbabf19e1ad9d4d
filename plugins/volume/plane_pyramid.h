// A plane at several levels, of which only the regions that are shown are computed.
//
// Four pixels of a level make one of the next: their mean, in whole numbers rounded to the nearest, and to the even one
// of two as near; in floats ((a + b) + (c + d)) / 4. At an odd edge the last column or row counts twice. Levels are
// computed by chunks of 256 × 256 pixels, which are kept until the plane changes, those that were used last if there is
// not room for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "plugins/crew/crew.h"
#include "plugins/volume/plane_levels.h"

namespace millrace::volume {

// Numbers in rows, of which a region is there.
template <class Element>
struct Part {
  const Element* data = nullptr; // the upper left one of the region
  int64_t stride = 0;            // numbers from one row to the next
  Region region;
};

// Level 0 of a plane.
template <class Element>
struct PlaneSource {
  PlaneSize size;
  const Element* data = nullptr; // if its rows lie in memory as they are shown; else null
  int64_t stride = 0;
  std::function<void(const Region&, Element* to)> read; // writes a region, dense; several threads call it at a time
};

template <class Element>
class PlanePyramid {
 public:
  static constexpr int32_t kChunkSide = 256; // even, so that four chunks of a level are one of the next

  // `bytes_max`: of the chunks that are kept.
  explicit PlanePyramid(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // Another plane: forgets all chunks. The source's numbers stay until the next call of begin().
  void begin(PlaneSource<Element> source);
  // A region of a level, which is not empty. Valid until the next call.
  Part<Element> part(int32_t level, const Region& region, Crew& crew);

  uint64_t bytes_kept() const { return bytes_kept_; }
  uint64_t chunks_made() const { return chunks_made_; } // since the pyramid is there

 private:
  struct Place {
    int32_t level, column, row;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Chunk {
    std::vector<Element> numbers; // dense
    uint64_t used = 0;            // the call that used it last
  };
  using Spare = std::vector<std::vector<Element>>; // a chunk for each level

  Region region_of(const Place& place) const;
  // The chunk where it is kept, or made in the spare room of its level.
  Part<Element> find(const Place& place, Spare& spare) const;
  void make(const Place& place, Element* to, Spare& spare) const;
  void fill(int32_t level, const Region& region, Crew& crew);
  void drop_oldest();

  const uint64_t bytes_max_;
  PlaneSource<Element> source_;
  std::map<Place, Chunk> chunks_;
  std::vector<Element> numbers_; // the region that was asked for last
  Part<Element> last_;
  int32_t last_level_ = -1; // none
  uint64_t calls_ = 0, bytes_kept_ = 0, chunks_made_ = 0;
};

// Writes a level's numbers, made of those of the one before: the `width` × `height` from `from` on.
void halve(const uint8_t* from, int64_t stride, int32_t width, int32_t height, uint8_t* to, int64_t to_stride);
void halve(const uint16_t* from, int64_t stride, int32_t width, int32_t height, uint16_t* to, int64_t to_stride);
void halve(const float* from, int64_t stride, int32_t width, int32_t height, float* to, int64_t to_stride);

} // namespace millrace::volume
