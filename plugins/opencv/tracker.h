// Follows boxes from detection to detection and gives each a number that stays with it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/payload.h"

namespace millrace::opencv {

// Intersection over union of two boxes, 0…1; 0 if one of them has no area.
float overlap(const Box& a, const Box& b);

// One coordinate that moves with nearly constant speed: a Kalman filter whose two states are position and velocity (in
// units a tick), driven by white noise acceleration. (Y. Bar-Shalom, X. Li, T. Kirubarajan: "Estimation with
// Applications to Tracking and Navigation", 2001, §6.3.2.)
class MotionFilter {
 public:
  // `position_deviation` and `velocity_deviation`: standard errors of the first position and of the assumed velocity of
  // zero.
  MotionFilter(double position, double position_deviation, double velocity_deviation);

  // Advances by one tick, in which the speed changes by about `acceleration_deviation`.
  void predict(double acceleration_deviation);
  // Takes a measured position with an error of about `measurement_deviation`.
  void correct(double measured, double measurement_deviation);

  double position() const { return position_; }
  double velocity() const { return velocity_; }

 private:
  double position_, velocity_ = 0;
  double position_variance_, covariance_ = 0, velocity_variance_;
};

struct TrackerSettings {
  double overlap_min = 0.3; // a detection with less overlap does not belong to the track
  uint32_t age_max = 15;    // ticks that a track lives without a detection
  uint32_t hits_min = 2;    // detections before a track is shown and numbered
};

// The most tracks. Detections that would begin more are ignored.
inline constexpr uint32_t kTracksMax = 256;

// Tracks of one scene. Each tick calls predict() once, then correct() once if a detector ran. A track gets its number
// when it is confirmed; numbers begin with 1 and are never given twice. The same calls give the same numbers. Not
// thread safe.
class Tracker {
 public:
  explicit Tracker(TrackerSettings settings = {}) : settings_(settings) {}

  void predict();
  // Takes the detections of this tick. An empty list means that the detector looked and saw nothing; if it did not
  // look, do not call this.
  void correct(std::span<const Box> detections);
  // Writes the current boxes of the confirmed tracks, ordered by number, at most boxes.size(). Returns their count.
  size_t write(std::span<Box> boxes) const;
  // Forgets all tracks. Numbering continues.
  void clear() { tracks_.clear(); }

 private:
  struct Track {
    MotionFilter x, y; // the centre's coordinates
    double width, height;
    float score;
    int32_t label;
    int64_t id = -1; // -1: not confirmed
    uint32_t hits = 1;
    uint32_t age = 0; // ticks since the last detection

    explicit Track(const Box& detection);
    Box box() const;
    void correct(const Box& detection);
  };

  // For each track the index of its detection, -1 if it has none.
  std::vector<int32_t> match(std::span<const Box> detections) const;

  TrackerSettings settings_;
  std::vector<Track> tracks_; // in the order in which they began
  int64_t next_id_ = 1;
};

} // namespace millrace::opencv
