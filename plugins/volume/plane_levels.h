// The rules by which a plane is shown: the part of it that is read, and how coarse it is.
//
// Level 0 is the plane itself, and each further level has half the sides of the one before, rounded up. A pixel of
// level L is 2^L pixels of level 0 wide. A region is of one level; a time is media time, so a run in virtual time
// decides the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace millrace::volume {

struct PlaneSize {
  int32_t width = 0, height = 0;
  friend bool operator==(const PlaneSize&, const PlaneSize&) = default;
};
PlaneSize size_at(PlaneSize finest, int32_t level);
// Levels down to a single pixel.
int32_t count_of_levels(PlaneSize finest);

// Pixels from (left, top) to before (right, bottom).
struct Region {
  int32_t left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const Region&, const Region&) = default;

  int32_t width() const { return right - left; }
  int32_t height() const { return bottom - top; }
  bool is_empty() const { return right <= left || bottom <= top; }
  bool covers(const Region& other) const {
    return left <= other.left && top <= other.top && right >= other.right && bottom >= other.bottom;
  }
};

// The picture's corners on the plane, in pixels of level 0.
struct Corner {
  double x, y;
};
using Corners = std::array<Corner, 4>;

// The smallest region in which all that the picture shows of the plane lies; empty if it shows nothing.
Region seen_region(const Corners& corners, PlaneSize finest, int32_t level);

struct ChunkGrid {
  int32_t side = 256;     // a chunk's
  int32_t padding = 1;    // chunks around those that are seen
  int32_t moved_less = 4; // pixels; a region that moved less than this stays
};
// The region that is read for a picture: the seen one, out to the edges of chunks, and the padding. `before` stays if
// it covers what is seen and none of its edges would move by ChunkGrid::moved_less or more. If nothing is seen it is
// the whole plane.
Region region_of_interest(const Corners& corners, PlaneSize finest, int32_t level, const ChunkGrid& grid,
                          const std::optional<Region>& before);

// Pixels of a level for one of the picture. `view_width`, `view_height`: the region's sides in the picture.
double oversampling(const Region& region, double view_width, double view_height);

// A person has zoomed.
struct ZoomHint {
  double ratio;  // the seen part's side after it to that before: below 1 the person went nearer
  int64_t at_ns; // media time
};
struct LevelNow {
  int32_t level, count;
  int64_t now_ns;
  std::optional<ZoomHint> zoomed;
  std::optional<int64_t> changed_ns; // the level's last change
};
// The level for the next picture: the present one, or one beside it. A zoom of the last half second says which way,
// else a level is left if the finer one has at most 1.05 of its pixels for one of the picture, or if it has more than
// 1.35 itself. A way that the zoom said is not gone unless the same holds, and the bounds are then 1.20 at most. After
// a change the level stays for 150 ms.
int32_t next_level(const LevelNow& now, const std::function<double(int32_t level)>& oversampling_at);
// The first level by the same rules, without a zoom and without waiting.
int32_t first_level(int32_t count, const std::function<double(int32_t level)>& oversampling_at);
// The first level from this one on whose region has at most so many bytes; the coarsest if none has.
int32_t level_within(int32_t level, int32_t count, uint64_t bytes_max,
                     const std::function<uint64_t(int32_t level)>& bytes_at);

// A picture of a plane, as far as levels depend on it.
struct PlaneSight {
  PlaneSize plane;
  Corners corners;
  double pixels; // the picture has these for one of level 0
  double zoom;   // the camera's
  int64_t now_ns;
  int32_t level;       // the one that was asked for; -1: by the rules
  uint32_t item_bytes; // a pixel has these
};

// Chooses level and region of one picture after the other.
class LevelChooser {
 public:
  struct Choice {
    int32_t level = 0;
    Region region;
    bool is_seen = false; // else no part of the plane is in the picture
  };
  // `bytes_max`: of a region.
  LevelChooser(const ChunkGrid& grid, uint64_t bytes_max) : grid_(grid), bytes_max_(bytes_max) {}
  Choice choose(const PlaneSight& sight);
  // Call it when another plane size is shown, or time begins anew.
  void reset();

 private:
  const ChunkGrid grid_;
  const uint64_t bytes_max_;
  std::optional<Choice> last_;
  std::optional<ZoomHint> zoomed_;
  std::optional<int64_t> changed_ns_;
  double zoom_ = 0;
};

} // namespace millrace::volume
