// Tiles of a contact sheet: thinned while they are collected, laid out at the end.
#include "plugins/opencv/contact_sheet.h"

#include <algorithm>

#include <opencv2/imgproc.hpp>

namespace millrace::opencv {

namespace {
constexpr int kGap = 4; // pixels between tiles, so that neighbours of one scene do not run together
} // namespace

ContactSheet::ContactSheet(int columns, int tile_width, uint32_t tiles_max, uint64_t step)
    : columns_(columns), tile_width_(tile_width), tiles_max_(tiles_max), first_step_(step), step_(step) {}

void ContactSheet::add(const cv::Mat& picture) {
  const uint64_t number = next_++;
  if (number % step_ != 0) return;
  if (tiles_.size() == tiles_max_) {
    // Tile i was picture i·step; those with even i are the pictures that the doubled step would have kept.
    for (size_t i = 0; 2 * i < tiles_.size(); ++i) tiles_[i] = tiles_[2 * i];
    tiles_.resize((tiles_.size() + 1) / 2);
    step_ *= 2;
    if (number % step_ != 0) return;
  }
  const int height = std::max(1, static_cast<int>(int64_t{tile_width_} * picture.rows / picture.cols));
  cv::Mat tile;
  cv::resize(picture, tile, {tile_width_, height}, 0, 0, cv::INTER_AREA);
  tiles_.push_back(tile);
}

cv::Mat ContactSheet::compose() const {
  if (tiles_.empty()) return {};
  int tile_height = 0; // the tallest tile's: pictures may change size in mid-stream
  for (const cv::Mat& tile : tiles_) tile_height = std::max(tile_height, tile.rows);
  const int count = static_cast<int>(tiles_.size());
  const int columns = std::min(columns_, count), rows = (count + columns - 1) / columns;
  cv::Mat sheet(rows * (tile_height + kGap) - kGap, columns * (tile_width_ + kGap) - kGap, CV_8UC3, cv::Scalar::all(0));
  for (int i = 0; i < count; ++i) {
    const cv::Mat& tile = tiles_[static_cast<size_t>(i)];
    const cv::Rect place(i % columns * (tile_width_ + kGap), i / columns * (tile_height + kGap), tile.cols, tile.rows);
    tile.copyTo(sheet(place));
  }
  return sheet;
}

void ContactSheet::clear() {
  tiles_.clear();
  next_ = 0;
  step_ = first_step_;
}

} // namespace millrace::opencv
