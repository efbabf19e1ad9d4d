// test.points: a source of points that move.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <cstddef>
#include <cstdint>

#include "handlers/gpu/mark_kernels.h"
#include "handlers/test/moving_points.h"

namespace millrace::handlers {
namespace {

constexpr const char* kPointsManual = &R"(
Gives `points` points that fly through a picture of `width` × `height` in straight lines and come
back from its edges. Each is a function of the tick's index, its number and `seed` alone, so any
tick can be computed by itself. Ids are the numbers, from 0; the age is the index.

    test.points points=200 count=300 ! null.sink
)"[1];

class TestPoints final : public Handler {
 public:
  TestPoints() {
    no_allocation();
    capturable();
  }

  void probe(Facts& facts) override { facts.tick_count(count_ == 0 ? -1 : *count_); }

  void configure(const Formats& formats) override {
    formats.out(out_).record_count_max = static_cast<uint64_t>(*points_);
  }

  void process(Tick& tick, Cpu&) {
    const uint64_t index = tick.index();
    if (count_ > 0 && index >= static_cast<uint64_t>(*count_)) return tick.end();
    const MovingPoints moving = points();
    const std::span<Point> made = out_.allocate(tick, static_cast<size_t>(*points_));
    for (size_t n = 0; n < made.size(); ++n) made[n] = point_at(moving, index, n);
  }

  // Does not end the stream: a body that is called once for many ticks cannot. The plan ends it after tick_count()
  // ticks.
  void process(Tick& tick, Cuda& cuda) {
    Point* const made = out_.allocate(tick, static_cast<size_t>(*points_)).data();
    gpu::check(gpu::library_of(cuda).marks->moving_points(
        cuda.stream(), points(), cuda.tick(), static_cast<uint32_t>(*points_), {made, Cuda::count_of(out_.raw(tick))}));
  }

 private:
  MovingPoints points() const {
    return {static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_), static_cast<uint64_t>(*seed_)};
  }

  Output<Records<Point>> out_{*this, "points"};
  Param<int64_t> points_{*this, "points", 100, "of each tick", range(1, 65536)};
  Param<int64_t> width_{*this, "width", 640, "of the picture that they fly through", range(1, 16384), unit("px")};
  Param<int64_t> height_{*this, "height", 360, "of that picture", range(1, 16384), unit("px")};
  Param<int64_t> seed_{*this, "seed", 0, "other ways for another seed"};
  Param<int64_t> count_{*this, "count", 0, "ticks until the end; 0: endless", at_least(0)};
};

} // namespace

const mr_handler_type& test_points_type() {
  static const mr_handler_type type =
      detail::Type<TestPoints>::table("test.points", "Gives points that move", kPointsManual);
  return type;
}

} // namespace millrace::handlers
