// The kernels of draw.boxes, draw.text and draw.waveform against what the handlers paint on the CPU.
#include "handlers/gpu/draw_kernels.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "handlers/draw/box_style.h"
#include "handlers/image/planes.h"
#include "on_gpu_tensor.h"
#include "tests/handlers/builtin.h"
#include "tests/handlers/pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

std::vector<Box> many_boxes(uint32_t count, uint32_t width, uint32_t height) {
  std::mt19937 random(count);
  const auto any = [&](uint32_t most) { return static_cast<float>(random() % (4 * most)) / 4; };
  std::vector<Box> boxes;
  for (uint32_t i = 0; i < count; ++i)
    boxes.push_back({any(width) - 10, any(height) - 10, any(width / 2) - 1, any(height / 2), 1,
                     static_cast<int32_t>(random() % 20) - 1,
                     i % 3 == 0 ? -1 : static_cast<int64_t>(random()) << (i % 31)});
  return boxes;
}

// A file in the system's folder for temporary ones: the tests run on machines that have nothing of the build folder.
struct NamesFile {
  explicit NamesFile(const std::string& text) { std::ofstream(path) << text; }
  ~NamesFile() { std::filesystem::remove(path); }
  const std::string path =
      (std::filesystem::temp_directory_path() / ("millrace_names_" + std::to_string(::getpid()))).string();
};

// The picture, painted over by `paint` on the device.
template <class Paint>
Picture painted(const Value& picture, Paint&& paint) {
  const on_gpu::TwinPicture twin(picture.image());
  paint(twin.device());
  const ImageView from = picture.image();
  Picture made(from.pixel(), from.width(), from.height());
  twin.download(made.span());
  return made;
}

} // namespace

TEST_CASE("boxes are framed and labelled as on the CPU, whichever lies over which") {
  const NamesFile names_file("cat\n\ntwo words\n");
  for (Pixel pixel : kPixelFormats)
    for (uint32_t count : {0u, 1u, 40u, 700u})
      for (bool labels : {true, false}) {
        const Value picture = noise(pixel, 203, 131, 203);
        const std::vector<Box> boxes = many_boxes(count, 203, 131);
        const bool has_names = labels && count != 40;
        const std::vector<std::string> names =
            has_names ? std::vector<std::string>{"cat", "", "two words"} : std::vector<std::string>{};
        TableTest draw(
            builtin("draw.boxes"),
            {{"size", "12"}, {"labels", labels ? "true" : "false"}, {"classes", has_names ? names_file.path : ""}});
        draw.input("video", picture);
        draw.input("boxes", testing::records<Box>(boxes));
        const Result wanted = draw.tick();
        REQUIRE_MESSAGE(wanted.ok(), wanted.error);

        const GlyphSet glyphs("", 12);
        const PackedSheet digits(glyphs, draw::kBoxGlyphs, names);
        const on_gpu::Bytes sheet(digits.bytes().size()), table(boxes.data(), boxes.size() * sizeof(Box));
        const uint64_t total = boxes.size();
        const on_gpu::Bytes device_count(&total, sizeof total);
        const Picture made = painted(picture, [&](const gpu::DevicePicture& device) {
          const gpu::DrawKernels& kernels = gpu::draw_kernels();
          gpu::check(kernels.upload(on_gpu::kStream, sheet.data(), digits.bytes().data(), digits.bytes().size()));
          BoxSettings settings;
          settings.size = 12;
          settings.labels = labels;
          draw::BoxStyle style =
              box_style(settings, ColorForm(picture.image()), glyphs, digits, sheet.data(), names.size());
          if (!labels) style.ascent = style.descent = 0;
          gpu::check(kernels.boxes(on_gpu::kStream, static_cast<const Box*>(table.data()),
                                   static_cast<const uint64_t*>(device_count.data()), style, device));
        });
        INFO(name_of(pixel), " ", count, " boxes");
        CHECK(same_pixels(made.view(), wanted.image("video")));
      }
}

