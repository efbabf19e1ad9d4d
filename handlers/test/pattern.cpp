// test.pattern: a source of pictures that need no camera and no file.
#include <millrace/handler.h>

#include "handlers/gpu/image_kernels.h"
#include "handlers/image/color.h"
#include "handlers/image/picture.h"
#include "handlers/source_rate.h"
#include "handlers/test/burnt_number.h"
#include "handlers/test/painting.h"

namespace millrace::handlers {
namespace {

constexpr const char* kPatternManual = &R"(
Gives pictures that are functions of their number alone: colour `bars`, a `gradient` whose blue
breathes, or a `disc` that bounces. Each carries its number as a strip of black and white blocks
along the top edge, which survives conversion, resizing and blur, so that a test can read which
frame it got (pictures narrower than 44 pixels carry none). nv12 and i420 are BT.601, limited range.

With `fps: 0` it has no rate of its own, runs as the clock asks, and numbers its pictures as the
ticks. With a rate it numbers its own pictures, whatever the clock's rate is, and picture n has the
time n / fps. A `live` one cannot wait, like a camera: a picture that is not taken in time is lost.
`silent_every: k` leaves every k-th picture out, to test a source that misses a beat. On a GPU it
paints the same bytes, but only with `fps: 0` and without `live` and `silent_every`.

    test.pattern width=640 height=480 count=300 fps=30 ! image.blur sigma=2 ! null.sink
)"[1];

Pattern pattern_named(const std::string& name) {
  if (name == "gradient") return Pattern::gradient;
  return name == "disc" ? Pattern::disc : Pattern::bars;
}

class TestPattern final : public Handler {
 public:
  TestPattern() {
    no_allocation();
    capturable();
  }

  void probe(Facts& facts) override {
    facts.tick_count(count_ == 0 ? -1 : *count_);
    if (fps_ > 0) facts.rate(rate_of(fps_).numerator, rate_of(fps_).denominator);
    if (live_) facts.live();
    // A kernel paints by the number of the tick alone. A picture count of its own, and ticks without a picture, need
    // the CPU.
    if (live_ || fps_ > 0 || silent_every_ > 0) facts.cost_us(0, -1);
  }

  void configure(const Formats& formats) override {
    pixel_ = pixel_named(*format_);
    Format& out = formats.image(out_, pixel_, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    tag(out.color, out.range);
  }

  void start() override {
    pattern_ = pattern_named(*pattern_name_);
    rate_ = fps_ > 0 ? rate_of(fps_) : SourceRate{};
    if (pixel_ != Pixel::rgb8)
      canvas_ = Picture(Pixel::rgb8, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    if (!canvas_.empty() && pattern_ == Pattern::bars) paint_still();
  }

  void process(Tick& tick, Cpu&) {
    const uint64_t index = tick.index(); // with a rate: the number of pictures given before
    if (count_ > 0 && index >= static_cast<uint64_t>(*count_)) return tick.end();
    if (silent_every_ > 0 && (index + 1) % static_cast<uint64_t>(*silent_every_) == 0) return;
    const ImageSpan picture = allocate(tick);
    stamp(out_.header(tick), index);
    if (!still_.empty()) return copy_still(index, picture);
    const ImageSpan canvas = canvas_.empty() ? picture : canvas_.span();
    paint_pattern(pattern_, index, canvas);
    burn_number(canvas, static_cast<uint32_t>(index));
    if (!canvas_.empty()) convert_pixels(canvas_.view(), picture);
  }

  // Does not end the stream: a body that is called once for many ticks cannot. The plan ends it after tick_count()
  // ticks.
  void process(Tick& tick, Cuda& cuda) {
    const ImageSpan picture = allocate(tick);
    gpu::check(gpu::library_of(cuda).image->paint(cuda.stream(), pattern_, cuda.tick(), gpu::on_device(picture)));
  }

 private:
  ImageSpan allocate(Tick& tick) {
    const ImageSpan picture =
        out_.allocate(tick, pixel_, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    mr_image& image = out_.raw(tick).value->as.image;
    tag(image.color, image.range);
    return picture;
  }

  // The bars are the same in every picture except for the number, so they are converted once.
  void paint_still() {
    uint32_t color = 0, range = 0;
    tag(color, range);
    still_ = Picture(pixel_, canvas_.view().width(), canvas_.view().height()).tag(color, range);
    paint_pattern(Pattern::bars, 0, canvas_.span());
    convert_pixels(canvas_.view(), still_.span());
  }

  void copy_still(uint64_t index, const ImageSpan& picture) {
    convert_pixels(still_.view(), picture);
    burn_number(canvas_.span(), static_cast<uint32_t>(index));
    // Rounds up to whole rows of chroma: the number's strip may end within one.
    const uint32_t rows = std::min((burnt_number_rows(picture.height()) + 1) / 2 * 2, picture.height());
    const mr_value source = top_rows(canvas_.view().value(), rows), target = top_rows(picture.value(), rows);
    convert_pixels(ImageView(&source, canvas_.view().data()), ImageSpan(&target, picture.data()));
  }

  static mr_value top_rows(mr_value picture, uint32_t rows) {
    mr_image& image = picture.as.image;
    image.height = rows;
    for (uint32_t plane = 0; plane < image.plane_count; ++plane)
      image.planes[plane].rows = plane ? (rows + 1) / 2 : rows;
    return picture;
  }

  void tag(uint32_t& color, uint32_t& range) const {
    const bool ycbcr = pixel_ == Pixel::nv12 || pixel_ == Pixel::i420;
    color = ycbcr ? MR_COLOR_BT601 : MR_COLOR_SRGB;
    range = ycbcr ? MR_RANGE_LIMITED : MR_RANGE_FULL;
  }

  void stamp(mr_header& header, uint64_t index) const {
    if (rate_.numerator == 0) return;
    if (!live_) header.pts_ns = time_of_beat(rate_, index);
    header.duration_ns = time_of_beat(rate_, 1);
  }

  Output<Image> out_{*this, "video",
                     pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::nv12, Pixel::i420})};
  Param<std::string> pattern_name_{*this, "pattern", "bars", "what is painted", choices({"bars", "gradient", "disc"})};
  Param<int64_t> width_{*this, "width", 640, "of the picture", range(1, 16384), unit("px")};
  Param<int64_t> height_{*this, "height", 480, "of the picture", range(1, 16384), unit("px")};
  Param<std::string> format_{*this, "format", "rgb8", "pixel format",
                             choices({"rgb8", "gray8", "rgba8", "bgr8", "nv12", "i420"})};
  Param<int64_t> count_{*this, "count", 0, "pictures until the end; 0: endless", at_least(0)};
  Param<double> fps_{*this, "fps", 0, "pictures a second; 0: no rate of its own", range(0, 100000), unit("1/s")};
  Param<bool> live_{*this, "live", false, "cannot wait, like a camera"};
  Param<int64_t> silent_every_{*this, "silent_every", 0, "every k-th tick has no picture; 0: none misses", at_least(0)};
  Picture still_;  // the bars in the output's format; empty if the output is painted directly
  Picture canvas_; // RGB to convert from; empty if the output is painted directly
  Pixel pixel_ = Pixel::rgb8;
  Pattern pattern_ = Pattern::bars;
  SourceRate rate_;
};

} // namespace

const mr_handler_type& test_pattern_type() {
  static const mr_handler_type type =
      detail::Type<TestPattern>::table("test.pattern", "Gives pictures without a camera or a file", kPatternManual);
  return type;
}

} // namespace millrace::handlers
