// The tracker: predicts, matches by overlap, corrects. Each coordinate of a box's centre has a filter; its size is
// smoothed.
#include "plugins/opencv/tracker.h"

#include <algorithm>
#include <cmath>

#include "plugins/opencv/assignment.h"

namespace millrace::opencv {

namespace {

// Deviations are fractions of the box's height, because nearer objects move and err by more pixels. The measurement's
// is that of DeepSORT (N. Wojke, A. Bewley, D. Paulus, 2017), 1/20. The velocity's is that of a walker (1.4 m/s, 1.7 m
// tall) in a tick of 1/10 s. The acceleration's lets a walker stop or turn within a second.
constexpr double kMeasurementDeviation = 1.0 / 20;
constexpr double kVelocityDeviation = 1.0 / 12;
constexpr double kAccelerationDeviation = 1.0 / 100;

// A size has no velocity, because sizes change slowly and detectors quantise them: predicted growth would blow up a box
// that is not detected for a while. Instead each detection moves the size by this fraction of the difference.
constexpr double kSizeGain = 0.3;

double centre_x(const Box& box) { return box.x + box.width / 2.0; }
double centre_y(const Box& box) { return box.y + box.height / 2.0; }

} // namespace

float overlap(const Box& a, const Box& b) {
  const float left = std::max(a.x, b.x), right = std::min(a.x + a.width, b.x + b.width);
  const float top = std::max(a.y, b.y), bottom = std::min(a.y + a.height, b.y + b.height);
  if (right <= left || bottom <= top) return 0;
  const float shared = (right - left) * (bottom - top);
  return shared / (a.width * a.height + b.width * b.height - shared);
}

MotionFilter::MotionFilter(double position, double position_deviation, double velocity_deviation)
    : position_(position),
      position_variance_(position_deviation * position_deviation),
      velocity_variance_(velocity_deviation * velocity_deviation) {}

void MotionFilter::predict(double acceleration_deviation) {
  const double noise = acceleration_deviation * acceleration_deviation;
  position_ += velocity_;
  position_variance_ += 2 * covariance_ + velocity_variance_ + noise / 4;
  covariance_ += velocity_variance_ + noise / 2;
  velocity_variance_ += noise;
}

void MotionFilter::correct(double measured, double measurement_deviation) {
  const double innovation_variance = position_variance_ + measurement_deviation * measurement_deviation;
  if (innovation_variance <= 0) return; // both positions are certain: there is nothing to weigh
  const double position_gain = position_variance_ / innovation_variance;
  const double velocity_gain = covariance_ / innovation_variance;
  const double misprediction = measured - position_;
  position_ += position_gain * misprediction;
  velocity_ += velocity_gain * misprediction;
  velocity_variance_ -= velocity_gain * covariance_;
  covariance_ -= position_gain * covariance_;
  position_variance_ -= position_gain * position_variance_;
}

Tracker::Track::Track(const Box& detection)
    : x(centre_x(detection), kMeasurementDeviation * detection.height, kVelocityDeviation * detection.height),
      y(centre_y(detection), kMeasurementDeviation * detection.height, kVelocityDeviation * detection.height),
      width(detection.width),
      height(detection.height),
      score(detection.score),
      label(detection.label) {}

Box Tracker::Track::box() const {
  return {static_cast<float>(x.position() - width / 2),
          static_cast<float>(y.position() - height / 2),
          static_cast<float>(width),
          static_cast<float>(height),
          score,
          label,
          id};
}

void Tracker::Track::correct(const Box& detection) {
  x.correct(centre_x(detection), kMeasurementDeviation * height);
  y.correct(centre_y(detection), kMeasurementDeviation * height);
  width += kSizeGain * (detection.width - width);
  height += kSizeGain * (detection.height - height);
  score = detection.score;
  age = 0;
  ++hits;
}

void Tracker::predict() {
  for (Track& track : tracks_) {
    track.x.predict(kAccelerationDeviation * track.height);
    track.y.predict(kAccelerationDeviation * track.height);
    ++track.age;
  }
  std::erase_if(tracks_, [this](const Track& track) { return track.age > settings_.age_max; });
}

std::vector<int32_t> Tracker::match(std::span<const Box> detections) const {
  // A forbidden pair costs as much as the worst allowed one. Choosing it then does not change the total, so it never
  // separates a good pair. Forbidden pairs are removed afterwards.
  const double refused = 1.0 - settings_.overlap_min;
  std::vector<double> cost;
  cost.reserve(tracks_.size() * detections.size());
  for (const Track& track : tracks_) {
    const Box predicted = track.box();
    for (const Box& detection : detections) {
      const double distance = detection.label == track.label ? 1.0 - overlap(predicted, detection) : 1.0;
      cost.push_back(std::min(distance, refused));
    }
  }
  std::vector<int32_t> detection_of =
      assign_least_cost(cost, static_cast<uint32_t>(tracks_.size()), static_cast<uint32_t>(detections.size()));
  for (size_t t = 0; t < tracks_.size(); ++t)
    if (detection_of[t] >= 0 && cost[t * detections.size() + static_cast<size_t>(detection_of[t])] >= refused)
      detection_of[t] = -1;
  return detection_of;
}

void Tracker::correct(std::span<const Box> detections) {
  const std::vector<int32_t> detection_of = match(detections);
  std::vector<char> taken(detections.size(), 0);
  for (size_t t = 0; t < tracks_.size(); ++t) {
    if (detection_of[t] < 0) continue;
    const auto detection = static_cast<size_t>(detection_of[t]);
    tracks_[t].correct(detections[detection]);
    taken[detection] = 1;
  }
  // An unconfirmed track ends at its first miss: an object that is seen once and not again is no object.
  std::erase_if(tracks_, [](const Track& track) { return track.id < 0 && track.age > 0; });
  for (size_t d = 0; d < detections.size() && tracks_.size() < kTracksMax; ++d)
    if (!taken[d] && detections[d].width > 0 && detections[d].height > 0) tracks_.emplace_back(detections[d]);
  for (Track& track : tracks_)
    if (track.id < 0 && track.hits >= settings_.hits_min) track.id = next_id_++;
}

size_t Tracker::write(std::span<Box> boxes) const {
  size_t count = 0;
  for (const Track& track : tracks_)
    if (track.id >= 0 && count < boxes.size()) boxes[count++] = track.box();
  std::sort(boxes.begin(), boxes.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Box& a, const Box& b) { return a.id < b.id; });
  return count;
}

} // namespace millrace::opencv
