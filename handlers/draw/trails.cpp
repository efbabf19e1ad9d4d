// draw.trails: draws the path of each tracked object.
#include <millrace/handler.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>

#include "handlers/draw/disc.h"
#include "handlers/gpu/box_marks.h"

namespace millrace::handlers {
namespace {

constexpr const char* kTrailsManual = &R"(
Draws the way that each box has come onto the picture, in the picture's own memory if the plan
allows: a line through the middles of its lower edges, which for people are their feet. Boxes are
known by their ids, as track.boxes gives them; boxes without an id have no trail. A trail reaches
back for `length` ticks and becomes thinner with age. One whose box is gone grows shorter until it
is gone too. The id chooses the colour, as in draw.boxes.

    test.pattern ! draw.trails name=t ; record.from_json path=examples/data/boxes.jsonl ! t.boxes
)"[1];

// More trails than can be told apart. While there are so many, a new box has none.
constexpr size_t kTrailsMax = 256;

class Trails final : public Handler {
 public:
  void start() override { forget(); }
  void reset() override { forget(); }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    ++now_;
    if (boxes_.present(tick))
      for (const Box& box : boxes_(tick)) note(box);
    const auto too_old = static_cast<uint64_t>(*length_);
    for (auto trail = trails_.begin(); trail != trails_.end();) {
      std::deque<Point>& points = trail->second;
      while (!points.empty() && now_ - points.front().tick >= too_old) points.pop_front();
      draw(picture, points, ink_of(draw::box_color(static_cast<uint64_t>(trail->first)), picture.pixel()));
      trail = points.empty() ? trails_.erase(trail) : std::next(trail);
    }
  }

 private:
  struct Point {
    Spot spot;
    uint64_t tick;
  };

  void note(const Box& box) {
    if (box.id < 0 || !draw::drawable(box) || (trails_.size() >= kTrailsMax && !trails_.count(box.id))) return;
    trails_[box.id].push_back({{box.x + box.width / 2.0, double{box.y} + box.height}, now_});
  }

  // Discs side by side, so close that the line has smooth edges.
  void draw(const ImageSpan& picture, const std::deque<Point>& points, const Ink& ink) const {
    for (size_t i = 1; i < points.size(); ++i) {
      const Spot from = points[i - 1].spot, to = points[i].spot;
      const double age = static_cast<double>(now_ - points[i].tick) / static_cast<double>(*length_);
      const double radius = std::max(kRadiusMin, *thickness_ / 2 * (1 - age));
      const double apart = std::hypot(to.x - from.x, to.y - from.y);
      const double steps = std::clamp(std::ceil(apart / radius), 1.0, kStepsMax);
      for (double step = 0; step <= steps; ++step)
        draw_disc(picture, {from.x + (to.x - from.x) * step / steps, from.y + (to.y - from.y) * step / steps}, radius,
                  ink);
    }
  }

  void forget() {
    trails_.clear();
    now_ = 0;
  }

  static constexpr double kRadiusMin = 0.5;  // a smaller disc with a smooth edge has no inside
  static constexpr double kStepsMax = 10000; // a box may jump to the end of a large picture

  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8})};
  Input<Records<Box>> boxes_{*this, "boxes", optional, idle_without, help("in pixels of the picture, with ids")};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<int64_t> length_{*this, "length", 30, "ticks that a trail reaches back", range(1, 1000), live};
  Param<double> thickness_{*this, "thickness", 3, "of a trail at its newest end", range(1, 100), unit("px"), live};
  std::map<int64_t, std::deque<Point>> trails_; // by id
  uint64_t now_ = 0;                            // ticks so far
};

} // namespace

const mr_handler_type& draw_trails_type() {
  static const mr_handler_type type =
      detail::Type<Trails>::table("draw.trails", "Draws the ways that what is followed has come", kTrailsManual);
  return type;
}

} // namespace millrace::handlers
