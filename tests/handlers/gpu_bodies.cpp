// GPU bodies without a GPU: loops on the host stand in for the kernels, pixel by pixel and by the same arithmetic, so
// what is tested is what a body asks of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include "builtin.h"
#include "handlers/draw/mark_painter.h"
#include "handlers/gpu/draw_kernels.h"
#include "handlers/gpu/image_kernels.h"
#include "handlers/gpu/inked_pixel.h"
#include "handlers/gpu/layer_kernels.h"
#include "handlers/gpu/link_kernels.h"
#include "handlers/gpu/mark_kernels.h"
#include "handlers/gpu/rounded_product.h"
#include "handlers/gpu/tensor_kernels.h"
#include "handlers/image/planes.h"
#include "handlers/image/to_tensor.h"
#include "handlers/stats/rate_meter.h"
#include "linking.h"
#include "pictures.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::Setting;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

// ---- what stands in for kernels -------------------------------------------------------------------------------------

struct Seen {
  explicit Seen(const gpu::DevicePicture& picture) : data(picture.data) { value.as.image = picture.image; }
  ImageSpan span() { return {&value, data}; }
  mr_value value{};
  uint8_t* data;
};

// Calls `paint` with every pixel.
template <class Paint>
void each_pixel(const gpu::DevicePicture& picture, Paint&& paint) {
  Seen seen(picture);
  const ImageSpan span = seen.span();
  for (uint32_t y = 0; y < span.height(); ++y)
    for (uint32_t x = 0; x < span.width(); ++x)
      paint(static_cast<int32_t>(x), static_cast<int32_t>(y), span.row(y) + size_t{x} * bytes_per_pixel(span.pixel()));
}

const char* adjust(void*, const ToneAdjuster& tone, const gpu::DevicePicture& source,
                   const gpu::DevicePicture& target) {
  Seen from(source), to(target);
  tone.run({&from.value, from.data}, to.span());
  return nullptr;
}

const char* normalize(void*, const gpu::DevicePicture& picture, const TensorForm& form, void* target) {
  normalize_picture(Seen(picture).span(), form, static_cast<uint8_t*>(target));
  return nullptr;
}

const char* patches(void*, const gpu::DevicePicture& picture, const gpu::Regions& regions, const TensorForm& form,
                    void* target) {
  const Box whole = {0, 0, static_cast<float>(picture.image.width), static_cast<float>(picture.image.height)};
  const uint64_t count = regions.count ? *regions.count : 0;
  PatchCutter().run(Seen(picture).span(),
                    regions.whole ? std::span(&whole, 1) : std::span(regions.boxes, static_cast<size_t>(count)), form,
                    static_cast<uint8_t*>(target));
  return nullptr;
}

const char* letterbox(void*, const gpu::DevicePicture& picture, const Letterbox& box, float fill,
                      const TensorForm& form, void* target, const gpu::SaidTransform& said) {
  PatchCutter().letterbox(Seen(picture).span(), box, fill, form, static_cast<uint8_t*>(target));
  *said.record = said.value;
  *said.count = 1;
  return nullptr;
}

const char* compose(void*, std::span<const gpu::Layer> layers, uint32_t background, bool background_opaque,
                    const gpu::DevicePicture& canvas) {
  each_pixel(canvas, [&](int32_t x, int32_t y, uint8_t* pixel) {
    uint32_t made = background;
    for (const gpu::Layer& layer : layers) {
      const auto column = static_cast<uint32_t>(x - layer.left), row = static_cast<uint32_t>(y - layer.top);
      if (column < layer.columns.target && row < layer.rows.target)
        made = gpu::laid_over(layer, gpu::scaled_pixel(layer, column, row), made, background_opaque);
    }
    for (uint32_t c = 0; c < bytes_per_pixel(static_cast<Pixel>(canvas.image.format)); ++c)
      pixel[c] = static_cast<uint8_t>(made >> 8 * c);
  });
  return nullptr;
}

