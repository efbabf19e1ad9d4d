// Follows boxes from detection to detection and gives each a number that stays with it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "millrace/payload.h"

namespace millrace::opencv {

// Intersection over union of two boxes, 0…1; 0 where one of them has no area.
float overlap(const Box& a, const Box& b);

// One coordinate that moves with nearly constant speed: a Kalman filter whose two states are position and velocity (in
// units a tick), driven by white noise acceleration. (Y. Bar-Shalom, X. Li, T. Kirubarajan: "Estimation with
// Applications to Tracking and Navigation", 2001, §6.3.2.)
class MotionFilter {
 public:
  // `position_deviation` and `velocity_deviation`: how wrong the first position and a velocity of zero may be.
  MotionFilter(double position, double position_deviation, double velocity_deviation);

  // One tick passes; the speed changes by about `acceleration_deviation`.
  void predict(double acceleration_deviation);
  // The position was measured, wrong by about `measurement_deviation`.
  void correct(double measured, double measurement_deviation);

  double position() const { return position_; }
  double velocity() const { return velocity_; }

 private:
  double position_, velocity_ = 0;
  double position_variance_, covariance_ = 0, velocity_variance_;
};

struct TrackerSettings {
  double overlap_min = 0.3; // a detection that overlaps a prediction by less is not its
  uint32_t age_max = 15;    // ticks that a track lives without a detection
  uint32_t hits_min = 2;    // detections before a track is shown and numbered
};

// Tracks at most; detections that would begin more are ignored.
inline constexpr uint32_t kTracksMax = 256;

// Tracks of one scene. A tick is one predict(), then, where a detector ran, one correct(). Numbers begin with 1, are
// given when a track is confirmed, and are never given twice. The same calls give the same numbers. Not thread safe.
class Tracker {
 public:
  explicit Tracker(TrackerSettings settings = {}) : settings_(settings) {}

  void predict();
  // What the detector saw at this tick; no boxes: it saw nothing, which is not the same as not having looked.
  void correct(std::span<const Box> detections);
  // The confirmed tracks where they are now, by number; writes at most boxes.size() and returns how many.
  size_t write(std::span<Box> boxes) const;
  // Forgets all tracks; numbers go on.
  void clear() { tracks_.clear(); }

 private:
  struct Track {
    MotionFilter x, y; // of the centre
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

  // For each track the index of its detection, -1 where it has none.
  std::vector<int32_t> match(std::span<const Box> detections) const;

  TrackerSettings settings_;
  std::vector<Track> tracks_; // in the order in which they began
  int64_t next_id_ = 1;
};

} // namespace millrace::opencv
