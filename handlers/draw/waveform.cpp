// draw.waveform: shows how bright a picture is where, as a waveform monitor does.
#include <millrace/handler.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "handlers/draw/column_levels.h"
#include "handlers/draw/ink_band.h"
#include "handlers/draw/raster.h"
#include "handlers/draw/waveform_trace.h"
#include "handlers/gpu/draw_kernels.h"
#include "handlers/image/color.h"
#include "handlers/image/picture.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {
namespace {

constexpr const char* kWaveformManual = &R"(
Draws a waveform monitor. For every column of the picture it shows which levels the pixels have:
black at the bottom, white at the top, brighter for more pixels. `luma` is one trace (BT.601), `rgb`
is three over each other, which are white where they agree, and `parade` is the three side by side.
The monitor covers a corner of the picture, which it darkens by half, with lines at 0, 25, 50, 75
and 100 %; `size` is its share of the picture's width and height. With `position: alone` the output
is a picture of its own, as large as the input but without its content, for a window beside it or
for image.composite.

Every pixel is counted. A level that 1/64 of a column's pixels have gets full brightness; `gain`
multiplies the brightness. A gray picture has one trace in each mode but `parade`, which shows it
three times.

nv12, i420 and p010 are taken as they come. Their luma is the picture's own, brought to full range,
and the colours are those of RGB of 8 bits. The monitor is painted in RGB of 8 bits too, and covers
whole chroma samples, each in the middle of its 2x2 pixels: it may be a column and a row larger. A
sample gets the mean of its pixels, and so is blended by the share that a trace covers.

    test.pattern pattern=disc ! draw.waveform mode=parade size=0.5 ! null.sink
)"[1];

// The channel that a trace shows, and its colour. Luma is green, as on the tubes.
struct Trace {
  LevelOf channel;
  Color color;
};
constexpr std::array<Trace, 1> kLuma = {{{LevelOf::luma, {120, 255, 140}}}};
constexpr std::array<Trace, 3> kColors = {
    {{LevelOf::red, {255, 0, 0}}, {LevelOf::green, {0, 255, 0}}, {LevelOf::blue, {0, 0, 255}}}};

std::span<const Trace> traces_of(const std::string& mode) {
  if (mode == "luma") return kLuma;
  return kColors;
}