TEST_CASE("a line of text with index and time is written as on the CPU, from the left and from the right") {
  const std::string text = "{index} à {time} {{x}";
  const Caption caption(text);
  for (Pixel pixel : kPixelFormats)
    for (const char* x : {"5", "-7"})
      for (const char* y : {"3", "-2", "-60", "50"}) {
        const Value picture = noise(pixel, 331, 67, 331);
        TableTest draw(builtin("draw.text"),
                       {{"text", text}, {"x", x}, {"y", y}, {"size", "20"}, {"color", "#20c0f0a0"}});
        draw.input("video", picture);
        REQUIRE(draw.tick().ok());
        const Result wanted = draw.tick(); // index 1 at 40 ms
        REQUIRE_MESSAGE(wanted.ok(), wanted.error);

        const GlyphSet glyphs("", 20, text);
        const PackedSheet packed(glyphs, caption);
        const on_gpu::Bytes sheet(packed.bytes().data(), packed.bytes().size());
        const mr_device_tick tick = {wanted.tick.index, wanted.tick.media_time_ns, 0};
        const on_gpu::Bytes device_tick(&tick, sizeof tick);
        gpu::TextLine line{};
        line.sheet = packed.sheet(sheet.data());
        line.caption = packed.caption(sheet.data());
        line.caption_count = packed.caption_count();
        line.ink = ink_of({0x20, 0xc0, 0xf0, 0xa0}, ColorForm(picture.image()));
        line.x = std::stoi(x);
        const int32_t top = std::stoi(y) >= 0 ? std::stoi(y) : 67 + std::stoi(y) - glyphs.ascent() - glyphs.descent();
        line.baseline = top + glyphs.ascent();
        line.top = line.baseline - packed.top();
        line.bottom = line.baseline + packed.bottom();
        const Picture made = painted(picture, [&](const gpu::DevicePicture& device) {
          gpu::check(gpu::draw_kernels().text(on_gpu::kStream, line,
                                              static_cast<const mr_device_tick*>(device_tick.data()), device));
        });
        INFO(name_of(pixel), " ", x, " ", y);
        CHECK(same_pixels(made.view(), wanted.image("video")));
      }
}

TEST_CASE("numbers of records, a box and an outline are drawn as on the CPU") {
  const std::string text = "{boxes.count}: {boxes.x} {boxes.score} {boxes.id} {boxes.label}";
  const std::vector<CaptionSource> sources = {{"boxes", true, record_type_of<Box>()}};
  const Caption caption(text, sources);
  for (Pixel pixel : kPixelFormats)
    for (const auto& [x, value] : {std::pair{3, 0.005f}, {-9, 1234.565f}, {3, -0.125f}, {3, 1e20f}}) {
      const Value picture = noise(pixel, 331, 67, 331);
      const Value boxes = testing::records<Box>({{value, 0, 1, 1, value / 3, -2, INT64_MIN}});
      TableTest draw(builtin("draw.text"), {{"text", text},
                                            {"x", std::to_string(x)},
                                            {"y", "9"},
                                            {"size", "14"},
                                            {"outline", "#102030c0"},
                                            {"outline_width", "3"},
                                            {"box", "#4080ff90"}});
      draw.input("video", picture);
      draw.input("boxes", boxes);
      const Result wanted = draw.tick();
      REQUIRE_MESSAGE(wanted.ok(), wanted.error);

      const GlyphSet glyphs("", 14, text), outlines = glyphs.outlined(3);
      const PackedSheet packed(glyphs, caption, &outlines);
      const on_gpu::Bytes sheet(packed.bytes().data(), packed.bytes().size());
      const on_gpu::Bytes record(&boxes.raw(), sizeof(mr_value)), data(boxes.data(), sizeof(Box));
      const mr_device_tick tick = {0, 0, 0};
      const on_gpu::Bytes device_tick(&tick, sizeof tick);
      gpu::TextLine line{};
      line.sheet = packed.sheet(sheet.data());
      line.caption = packed.caption(sheet.data());
      line.caption_count = packed.caption_count();
      std::copy(caption.values().begin(), caption.values().end(), line.values);
      line.records[0] = {static_cast<const mr_value*>(record.data()), static_cast<const uint8_t*>(data.data())};
      line.ink = ink_of({255, 255, 255}, ColorForm(picture.image()));
      line.x = x;
      line.baseline = 9 + glyphs.ascent();
      line.outline_first = packed.outline_first();
      line.outline = ink_of({0x10, 0x20, 0x30, 0xc0}, ColorForm(picture.image()));
      line.boxed = true;
      line.padding = 6;
      line.box_top = 3;
      line.box_bottom = 9 + glyphs.ascent() + glyphs.descent() + 6;
      line.box = ink_of({0x40, 0x80, 0xff, 0x90}, ColorForm(picture.image()));
      line.top = std::min(line.baseline - packed.top(), line.box_top);
      line.bottom = std::max(line.baseline + packed.bottom(), line.box_bottom);
      const Picture made = painted(picture, [&](const gpu::DevicePicture& device) {
        gpu::check(gpu::draw_kernels().text(on_gpu::kStream, line,
                                            static_cast<const mr_device_tick*>(device_tick.data()), device));
      });
      INFO(name_of(pixel), " ", x, " ", value);
      CHECK(same_pixels(made.view(), wanted.image("video")));
    }
}