const char* compose_planes(void*, std::span<const gpu::PlanarLayer> layers, const std::array<uint8_t, 4>& background,
                           const gpu::DevicePicture& canvas) {
  gpu::PlanarStack<64> stack{};
  stack.count = static_cast<uint32_t>(layers.size());
  std::copy(layers.begin(), layers.end(), stack.layers);
  stack.numbers = gpu::canvas_numbers(canvas.image);
  stack.background = gpu::background_of(stack.numbers, background[0], background[1], background[2]);
  for (uint32_t y = 0; y < canvas.image.height; y += 2)
    for (uint32_t x = 0; x < canvas.image.width; x += 2) gpu::compose_block(stack, canvas, x, y);
  return nullptr;
}

const char* upload(void*, void* to, const void* from, uint64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
  return nullptr;
}

// The ink of a whole picture whose chroma is halved, pixel by pixel.
struct InkSheet {
  explicit InkSheet(const gpu::DevicePicture& picture)
      : width(picture.image.width), pixels(size_t{width} * picture.image.height), shares(pixels.size()) {}
  void end_letters(const Ink& ink) {
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i].paint(ink, shares[i]);
    shares.assign(shares.size(), 0);
  }
  void lay(const gpu::DevicePicture& picture) const {
    for (uint32_t y = 0; y < picture.image.height; y += 2)
      for (uint32_t x = 0; x < width; x += 2) {
        InkedPixel quad[4];
        for (uint32_t i = 0; i < 4; ++i)
          if (x + i % 2 < width && y + i / 2 < picture.image.height)
            quad[i] = pixels[size_t{y + i / 2} * width + x + i % 2];
        gpu::lay_quad(picture, x, y, quad);
      }
  }
  size_t at(int32_t x, int32_t y) const { return static_cast<size_t>(y) * width + static_cast<size_t>(x); }
  uint32_t width;
  std::vector<InkedPixel> pixels;
  std::vector<uint16_t> shares; // of the letters of one ink
};

const char* boxes(void*, const Box* boxes, const uint64_t* count, const draw::BoxStyle& style,
                  const gpu::DevicePicture& picture) {
  const bool in_quads = halves_chroma(static_cast<Pixel>(picture.image.format));
  InkSheet sheet(picture);
  each_pixel(picture, [&](int32_t x, int32_t y, uint8_t* pixel) {
    for (uint64_t i = *count; i-- > 0;) {
      if (!draw::drawable(boxes[i])) continue;
      const draw::BoxMark mark = draw::mark_of(boxes[i], style);
      if (in_quads ? draw::paint_mark(mark, style, x, y, sheet.pixels[sheet.at(x, y)])
                   : draw::paint_mark(mark, style, x, y, pixel))
        return;
    }
  });
  if (in_quads) sheet.lay(picture);
  return nullptr;
}

const char* text(void*, const gpu::TextLine& line, const mr_device_tick* tick, const gpu::DevicePicture& picture) {
  std::vector<uint16_t> glyphs(draw::kLineGlyphsMax);
  glyphs.resize(draw::fill_line({line.caption, line.caption_count, line.values, line.records}, tick->index,
                                tick->media_time_ns, glyphs.data()));
  int32_t width = 0;
  for (uint16_t glyph : glyphs) width += line.sheet.glyphs[glyph].advance;
  const int32_t left = line.x >= 0 ? line.x : static_cast<int32_t>(picture.image.width) + line.x - width;
  const auto is_painted = [&](int32_t y) { return y >= line.top && y < line.bottom; };
  const bool in_quads = halves_chroma(static_cast<Pixel>(picture.image.format));
  InkSheet sheet(picture);
  each_pixel(picture, [&](int32_t x, int32_t y, uint8_t* pixel) {
    const bool in_box = line.boxed && !glyphs.empty() && x >= left - line.padding && x < left + width + line.padding &&
                        y >= line.box_top && y < line.box_bottom;
    if (!in_box || !is_painted(y)) return;
    if (in_quads) return sheet.pixels[sheet.at(x, y)].paint(line.box, share_of(255, line.box.alpha));
    blend(pixel, line.box, 255);
  });
  const auto draw = [&](uint32_t first, const Ink& ink) {
    int32_t pen = left;
    for (uint16_t glyph : glyphs) {
      each_pixel(picture, [&](int32_t x, int32_t y, uint8_t* pixel) {
        const uint32_t coverage = draw::coverage_at(line.sheet, first + glyph, pen, line.baseline, x, y);
        if (coverage == 0 || !is_painted(y)) return;
        if (!in_quads) return blend(pixel, ink, coverage);
        uint16_t& share = sheet.shares[sheet.at(x, y)];
        share = share_of_both(share, share_of(static_cast<uint8_t>(coverage), ink.alpha));
      });
      pen += line.sheet.glyphs[glyph].advance;
    }
    sheet.end_letters(ink);
  };
  if (line.outline_first > 0) draw(line.outline_first, line.outline);
  draw(0, line.ink);
  if (in_quads) sheet.lay(picture);
  return nullptr;
}

