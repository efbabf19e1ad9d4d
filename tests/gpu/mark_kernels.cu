// The kernels of draw.marks, of the makers of its marks and of test.points against what the handlers give on the CPU.
#include "handlers/gpu/mark_kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include "on_gpu_tensor.h"
#include "tests/handlers/builtin.h"
#include "tests/handlers/pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

// Marks of every kind on and around a picture. Some are not sound. Neighbours often share a stroke.
std::vector<Mark> any_marks(uint32_t count, uint32_t width, uint32_t height, uint32_t seed) {
  std::mt19937 random(seed);
  const auto any = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * (static_cast<double>(random()) / 4294967295.0));
  };
  std::vector<Mark> marks(count);
  for (Mark& mark : marks) {
    const bool is_box = random() % 2;
    mark.kind = static_cast<int32_t>(is_box ? MarkKind::box : MarkKind::segment);
    mark.stroke = random() % 3 ? static_cast<int32_t>(random() % 2) : -1;
    mark.at[0] = any(-20, width + 20);
    mark.at[1] = any(-20, height + 20);
    mark.at[2] = is_box ? any(0, width / 2.0) : random() % 8 ? any(-20, width + 20) : mark.at[0];
    mark.at[3] = is_box ? any(0, height / 2.0) : random() % 8 ? any(-20, height + 20) : mark.at[1];
    mark.at[4] = is_box && random() % 2 ? any(-3, 3) : 0;
    mark.width = random() % 4 ? any(0, 9) : 0.4f;
    mark.roundness = any(-0.2, 1.2);
    for (float& part : mark.color) part = any(-0.1, 1.1);
    for (float& part : mark.fill) part = random() % 2 ? any(0, 1) : 0;
    if (!is_box && random() % 2) {
      mark.kind = static_cast<int32_t>(MarkKind::curve);
      mark.at[4] = any(-20, width + 20);
      mark.at[5] = any(-20, height + 20);
    }
    if (random() % 16 == 0) mark.at[random() % 4] = std::numeric_limits<float>::quiet_NaN();
    if (random() % 16 == 0) mark.kind = 7;
  }
  return marks;
}

// A list in device memory.
template <class T>
struct OnDevice {
  explicit OnDevice(const std::vector<T>& list, uint32_t room = 0)
      : most(std::max(room, static_cast<uint32_t>(list.size()))), bytes(padded(list, most).data(), most * sizeof(T)) {
    const uint64_t size = list.size();
    count = std::make_unique<on_gpu::Bytes>(&size, sizeof size);
  }
  static std::vector<T> padded(std::vector<T> list, uint32_t most) {
    list.resize(most);
    return list;
  }
  gpu::DeviceList<T> list() const {
    return {static_cast<const T*>(bytes.data()), static_cast<const uint64_t*>(count->data()), most};
  }

  uint32_t most;
  on_gpu::Bytes bytes;
  std::unique_ptr<on_gpu::Bytes> count;
};

// Paints the lists with both bodies. They may differ by one step, and skip as many.
void compare(const Value& canvas, const std::vector<std::vector<Mark>>& lists, bool soft = false, bool adds = false) {
  TableTest draw(builtin("draw.marks"), {{"edge", soft ? "soft" : "crisp"}, {"blend", adds ? "add" : "over"}});
  draw.input("video", canvas);
  for (uint32_t list = 0; list < lists.size(); ++list) draw.input("marks", testing::records<Mark>(lists[list]), list);
  const Result wanted = draw.tick();
  REQUIRE_MESSAGE(wanted.ok(), wanted.error);

  std::vector<std::unique_ptr<OnDevice<Mark>>> on_device;
  gpu::MarkLists of_kernel;
  uint64_t most = 0;
  for (const std::vector<Mark>& list : lists) { // with room that is not used, and so not looked at
    on_device.push_back(std::make_unique<OnDevice<Mark>>(list, static_cast<uint32_t>(list.size() + 3)));
    of_kernel.lists[of_kernel.count++] = on_device.back()->list();
    most += on_device.back()->most;
  }
  const on_gpu::Bytes scratch(gpu::mark_scratch_bytes(most));
  const ImageView from = canvas.image();
  const on_gpu::TwinPicture twin(from);
  const gpu::MarkKernels& kernels = gpu::mark_kernels();
  gpu::check(kernels.skipped.begin(on_gpu::kStream, scratch.data()));
  gpu::check(
      kernels.paint(on_gpu::kStream, of_kernel, {soft, adds, from.pixel()}, twin.device(), scratch.data(), most));
  Picture made(from.pixel(), from.width(), from.height());
  twin.download(made.span());
  CHECK(distance(made.view(), wanted.image("video")) <= 1);
  uint64_t skipped = 0;
  REQUIRE(kernels.skipped.read(on_gpu::kStream, scratch.data(), skipped));
  CHECK(static_cast<int64_t>(skipped) == draw.counts()["marks_skipped"]);
  scratch.download(); // throws if a kernel wrote beyond it
}

