// A contact sheet: small pictures of a stream of unknown length side by side in one large one.
#pragma once

#include <cstdint>
#include <vector>

#include <opencv2/core.hpp>

namespace millrace::opencv {

// Collects tiles. A sheet that is full drops every other tile and doubles its step, so that it spans the whole stream
// in bounded memory, however long that is. Not thread safe.
class ContactSheet {
 public:
  // Tiles of `tile_width` pixels, `columns` to a row, at most `tiles_max` (even); every `step`-th picture is one.
  ContactSheet(int columns, int tile_width, uint32_t tiles_max, uint64_t step);

  // Offers the next picture (8 bit, three channels, blue first); it is copied only where it becomes a tile.
  void add(const cv::Mat& picture);
  // The sheet so far: rows filled left to right on black; an empty matrix where there is no tile.
  cv::Mat compose() const;
  void clear();

  size_t tile_count() const { return tiles_.size(); }
  uint64_t step() const { return step_; }

 private:
  int columns_, tile_width_;
  uint32_t tiles_max_;
  uint64_t first_step_, step_;
  uint64_t next_ = 0; // the number of the next picture offered
  std::vector<cv::Mat> tiles_;
};

} // namespace millrace::opencv