uint8_t level_of(const uint8_t* pixel, uint32_t format, LevelOf channel) {
  if (format == MR_PIXEL_GRAY8) return pixel[0];
  const bool blue_first = format == MR_PIXEL_BGR8 || format == MR_PIXEL_BGRA8;
  const uint8_t red = pixel[blue_first ? 2 : 0], blue = pixel[blue_first ? 0 : 2];
  if (channel == LevelOf::luma) return luma_level(red, pixel[1], blue);
  return channel == LevelOf::red ? red : channel == LevelOf::green ? pixel[1] : blue;
}

// One trace after the other: each is counted before anything is painted.
const char* waveform(void*, const gpu::Monitor& monitor, const gpu::DevicePicture& picture) {
  const uint32_t channels = monitor.in_quads ? 3 : bytes_per_pixel(static_cast<Pixel>(picture.image.format));
  const auto rows = static_cast<uint32_t>(monitor.area.bottom - monitor.area.top);
  std::vector<uint32_t*> counts;
  uint32_t* next = monitor.counts;
  for (uint32_t t = 0; t < monitor.trace_count; ++t) {
    const gpu::MonitorTrace& trace = monitor.traces[t];
    const auto columns = static_cast<uint32_t>(trace.area.right - trace.area.left);
    counts.push_back(next);
    next += size_t{columns} * kLevelCount;
    std::fill(counts.back(), next, 0u);
    each_pixel(picture, [&](int32_t x, int32_t y, const uint8_t* pixel) {
      const uint64_t stretch = uint64_t(x) * columns / picture.image.width;
      const auto u = static_cast<uint32_t>(x), v = static_cast<uint32_t>(y);
      uint8_t level = 0;
      if (!monitor.in_quads) {
        level = level_of(pixel, picture.image.format, trace.channel);
      } else if (trace.channel == LevelOf::luma) {
        level = gpu::gray_at(picture, monitor.form, u, v);
      } else {
        const gpu::Rgb color = gpu::rgb_at(picture, monitor.form, u, v);
        level = level_of(&color.r, MR_PIXEL_RGB8, trace.channel);
      }
      ++counts.back()[level * columns + stretch];
    });
  }
  const auto paint = [&](int32_t x, int32_t y, uint8_t* pixel) {
    if (!monitor.area.holds(x, y)) return;
    const auto row = static_cast<uint32_t>(y - monitor.area.top);
    for (uint32_t c = 0; c < channels; ++c)
      pixel[c] = with_light(static_cast<uint8_t>(c == 3           ? 255
                                                 : monitor.opaque ? 0
                                                                  : pixel[c] / 2),
                            is_line(row, rows) ? kLineLight : 0, 255);
    for (uint32_t t = 0; t < monitor.trace_count; ++t) {
      const gpu::MonitorTrace& trace = monitor.traces[t];
      if (!trace.area.holds(x, y)) continue;
      const auto columns = static_cast<uint32_t>(trace.area.right - trace.area.left);
      float sum = 0;
      for (uint32_t level = 0; level < kLevelCount; ++level)
        sum += share_of_level(level, row, rows) *
               static_cast<float>(counts[t][level * columns + static_cast<uint32_t>(x - trace.area.left)]);
      for (uint32_t c = 0; c < channels; ++c)
        pixel[c] = with_light(pixel[c], light_of(sum * trace.scale), trace.ink.channels[c]);
    }
  };
  if (!monitor.in_quads) {
    each_pixel(picture, paint);
    return nullptr;
  }
  for (int32_t y = monitor.area.top; y < monitor.area.bottom; y += 2)
    for (int32_t x = monitor.area.left; x < monitor.area.right; x += 2)
      gpu::change_quad(
          picture, monitor.form, static_cast<uint32_t>(x), static_cast<uint32_t>(y),
          [&](uint32_t u, uint32_t v, uint8_t* rgb) { paint(static_cast<int32_t>(u), static_cast<int32_t>(v), rgb); });
  return nullptr;
}

