// clock.faces: a clock at each point, in marks that draw.marks paints.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <cmath>

namespace mr = millrace;

namespace {

struct Faces final : mr::Handler {
  static constexpr uint32_t kMarks = 15; // a face, twelve hours, two hands

  mr::Input<mr::Records<mr::Point>> points{*this, "points", mr::help("in pixels of the picture")};
  mr::Output<mr::Records<mr::Mark>> marks{*this, "marks"};
  mr::Param<float> radius{*this, "radius", 30, "of a clock", mr::range(1, 4096), mr::unit("px"), mr::live};
  mr::Param<float> speed{*this, "speed", 1, "hours that pass in a second of the film", mr::range(0, 1000), mr::live};

  void configure(const mr::Formats& formats) override {
    formats.out(marks).record_count_max = std::max<uint64_t>(kMarks * formats.in(points).record_count_max, 1);
  }

  void process(mr::Tick& tick, mr::Cpu&) {
    const std::span<const mr::Point> at = points(tick);
    const float hours = speed * static_cast<float>(tick.media_time_ns()) / 1e9f;
    mr::Mark* mark = marks.allocate(tick, kMarks * at.size()).data();
    for (const mr::Point& point : at) {
      *mark++ = face(point, radius);
      for (int hour = 0; hour < 12; ++hour) *mark++ = ray(point, hour / 12.0f, 0.85f * radius, 0.95f * radius, 1);
      *mark++ = ray(point, hours / 12, 0, 0.5f * radius, 3);
      *mark++ = ray(point, hours, 0, 0.8f * radius, 2);
    }
  }

  // A round box around the point, half transparent.
  static mr::Mark face(const mr::Point& point, float radius) {
    mr::Mark mark{static_cast<int32_t>(mr::MarkKind::box), -1, {point.x, point.y, 2 * radius, 2 * radius}, 2, 1};
    mark.fill[3] = 0.5f;
    return mark;
  }
  // A segment on the ray from the point that is so many turns after twelve o'clock.
  static mr::Mark ray(const mr::Point& point, float turns, float from, float to, float width) {
    const float turn = 2 * 3.14159265f * turns, x = std::sin(turn), y = -std::cos(turn);
    return {static_cast<int32_t>(mr::MarkKind::segment),
            -1,
            {point.x + from * x, point.y + from * y, point.x + to * x, point.y + to * y},
            width};
  }
};

} // namespace

MILLRACE_HANDLER(Faces, "clock.faces", "Makes a clock at each point, for draw.marks")
MILLRACE_PLUGIN("clock", "0.1.0")
