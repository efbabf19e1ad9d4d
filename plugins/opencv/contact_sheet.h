// A contact sheet: small pictures of a stream of unknown length side by side in one large one.
#pragma once

#include <cstdint>
#include <vector>

#include <opencv2/core.hpp>

namespace millrace::opencv {

// Collects tiles. A full sheet drops every other tile and doubles its step, so that it spans a stream of any length in
// bounded memory. Not thread safe.
class ContactSheet {
 public:
  // Makes every `step`-th picture a tile. Tiles are `tile_width` pixels wide, `columns` to a row, at most `tiles_max`
  // (even).
  ContactSheet(int columns, int tile_width, uint32_t tiles_max, uint64_t step);

  // Offers the next picture (8 bit, three channels, blue first); it is copied only if it becomes a tile.
  void add(const cv::Mat& picture);
  // The sheet so far: rows filled left to right on black; an empty matrix if there is no tile.
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