const char* paint_marks(void*, const gpu::MarkLists& lists, const draw::MarkStyle& style,
                        const gpu::DevicePicture& picture, void*, uint64_t most) {
  Seen seen(picture);
  MarkPainter painter;
  painter.reserve(most, picture.image.width, picture.image.height);
  painter.begin(seen.span(), style);
  for (uint32_t list = 0; list < lists.count; ++list)
    painter.add({lists.lists[list].records, lists.lists[list].size()});
  painter.paint();
  return nullptr;
}

const char* join_links(void*, const gpu::DeviceList<Point>& points, const LinkRule& rule, const gpu::LinkState& state,
                       void*, uint32_t most, const gpu::MadeList<Link>& to) {
  LinkGraph graph(rule);
  const LinkMemory memory{
      *state.turn, {state.slots, size_t{state.slot_mask} + 1}, {state.past, state.past ? size_t{2} * most : 0}};
  uint64_t left_out = 0;
  const std::span<const Link> links = graph.step({points.records, points.size()}, memory, most, left_out);
  std::copy(links.begin(), links.end(), to.records);
  *to.count = links.size();
  return nullptr;
}

const char* make_lines(void*, const gpu::DeviceList<Link>& links, const gpu::DeviceList<Point>& points,
                       const draw::LineStyle& style, const gpu::MadeList<Mark>& to) {
  *to.count = points.size() > 0 ? links.size() : 0;
  for (uint32_t l = 0; l < *to.count; ++l)
    draw::make_line_mark(links.records[l], points.records, points.size(), style, to.records[l]);
  return nullptr;
}

constexpr gpu::ImageKernels kImage{nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &adjust};
constexpr gpu::TensorKernels kTensor{&normalize, &patches, &letterbox};
constexpr gpu::LayerKernels kLayers{&compose, &compose_planes};
constexpr gpu::DrawKernels kDraw{&upload, &boxes, &text, &waveform};
constexpr gpu::MarkKernels kMarks{nullptr, nullptr, &make_lines, nullptr, &paint_marks, {}};
constexpr gpu::LinkKernels kLinks{&join_links, {}};
constexpr gpu::Library kLibrary{&kImage, &kTensor, &kLayers, &kDraw, &kMarks, &kLinks};

// ---- a handler whose GPU body runs here -----------------------------------------------------------------------------

mr_status (*gpu_body)(void*, mr_tick*) = nullptr;
std::vector<uint64_t> scratch;

mr_status run_gpu_body(void* self, mr_tick* tick) {
  const mr_device_tick device_tick = {tick->info->index, tick->info->media_time_ns, 0};
  tick->library = &kLibrary;
  tick->device_tick = &device_tick;
  tick->scratch = scratch.data();
  return gpu_body(self, tick);
}

using Given = std::vector<std::pair<std::string, Value>>; // several of one name are a list

