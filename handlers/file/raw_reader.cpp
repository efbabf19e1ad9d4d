// file.raw_reader: gives the pictures of a file that has nothing but their bytes.
#include <millrace/handler.h>

#include <optional>
#include <stdexcept>

#include "handlers/file/raw_frames.h"
#include "handlers/image/picture.h"
#include "handlers/source_rate.h"

namespace millrace::handlers {
namespace {

constexpr const char* kManual = &R"(
Gives the pictures that file.raw_writer wrote, or any other file of raw frames, one a tick: of
each picture all rows of all planes, without padding, and nothing between two pictures. The file
does not say what is in it, so `width`, `height` and `format` do; for nv12, i420 and p010 also
`color` and `range`, what their numbers mean. A wrong size is seen only where the file is no
multiple of it.

With `index: true` each picture stands behind the index of its tick, as file.raw_writer writes it
with the same parameter; ticks that no picture names are empty. `fps: 0` has no rate of its own;
with a rate, picture n has the time n / fps. With `loop` the file begins again at its end, times
and ticks go on, and the stream has no end.

A missing or empty file is refused before anything runs. So is one with a part of a picture at its
end; with `truncated: drop` that part is left out, and the log says so.

    file.raw_reader path=examples/data/disc.gray width=64 height=48 format=gray8 ! null.sink
)"[1];

constexpr int64_t kSideMax = 16384; // as test.pattern's

class RawReader final : public Handler {
 public:
  void probe(Facts& facts) override {
    const SourceRate rate = rate_of(fps_);
    if (rate.numerator > 0) facts.rate(rate.numerator, rate.denominator);
    RawFrames frames(*path_, frame());
    if (frames.count() == 0)
      throw cannot_read(*path_, "it has " + std::to_string(frames.rest()) + " bytes, and one picture " +
                                    std::to_string(frame().bytes()));
    if (frames.rest() > 0 && *truncated_ == "fail")
      throw cannot_read(*path_, rest_of(frames) + "; truncated=drop leaves them out");
    if (!loop_) facts.tick_count(static_cast<int64_t>(frames.last_index() + 1));
  }

  void configure(const Formats& formats) override {
    Format& out = formats.image(out_, frame().pixel, frame().width, frame().height);
    tag(out.color, out.range);
  }

  void start() override {
    frame_ = frame();
    rate_ = rate_of(fps_);
    frames_.emplace(*path_, frame_);
    if (frames_->rest() > 0) log(MR_LOG_WARNING, "'" + *path_ + "': " + rest_of(*frames_) + ", which are left out");
    given_ = round_ = 0;
    next_.reset();
  }
  void reset() override { start(); }
  void stop() override { frames_.reset(); }

  void process(Tick& tick, Cpu&) {
    if (!next_) take_next();
    if (!next_) return tick.end();
    if (*next_ > given_) return void(++given_);
    const ImageSpan picture = out_.allocate(tick, frame_.pixel, frame_.width, frame_.height);
    frames_->read(picture);
    mr_value& value = *out_.raw(tick).value;
    tag(value.as.image.color, value.as.image.range);
    if (rate_.numerator > 0) {
      value.header.pts_ns = time_of_beat(rate_, given_);
      value.header.duration_ns = time_of_beat(rate_, 1);
    }
    next_.reset();
    ++given_;
  }

 private:
  RawFrame frame() const {
    return {pixel_named(*format_), static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_), *index_};
  }
  static std::string rest_of(const RawFrames& frames) {
    return "behind " + std::to_string(frames.count()) + " whole pictures are " + std::to_string(frames.rest()) +
           " bytes of another";
  }

  // The tick of the next picture, counted over all rounds; none at the end.
  void take_next() {
    std::optional<uint64_t> index = frames_->next_index();
    if (!index && loop_) {
      frames_->rewind();
      round_ = given_;
      index = frames_->next_index();
    }
    if (!index) return;
    if (*index < given_ - round_)
      throw cannot_read(*path_, "the index " + std::to_string(*index) + " follows " +
                                    std::to_string(given_ - round_ - 1) + ", so it is damaged or has no indices");
    next_ = round_ + *index;
  }

  void tag(uint32_t& color, uint32_t& range) const {
    const Pixel pixel = pixel_named(*format_);
    const bool ycbcr = pixel == Pixel::nv12 || pixel == Pixel::i420 || pixel == Pixel::p010;
    range = ycbcr && *range_ == "limited" ? MR_RANGE_LIMITED : MR_RANGE_FULL;
    color = MR_COLOR_SRGB;
    if (ycbcr) color = *color_ == "bt601" ? MR_COLOR_BT601 : *color_ == "bt709" ? MR_COLOR_BT709 : MR_COLOR_BT2020;
  }

  Output<Image> out_{*this, "video", help("the pictures")};
  Param<std::string> path_{*this, "path", "", "the file to read", required};
  Param<int64_t> width_{*this, "width", 0, "of a picture", required, range(1, kSideMax), unit("px")};
  Param<int64_t> height_{*this, "height", 0, "of a picture", required, range(1, kSideMax), unit("px")};
  Param<std::string> format_{*this, "format", "rgb8", "pixel format",
                             choices({"gray8", "rgb8", "bgr8", "rgba8", "bgra8", "nv12", "i420", "p010"})};
  Param<std::string> color_{*this, "color", "bt601", "matrix of YCbCr", choices({"bt601", "bt709", "bt2020"})};
  Param<std::string> range_{*this, "range", "limited", "range of YCbCr", choices({"limited", "full"})};
  Param<double> fps_{*this,      "fps", 0, "pictures a second; 0: no rate of its own", millrace::range(0, 100000),
                     unit("1/s")};
  Param<bool> index_{*this, "index", false, "the tick's index stands before each picture"};
  Param<bool> loop_{*this, "loop", false, "begins again at the end"};
  Param<std::string> truncated_{*this, "truncated", "fail", "what a part of a picture at the end does",
                                choices({"fail", "drop"})};

  RawFrame frame_;
  SourceRate rate_;
  std::optional<RawFrames> frames_;
  std::optional<uint64_t> next_; // the tick of the picture that is read next
  uint64_t given_ = 0;           // ticks since the stream began
  uint64_t round_ = 0;           // the tick at which the file was begun last
};

} // namespace

const mr_handler_type& file_raw_reader_type() {
  static const mr_handler_type type =
      detail::Type<RawReader>::table("file.raw_reader", "Gives the pictures of a file of raw frames", kManual);
  return type;
}

} // namespace millrace::handlers