// Boxes and points with and without ids, in device memory too.
struct Sources {
  std::vector<Box> boxes = std::vector<Box>(37);
  std::vector<Point> points = std::vector<Point>(29);

  Sources() {
    std::mt19937 random(3);
    const auto any = [&](double most) { return static_cast<float>(random() % 4096) / 4096 * static_cast<float>(most); };
    const auto any_id = [&] { return static_cast<int64_t>(random() % 40) - 1; };
    for (Box& box : boxes)
      box = {any(600), any(300), any(200), any(90), 1, static_cast<int32_t>(random() % 9) - 1, any_id()};
    for (Point& point : points) {
      point = {
          any(600), any(300), any(20), 1, static_cast<int32_t>(random() % 9), static_cast<uint32_t>(random() % 99)};
      point.id = any_id();
    }
  }
};

void check_same(const std::vector<Mark>& made, std::span<const Mark> wanted) {
  REQUIRE(made.size() == wanted.size());
  const auto near = [](float a, float b) { return std::fabs(a - b) <= 1e-5f * std::max(1.0f, std::fabs(b)); };
  for (size_t m = 0; m < made.size(); ++m) {
    CHECK(made[m].kind == wanted[m].kind);
    CHECK(made[m].stroke == wanted[m].stroke);
    bool all = near(made[m].width, wanted[m].width) && near(made[m].roundness, wanted[m].roundness);
    for (int i = 0; i < 6; ++i) all = all && near(made[m].at[i], wanted[m].at[i]);
    for (int c = 0; c < 4; ++c)
      all = all && near(made[m].color[c], wanted[m].color[c]) && near(made[m].fill[c], wanted[m].fill[c]);
    CHECK(all);
  }
}

// The marks that `launch` makes, at most so many.
template <class Launch>
std::vector<Mark> made_by(uint32_t most, const Launch& launch) {
  const on_gpu::Bytes records(most * sizeof(Mark)), count(sizeof(uint64_t));
  gpu::check(launch(gpu::MadeList<Mark>{static_cast<Mark*>(records.data()), static_cast<uint64_t*>(count.data())}));
  uint64_t size = 0;
  std::memcpy(&size, count.download().data(), sizeof size);
  REQUIRE(size <= most);
  std::vector<Mark> marks(size);
  std::memcpy(marks.data(), records.download().data(), size * sizeof(Mark));
  return marks;
}

} // namespace

TEST_CASE("random marks are painted as on the CPU, within a step, in every format") {
  for (const Pixel pixel : kInterleaved)
    for (const bool soft : {false, true})
      for (const bool adds : {false, true})
        for (const uint32_t count : {0u, 1u, 40u, 700u}) {
          INFO(name_of(pixel), " ", count, " marks, ", soft ? "soft" : "crisp", adds ? ", added" : "");
          compare(noise(pixel, 203, 131, count + 1), {any_marks(count, 203, 131, count + soft)}, soft, adds);
        }
}

TEST_CASE("eight lists are painted in their order, also empty ones, and a stroke ends with its list") {
  std::vector<std::vector<Mark>> lists;
  for (uint32_t list = 0; list < 8; ++list) lists.push_back(any_marks(list % 3 * 25, 300, 200, list));
  compare(noise(Pixel::rgba8, 300, 200, 1), lists);
}