// All outputs after two ticks.
std::vector<Value> made_by(const mr_handler_type& type, std::initializer_list<Setting> settings, const Given& inputs) {
  TableTest handler(type, settings);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto same = [&](const auto& other) { return other.first == inputs[i].first; };
    const auto before = std::count_if(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(i), same);
    handler.input(inputs[i].first, inputs[i].second, static_cast<uint32_t>(before));
  }
  REQUIRE(handler.start() == MR_OK);
  scratch.assign(handler.declaration().scratch_bytes / 8 + 1, 0xDBDBDBDBDBDBDBDBu);
  REQUIRE(handler.tick().ok());
  const Result result = handler.tick();
  INFO(result.error);
  REQUIRE(result.ok());
  std::vector<Value> made;
  for (const auto& output : result.outputs) made.push_back(output.value);
  return made;
}

void check_bodies_agree(const char* type, std::initializer_list<Setting> settings, const Given& inputs) {
  mr_handler_type on_gpu = builtin(type);
  gpu_body = on_gpu.process_cuda;
  on_gpu.process = &run_gpu_body;
  const std::vector<Value> all_wanted = made_by(builtin(type), settings, inputs),
                           all_made = made_by(on_gpu, settings, inputs);
  INFO(type);
  for (const Setting& setting : settings) INFO(setting.name, "=", setting.text);
  REQUIRE(all_made.size() == all_wanted.size());
  for (size_t i = 0; i < all_made.size(); ++i) {
    const Value &made = all_made[i], &wanted = all_wanted[i];
    REQUIRE(made.header().extent_bytes == wanted.header().extent_bytes);
    CHECK(std::memcmp(&made.raw(), &wanted.raw(), sizeof(mr_value)) == 0);
    if (wanted.header().kind == MR_KIND_IMAGE)
      CHECK(same_pixels(made.image(), wanted.image()));
    else
      CHECK(std::memcmp(made.data(), wanted.data(), wanted.header().extent_bytes) == 0);
  }
}

Value timed_noise(Pixel pixel, uint32_t width, uint32_t height) {
  return noise(pixel, width, height, width).at(5'000'000, 40'000'000).from_stream(2);
}

const std::vector<Box> kBoxes = {{3, 20, 30, 15, 1, 4, 77}, {-5, -5, 20, 20, 1, 3, -1}, {20, 12, 60, 60, 1, 3, 123456}};

} // namespace

TEST_CASE("the GPU bodies of image.normalize, image.patches and image.letterbox ask for what the CPU's make") {
  for (Pixel pixel : {Pixel::gray8, Pixel::bgr8, Pixel::nv12}) {
    const Value video = timed_noise(pixel, 41, 23), boxes = testing::records<Box>(kBoxes);
    check_bodies_agree("image.normalize", {{"dtype", "f16"}, {"mean", "0.5"}, {"order", "bgr"}}, {{"video", video}});
    check_bodies_agree("image.patches", {{"width", "9"}, {"height", "7"}, {"layout", "nhwc"}}, {{"video", video}});
    check_bodies_agree("image.patches", {{"width", "9"}, {"height", "7"}, {"count_max", "2"}},
                       {{"video", video}, {"boxes", boxes}});
    check_bodies_agree("image.patches", {{"width", "9"}, {"height", "7"}, {"count_max", "2"}},
                       {{"video", video}, {"boxes", Value()}});
    check_bodies_agree("image.letterbox", {{"width", "17"}, {"height", "19"}, {"fill", "0.3"}}, {{"video", video}});
    check_bodies_agree("image.letterbox", {{"width", "90"}, {"enlarge", "false"}, {"align", "top_left"}},
                       {{"video", video}});
  }
}

TEST_CASE("the GPU body of image.adjust asks for the picture that the CPU's makes, by the settings of now") {
  for (Pixel pixel : kPixelFormats) {
    const Value video = timed_noise(pixel, 41, 23);
    check_bodies_agree("image.adjust", {}, {{"video", video}});
    check_bodies_agree("image.adjust", {{"brightness", "0.1"}, {"gamma", "1.4"}, {"saturation", "0.5"}},
                       {{"video", video}});
  }
}