class Waveform final : public Handler {
 public:
  Waveform() {
    stateless();
    no_allocation();
    capturable();
    cost_hint_us(2000);
  }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(video_);
    width_ = in.width;
    height_ = in.height;
    may_halve_chroma_ = (in.pixel_formats & halved_pixels().bits) != 0;
    // Room for the counts of each trace; the traces of a parade share the width.
    needs_scratch((*mode_ == "rgb" ? 3 : 1) * sizeof(uint32_t) * kLevelCount * width_);
  }

  void start() override {
    traces_ = traces_of(*mode_);
    for (size_t t = 0; t < traces_.size(); ++t) levels_[t].reserve(width_, width_);
    row_.reserve(width_);
    trace_.reserve(width_);
    if (!may_halve_chroma_) return;
    rows_ = Picture(*mode_ == "luma" ? Pixel::gray8 : Pixel::rgb8, width_, kRows);
    monitor_ = Picture(Pixel::rgb8, width_, height_);
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture = out_.modify(tick, video_);
    const Rectangle area = place(picture);
    count(picture, area);
    const uint64_t pixels = uint64_t{picture.width()} * picture.height();
    if (!halves_chroma(picture.pixel())) return paint(picture, area, pixels);
    const int64_t width = area.right - area.left, height = area.bottom - area.top;
    const SpanWindow under(picture, static_cast<uint32_t>(area.left), static_cast<uint32_t>(area.top),
                           static_cast<uint32_t>(width), static_cast<uint32_t>(height));
    const SpanWindow monitor(monitor_.span(), 0, 0, static_cast<uint32_t>(width), static_cast<uint32_t>(height));
    if (*position_ != "alone") convert_pixels(under.view(), monitor.view());
    paint(monitor.view(), {0, 0, width, height}, pixels);
    convert_pixels(monitor.view(), under.view());
  }

  void process(Tick& tick, Cuda& cuda) {
    const ImageSpan picture = out_.modify(tick, video_);
    gpu::Monitor monitor{};
    const Rectangle area = place(picture);
    monitor.area = pixel_area(area);
    monitor.opaque = *position_ == "alone";
    monitor.counts = static_cast<uint32_t*>(cuda.scratch());
    monitor.in_quads = halves_chroma(picture.pixel());
    if (monitor.in_quads) monitor.form = gpu::ycbcr_form(picture.value().as.image);
    const Pixel painted = monitor.in_quads ? Pixel::rgb8 : picture.pixel();
    const bool parade = *mode_ == "parade", gray = picture.pixel() == Pixel::gray8;
    const uint64_t pixels = uint64_t{picture.width()} * picture.height();
    for (size_t t = 0; t < traces_.size() && (t == 0 || parade || !gray); ++t) {
      const Rectangle part = parade ? third(area, static_cast<int64_t>(t)) : area;
      if (part.left >= part.right) continue;
      const auto columns = static_cast<uint32_t>(part.right - part.left);
      monitor.traces[monitor.trace_count++] = {pixel_area(part), traces_[t].channel,
                                               ink_of(gray ? Color{255, 255, 255} : traces_[t].color, painted),
                                               light_scale(pixels, columns, static_cast<float>(*gain_))};
    }
    gpu::check(gpu::library_of(cuda).draw->waveform(cuda.stream(), monitor, gpu::on_device(picture)));
  }

 private:
  static draw::PixelArea pixel_area(const Rectangle& area) {
    return {static_cast<int32_t>(area.left), static_cast<int32_t>(area.top), static_cast<int32_t>(area.right),
            static_cast<int32_t>(area.bottom)};
  }

  // The monitor's place in the picture. It covers a picture that is smaller than its least size. If chroma is halved it
  // covers whole chroma samples.
  Rectangle place(const ImageView& picture) const {
    const int64_t width = picture.width(), height = picture.height();
    if (*position_ == "alone") return {0, 0, width, height};
    const auto share = [this](int64_t side) {
      return std::max<int64_t>(1, std::llround(size_ * static_cast<double>(side)));
    };
    const int64_t w = share(width), h = share(height);
    const int64_t margin_x = std::min((width - w) / 2, width / 64), margin_y = std::min((height - h) / 2, width / 64);
    const bool left = position_->ends_with("left"), top = position_->starts_with("top");
    const int64_t x = left ? margin_x : width - margin_x - w, y = top ? margin_y : height - margin_y - h;
    if (!halves_chroma(picture.pixel())) return {x, y, x + w, y + h};
    return {x / 2 * 2, y / 2 * 2, std::min((x + w + 1) / 2 * 2, width), std::min((y + h + 1) / 2 * 2, height)};
  }

  static Rectangle third(const Rectangle& area, int64_t index) {
    const int64_t width = area.right - area.left;
    return {area.left + width * index / 3, area.top, area.left + width * (index + 1) / 3, area.bottom};
  }

  // Counts all traces in one pass over the picture, while its rows are in the cache.
  void count(const ImageView& picture, const Rectangle& area) {
    for (size_t t = 0; t < traces_.size(); ++t) {
      const Rectangle part = part_of(area, t);
      levels_[t].begin(picture.width(), static_cast<uint32_t>(std::max<int64_t>(1, part.right - part.left)));
    }
    if (!halves_chroma(picture.pixel())) return count_rows(picture);
    for (uint32_t y = 0; y < picture.height(); y += kRows) {
      const uint32_t count = std::min(kRows, picture.height() - y);
      const ViewWindow from(picture, 0, y, picture.width(), count);
      const SpanWindow to(rows_.span(), 0, 0, picture.width(), count);
      convert_pixels(from.view(), to.view());
      count_rows(to.view());
    }
  }
  void count_rows(const ImageView& picture) {
    for (uint32_t y = 0; y < picture.height(); ++y) {
      row_.read(picture.row(y), picture.pixel(), picture.width());
      for (size_t t = 0; t < traces_.size(); ++t) levels_[t].add(row_.of(traces_[t].channel));
    }
  }

  // Paints the counted levels. `pixels` is the number of those that were counted.
  void paint(const ImageSpan& picture, const Rectangle& area, uint64_t pixels) {
    trace_.paint_ground(picture, area, *position_ == "alone");
    for (size_t t = 0; t < traces_.size(); ++t) {
      const Rectangle part = part_of(area, t);
      if (part.left >= part.right) continue;
      // In a gray picture every colour has the same levels, so its trace is white.
      const Color color = picture.pixel() == Pixel::gray8 ? Color{255, 255, 255} : traces_[t].color;
      trace_.add(picture, part, levels_[t], pixels, static_cast<float>(*gain_), ink_of(color, picture.pixel()));
      if (picture.pixel() == Pixel::gray8 && *mode_ != "parade") break;
    }
  }
  Rectangle part_of(const Rectangle& area, size_t trace) const {
    return *mode_ == "parade" ? third(area, static_cast<int64_t>(trace)) : area;
  }

  static Pixels halved_pixels() { return pixels({Pixel::nv12, Pixel::i420, Pixel::p010}); }

  Input<Image> video_{*this, "video", drawable_pixels()};
  Output<Image> out_{*this, "video", in_place(video_)};
  Param<std::string> mode_{*this, "mode", "luma", "what is shown", choices({"luma", "rgb", "parade"})};
  Param<std::string> position_{*this, "position", "bottom_right", "a corner, or a picture of its own",
                               choices({"bottom_right", "bottom_left", "top_right", "top_left", "alone"})};
  Param<double> size_{*this, "size", 0.33, "share of the picture's width and height", range(0.05, 1), live};
  Param<double> gain_{*this, "gain", 1, "how bright the traces are", range(0.01, 100), live};
  std::span<const Trace> traces_ = kLuma;
  LevelRow row_;
  std::array<ColumnLevels, 3> levels_;
  WaveformTrace trace_;
  // For pictures whose chroma is halved: a few rows of them as LevelRow takes them, and what lies under the monitor.
  static constexpr uint32_t kRows = 16; // even, so that these are whole chroma samples
  Picture rows_, monitor_;
  uint32_t width_ = 0, height_ = 0;
  bool may_halve_chroma_ = false;
};

} // namespace

const mr_handler_type& draw_waveform_type() {
  static const mr_handler_type type =
      detail::Type<Waveform>::table("draw.waveform", "Shows how bright a picture is where", kWaveformManual);
  return type;
}

} // namespace millrace::handlers