TEST_CASE("nothing is dropped: many marks in one tile, a stroke of many pieces, a full list, and a wide picture") {
  const Value canvas = noise(Pixel::rgba8, 200, 150, 3);
  std::vector<Mark> marks = any_marks(20'000, 64, 64, 1);
  for (Mark& mark : marks) mark.color[3] *= 0.01f;
  compare(canvas, {marks});
  for (Mark& mark : marks) mark.stroke = 5;
  compare(canvas, {marks});
  compare(canvas, {any_marks(65'536, 200, 150, 2)}, true);
  compare(noise(Pixel::rgb8, 7680, 70, 5), {any_marks(300, 7680, 70, 4)});
  compare(noise(Pixel::gray8, 1, 1, 6), {any_marks(9, 1, 1, 5)});
}

TEST_CASE("frames around each other, whose areas are in all tiles, are in those of their lines") {
  std::vector<Mark> frames(400);
  for (uint32_t n = 0; n < frames.size(); ++n) {
    Mark& frame = frames[n];
    frame.kind = static_cast<int32_t>(MarkKind::box);
    frame.at[0] = 400;
    frame.at[1] = 300;
    frame.at[2] = 790 - static_cast<float>(n);
    frame.at[3] = 590 - static_cast<float>(n);
    frame.color[3] = 0.5f;
  }
  compare(noise(Pixel::rgba8, 800, 600, 7), {frames});
}

TEST_CASE("a stroke that began far away is not that of a mark before, however many marks are between them") {
  for (const uint32_t between : {1u, 255u, 256u, 511u, 512u, 1'500u, 3'000u}) {
    CAPTURE(between);
    std::vector<Mark> marks(between + 2);
    for (uint32_t n = 0; n < marks.size(); ++n) {
      const bool is_far = n > 0 && n <= between;
      const float place = is_far ? 180.5f : 20.5f;
      marks[n].kind = static_cast<int32_t>(MarkKind::segment);
      for (const uint32_t i : {0u, 1u, 3u}) marks[n].at[i] = place;
      marks[n].at[2] = place + 10;
      marks[n].width = 6;
      marks[n].color[3] = 0.5f;
      marks[n].stroke = n == 0 ? 1 : 2;
    }
    compare(noise(Pixel::rgba8, 200, 200, 8), {marks});
  }
}

TEST_CASE("marks of boxes and points are those that the CPU makes") {
  const Sources sources;
  const OnDevice<Box> boxes(sources.boxes);
  const OnDevice<Point> points(sources.points);
  const char* const sizes[] = {"own", "fixed", "radius", "age"};
  for (uint32_t size = 0; size < 4; ++size)
    for (const bool corners : {false, true})
      for (const bool filled : {false, true}) {
        CAPTURE(sizes[size]);
        CAPTURE(corners);
        TableTest maker(builtin("marks.boxes"), {{"size", sizes[size]},
                                                 {"side", "31"},
                                                 {"corners", corners ? "0.25" : "0"},
                                                 {"roundness", corners ? "0" : "0.5"},
                                                 {"fill", filled ? "0.5" : "0"},
                                                 {"opacity", "0.75"}});
        maker.input("boxes", testing::records<Box>(sources.boxes));
        maker.input("points", testing::records<Point>(sources.points));
        const Result wanted = maker.tick();
        REQUIRE_MESSAGE(wanted.ok(), wanted.error);
        const draw::BoxMarkStyle style = {static_cast<draw::BoxSize>(size),
                                          31,
                                          2,
                                          corners ? 0 : 0.5f,
                                          corners ? 0.25f : 0,
                                          filled ? 0.5f : 0,
                                          {true, {}, 0.75f}};
        const auto launch = [&](const gpu::MadeList<Mark>& to) {
          return gpu::mark_kernels().boxes(on_gpu::kStream, boxes.list(), points.list(), style, to);
        };
        check_same(made_by((boxes.most + points.most) * draw::marks_of_box(style), launch),
                   wanted.records<Mark>("marks"));
      }
}

TEST_CASE("dots of points are those that the CPU makes") {
  const Sources sources;
  const OnDevice<Point> points(sources.points);
  const char* const shapes[] = {"disc", "ring", "square", "diamond", "plus", "cross"};
  for (uint32_t shape = 0; shape < 6; ++shape) {
    CAPTURE(shapes[shape]);
    TableTest maker(builtin("marks.dots"), {{"shape", shapes[shape]}, {"radius", "0"}, {"color", "#80ff0040"}});
    maker.input("points", testing::records<Point>(sources.points));
    const Result wanted = maker.tick();
    REQUIRE_MESSAGE(wanted.ok(), wanted.error);
    const draw::DotStyle style = {
        static_cast<draw::DotShape>(shape), 0, 2, {false, {128 / 255.0f, 1, 0, 64 / 255.0f}, 1}};
    const auto launch = [&](const gpu::MadeList<Mark>& to) {
      return gpu::mark_kernels().dots(on_gpu::kStream, points.list(), style, to);
    };
    check_same(made_by(points.most * draw::marks_of_dot(style), launch), wanted.records<Mark>("marks"));
  }
}

TEST_CASE("makers without boxes and points make an empty list") {
  const on_gpu::Bytes records(sizeof(Mark)), count(sizeof(uint64_t));
  const gpu::MadeList<Mark> to = {static_cast<Mark*>(records.data()), static_cast<uint64_t*>(count.data())};
  gpu::check(gpu::mark_kernels().boxes(on_gpu::kStream, {}, {}, {}, to));
  CHECK(count.download() == std::vector<uint8_t>(8, 0));
  gpu::check(gpu::mark_kernels().dots(on_gpu::kStream, {}, {}, to));
  CHECK(count.download() == std::vector<uint8_t>(8, 0));
}

TEST_CASE("moving points are the same bits on both") {
  TableTest source(builtin("test.points"), {{"points", "500"}, {"seed", "9"}});
  REQUIRE(source.tick().ok());
  const Result wanted = source.tick(); // index 1
  REQUIRE_MESSAGE(wanted.ok(), wanted.error);
  const std::span<const Point> points = wanted.records<Point>("points");
  const mr_device_tick tick = {wanted.tick.index, wanted.tick.media_time_ns, 0};
  const on_gpu::Bytes device_tick(&tick, sizeof tick), records(500 * sizeof(Point)), count(sizeof(uint64_t));
  gpu::check(gpu::mark_kernels().moving_points(
      on_gpu::kStream, {640, 360, 9}, static_cast<const mr_device_tick*>(device_tick.data()), 500,
      {static_cast<Point*>(records.data()), static_cast<uint64_t*>(count.data())}));
  REQUIRE(points.size() == 500);
  CHECK(std::memcmp(records.download().data(), points.data(), points.size_bytes()) == 0);
  const uint64_t size = 500;
  CHECK(std::memcmp(count.download().data(), &size, sizeof size) == 0);
}