TEST_CASE("the GPU body of image.composite asks for the canvas that the CPU's makes") {
  const Value below = timed_noise(Pixel::rgb8, 40, 30), above = timed_noise(Pixel::rgba8, 21, 17),
              video = timed_noise(Pixel::nv12, 32, 18);
  const Given layers = {{"layers", below}, {"layers", above}, {"layers", video}};
  check_bodies_agree("image.composite", {{"layout", "grid"}, {"gap", "3"}, {"background", "#102030"}}, layers);
  check_bodies_agree("image.composite", {{"layout", "inset"}, {"blend", "screen"}, {"opacity", "0.4"}}, layers);
  check_bodies_agree("image.composite",
                     {{"layout", "overlay"}, {"places", ";-5,20;3,4,9x9"}, {"premultiplied", "true"}}, layers);
  check_bodies_agree("image.composite", {{"format", "rgba8"}, {"background", "#10203040"}, {"missing", "background"}},
                     {{"layers", below}, {"layers", Value()}, {"layers", above}});
  check_bodies_agree("image.composite", {{"format", "gray8"}, {"fit", "cover"}, {"scaling", "nearest"}}, layers);
  const Value deep = timed_noise(Pixel::p010, 27, 19);
  const Given films = {{"layers", video}, {"layers", above}, {"layers", deep}};
  for (const char* format : {"nv12", "i420", "p010"}) {
    check_bodies_agree("image.composite", {{"format", format}, {"gap", "3"}, {"background", "#102030"}}, films);
    check_bodies_agree("image.composite",
                       {{"format", format}, {"layout", "inset"}, {"opacity", "0.4"}, {"premultiplied", "true"}}, films);
  }
}