TEST_CASE("a waveform monitor shows what it shows on the CPU") {
  for (Pixel pixel : kPixelFormats)
    for (const auto& [width, height] : {std::pair{1u, 1u}, {33u, 700u}, {200u, 90u}, {320u, 540u}})
      for (const std::string mode : {"luma", "rgb", "parade"}) {
        const Value picture = noise(pixel, width, height, width);
        TableTest draw(builtin("draw.waveform"), {{"mode", mode}, {"position", "alone"}, {"gain", "0.7"}});
        draw.input("video", picture);
        const Result wanted = draw.tick();
        REQUIRE_MESSAGE(wanted.ok(), wanted.error);

        const bool gray = pixel == Pixel::gray8, parade = mode == "parade";
        gpu::Monitor monitor{};
        monitor.area = {0, 0, static_cast<int32_t>(width), static_cast<int32_t>(height)};
        monitor.opaque = true;
        monitor.in_quads = halves_chroma(pixel);
        if (monitor.in_quads) monitor.form = gpu::ycbcr_form(picture.image().value().as.image);
        const LevelOf colors[] = {LevelOf::red, LevelOf::green, LevelOf::blue};
        const Color inks[] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}};
        const uint32_t traces = mode == "luma" || (gray && !parade) ? 1 : 3;
        for (uint32_t t = 0; t < traces; ++t) {
          draw::PixelArea part = monitor.area;
          if (parade)
            part.left = static_cast<int32_t>(width * t / 3), part.right = static_cast<int32_t>(width * (t + 1) / 3);
          if (part.left >= part.right) continue;
          const Color color = gray ? Color{255, 255, 255} : mode == "luma" ? Color{120, 255, 140} : inks[t];
          monitor.traces[monitor.trace_count++] = {
              part, mode == "luma" ? LevelOf::luma : colors[t], ink_of(color, monitor.in_quads ? Pixel::rgb8 : pixel),
              light_scale(uint64_t{width} * height, static_cast<uint32_t>(part.right - part.left), 0.7f)};
        }
        const on_gpu::Bytes counts(size_t{3} * kLevelCount * width * sizeof(uint32_t));
        monitor.counts = static_cast<uint32_t*>(counts.data());
        const Picture made = painted(picture, [&](const gpu::DevicePicture& device) {
          gpu::check(gpu::draw_kernels().waveform(on_gpu::kStream, monitor, device));
        });
        counts.download(); // throws where more was counted than there is room for
        INFO(name_of(pixel), " ", width, "x", height, " ", mode);
        CHECK(same_pixels(made.view(), wanted.image("video")));
      }
}