TEST_CASE("the GPU bodies of draw.boxes and draw.text ask for what the CPU's paint") {
  for (Pixel pixel : kPixelFormats) {
    const Value video = timed_noise(pixel, 91, 71);
    const Given both = {{"video", video}, {"boxes", testing::records<Box>(kBoxes)}};
    check_bodies_agree("draw.boxes", {{"size", "10"}, {"thickness", "3"}}, both);
    check_bodies_agree("draw.boxes", {{"labels", "false"}}, both);
    check_bodies_agree("draw.boxes", {}, {{"video", video}});
    check_bodies_agree("draw.text", {{"text", "{index} {time} ü"}, {"size", "12"}}, {{"video", video}});
    check_bodies_agree("draw.text",
                       {{"text", "{index}a"}, {"size", "14"}, {"outline", "#102030c0"}, {"box", "#4080ff90"}},
                       {{"video", video}});
    check_bodies_agree("draw.text",
                       {{"text", "{index}b"}, {"x", "-9"}, {"y", "-2"}, {"outline", "#00ff00"}, {"outline_width", "4"}},
                       {{"video", video}});
    check_bodies_agree("draw.text", {{"text", ""}, {"box", "#ffffff"}}, {{"video", video}});
    const Value rates = testing::records<Rate>({{29.97, 1'000'000'000, 30}});
    check_bodies_agree("draw.text", {{"text", "{boxes.count} {boxes.x} {boxes.id}"}, {"size", "12"}}, both);
    check_bodies_agree("draw.text", {{"text", "{records.per_second} {boxes.score}"}, {"size", "12"}},
                       {{"video", video}, {"boxes", testing::records<Box>({})}, {"records", rates}});
    check_bodies_agree("draw.text", {{"x", "-3"}, {"y", "-4"}, {"color", "#ff800080"}, {"size", "30"}},
                       {{"video", video}});
  }
}

TEST_CASE("the GPU body of draw.marks asks for the lists that the CPU's paints, those that are there") {
  Mark line;
  line.at[2] = 40;
  line.at[3] = 30;
  Mark box = line;
  box.kind = static_cast<int32_t>(MarkKind::box);
  box.fill[1] = box.fill[3] = 1;
  const Value one = testing::records<Mark>({line, box}), other = testing::records<Mark>({box, line, line});
  for (Pixel pixel : {Pixel::gray8, Pixel::bgr8, Pixel::rgba8}) {
    const Value video = timed_noise(pixel, 90, 70);
    check_bodies_agree("draw.marks", {}, {{"video", video}});
    check_bodies_agree("draw.marks", {}, {{"video", video}, {"marks", one}, {"marks", other}});
    check_bodies_agree("draw.marks", {{"edge", "soft"}}, {{"video", video}, {"marks", Value()}, {"marks", other}});
    check_bodies_agree("draw.marks", {{"blend", "add"}}, {{"video", video}, {"marks", other}});
  }
}

TEST_CASE("the GPU bodies of points.links and marks.lines hand their lists, state and styles to the kernels") {
  for (const std::vector<Setting>& settings :
       {std::vector<Setting>{{"k", "3"}},
        {{"k", "2"}, {"hysteresis", "0.5"}, {"gain", "0.5"}, {"fade", "0.9"}, {"links_max", "40"}}}) {
    mr_handler_type on_gpu = builtin("points.links");
    gpu_body = on_gpu.process_cuda;
    on_gpu.process = &run_gpu_body;
    TableTest wanted(builtin("points.links")), made(on_gpu);
    for (TableTest* handler : {&wanted, &made})
      for (const Setting& setting : settings) handler->set(setting.name, setting.text);
    std::vector<Point> points(30);
    Below below(4);
    for (int tick = 0; tick < 5; ++tick) {
      move_points(points, below, false);
      if (tick == 3) made.reset(), wanted.reset();
      for (TableTest* handler : {&wanted, &made})
        handler->input("points", testing::records<Point>(points).at(70 + tick, 20));
      scratch.assign(1 << 16, 0xDBDBDBDBDBDBDBDBu);
      const Result one = wanted.tick(), other = made.tick();
      REQUIRE_MESSAGE(other.ok(), other.error);
      const std::span<const Link> a = one.records<Link>("links"), b = other.records<Link>("links");
      REQUIRE(a.size() == b.size());
      CHECK(std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
      CHECK(other.value("links").header().pts_ns == 70 + tick);
    }
  }
  mr_handler_type lines = builtin("marks.lines");
  gpu_body = lines.process_cuda;
  lines.process = &run_gpu_body;
  TableTest wanted(builtin("marks.lines"), {{"width", "3"}, {"length_max", "90"}}),
      made(lines, {{"width", "3"}, {"length_max", "90"}});
  std::vector<Point> points(3);
  points[1].x = points[2].y = 50;
  const std::vector<Link> links = {{0, 1, 4, 2, 50, 0.5f}, {1, 2, -1, -1, 70, 1}};
  for (TableTest* handler : {&wanted, &made}) {
    handler->input("links", testing::records<Link>(links));
    handler->input("points", testing::records<Point>(points));
  }
  const Result one = wanted.tick(), other = made.tick();
  REQUIRE_MESSAGE(other.ok(), other.error);
  const std::span<const Mark> a = one.records<Mark>("marks"), b = other.records<Mark>("marks");
  REQUIRE(a.size() == b.size());
  CHECK(std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

TEST_CASE("the GPU body of draw.waveform asks for the monitor that the CPU's paints") {
  for (Pixel pixel : kPixelFormats)
    for (const char* mode : {"luma", "rgb", "parade"})
      for (const char* position : {"bottom_right", "top_left", "alone"})
        for (uint32_t width : {2u, 97u})
          check_bodies_agree("draw.waveform", {{"mode", mode}, {"position", position}, {"size", "0.4"}},
                             {{"video", timed_noise(pixel, width, 60)}});
}

TEST_CASE("null.sink and flow.pass have GPU bodies that leave everything where it is") {
  mr_handler_type pass = builtin("flow.pass");
  pass.process = pass.process_cuda;
  TableTest handler(pass);
  handler.input("in", timed_noise(Pixel::rgb8, 4, 4));
  CHECK(handler.tick().state("out") == MR_OUTPUT_FORWARDED);
  mr_handler_type sink = builtin("null.sink");
  sink.process = sink.process_cuda;
  TableTest end(sink);
  end.input("in", timed_noise(Pixel::rgb8, 4, 4));
  CHECK(end.tick().ok());
}
