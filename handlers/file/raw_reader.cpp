// file.raw_reader: gives the pictures of a file that has nothing but their bytes.
#include <millrace/handler.h>

#include <optional>
#include <stdexcept>

#include "handlers/file/input_stream.h"
#include "handlers/file/raw_frames.h"
#include "handlers/file/raw_stream.h"
#include "handlers/image/picture.h"
#include "handlers/source_rate.h"

namespace millrace::handlers {
namespace {

constexpr const char* kRawReaderManual = &R"(
Gives the pictures that file.raw_writer wrote, or those of any other file of raw frames, one a tick.
A picture is all rows of all planes without padding, and nothing lies between two pictures. The file
does not say what is in it, so `width`, `height` and `format` have to say it; for nv12, i420 and
p010 also `color` and `range`, the meaning of their numbers. A wrong size is noticed only if the
file is no multiple of it.

With `index: true` each picture follows the index of its tick, as file.raw_writer writes it with the
same parameter; ticks without a picture are empty. With `fps: 0` the source has no rate of its own;
with a rate, picture n has the time n / fps. With `loop` the file begins again at its end, times and
ticks go on, and the stream has no end.

A missing or empty file is refused before anything runs. So is a file that ends with a part of a
picture; with `truncated: drop` that part is left out, and the log says so.

`-` is standard input, and a path may be a FIFO (`mkfifo`) or a device. A thread of its own reads
such a stream once, from its current position. The number of pictures is known only at the end. A
part of a picture there, or no picture at all, is a failure or a note, as in a file. Such a stream
cannot `loop`.

    file.raw_reader path=examples/data/disc.gray width=64 height=48 format=gray8 ! null.sink
)"[1];

constexpr int64_t kRawSideMax = 16384; // the same as test.pattern's

class RawReader final : public Handler {
 public:
  void probe(Facts& facts) override {
    const SourceRate rate = rate_of(fps_);
    if (rate.numerator > 0) facts.rate(rate.numerator, rate.denominator);
    if (is_stream(*path_)) {
      if (loop_) throw cannot_read(*path_, "it is no regular file, so it cannot be begun again: loop needs one");
      return facts.waits();
    }
    RawFrames frames(*path_, frame());
    if (frames.count() == 0) throw cannot_read(*path_, too_short(frames.rest()));
    if (frames.rest() > 0 && *truncated_ == "fail")
      throw cannot_read(*path_, rest_of(frames.count(), frames.rest()) + "; truncated=drop leaves them out");
    if (!loop_) facts.tick_count(static_cast<int64_t>(frames.last_index() + 1));
  }

  void configure(const Formats& formats) override {
    Format& out = formats.image(out_, frame().pixel, frame().width, frame().height);
    tag(out.color, out.range);
  }

  void start() override {
    frame_ = frame();
    rate_ = rate_of(fps_);
    frames_.reset();
    stream_.close();
    if (is_stream(*path_)) {
      stream_.open(*path_, frame_.bytes());
    } else {
      frames_.emplace(*path_, frame_);
      if (frames_->rest() > 0) log_dropped(frames_->count(), frames_->rest());
    }
    given_ = round_ = 0;
    next_.reset();
  }
  // A stream cannot go back, so it continues with the next picture as a new stream.
  void reset() override {
    if (!stream_.is_open()) return start();
    round_ = given_;
    next_.reset();
  }
  void stop() override {
    frames_.reset();
    stream_.close();
  }
  void interrupt() override { stream_.interrupt(); }

  void process(Tick& tick, Cpu&) {
    if (!next_) take_next();
    if (!next_) return tick.end();
    if (*next_ > given_) return void(++given_);
    const ImageSpan picture = out_.allocate(tick, frame_.pixel, frame_.width, frame_.height);
    if (stream_.is_open())
      copy_frame(frame_, stream_.frame(), picture);
    else
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
  static std::string rest_of(uint64_t count, uint64_t rest) {
    return "after " + std::to_string(count) + " whole pictures are " + std::to_string(rest) + " bytes of another";
  }
  std::string too_short(uint64_t bytes) const {
    return "it has " + std::to_string(bytes) + " bytes, and one picture " + std::to_string(frame().bytes());
  }
  void log_dropped(uint64_t count, uint64_t rest) const {
    log(MR_LOG_WARNING, "'" + *path_ + "': " + rest_of(count, rest) + ", which are left out");
  }

  // Finds the tick of the next picture, counted over all rounds; none at the end.
  void take_next() {
    std::optional<uint64_t> index = stream_.is_open() ? next_of_stream() : frames_->next_index();
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

  std::optional<uint64_t> next_of_stream() {
    switch (stream_.next()) {
      case RawStream::Answer::frame: return frame_.indexed ? index_before(stream_.frame(), *path_) : given_ - round_;
      case RawStream::Answer::interrupted: return {};
      case RawStream::Answer::end: break;
    }
    if (stream_.count() == 0) throw cannot_read(*path_, too_short(stream_.rest()));
    if (stream_.rest() == 0) return {};
    if (*truncated_ == "fail")
      throw cannot_read(*path_, rest_of(stream_.count(), stream_.rest()) + "; truncated=drop leaves them out");
    log_dropped(stream_.count(), stream_.rest());
    return {};
  }

  void tag(uint32_t& color, uint32_t& range) const {
    const Pixel pixel = pixel_named(*format_);
    const bool ycbcr = pixel == Pixel::nv12 || pixel == Pixel::i420 || pixel == Pixel::p010;
    range = ycbcr && *range_ == "limited" ? MR_RANGE_LIMITED : MR_RANGE_FULL;
    color = MR_COLOR_SRGB;
    if (ycbcr) color = *color_ == "bt601" ? MR_COLOR_BT601 : *color_ == "bt709" ? MR_COLOR_BT709 : MR_COLOR_BT2020;
  }

  Output<Image> out_{*this, "video", help("the pictures")};
  Param<std::string> path_{*this, "path", "", "the file to read; -: standard input", required, reads_path};
  Param<int64_t> width_{*this, "width", 0, "of a picture", required, range(1, kRawSideMax), unit("px")};
  Param<int64_t> height_{*this, "height", 0, "of a picture", required, range(1, kRawSideMax), unit("px")};
  Param<std::string> format_{*this, "format", "rgb8", "pixel format",
                             choices({"gray8", "rgb8", "bgr8", "rgba8", "bgra8", "nv12", "i420", "p010"})};
  Param<std::string> color_{*this, "color", "bt601", "matrix of YCbCr", choices({"bt601", "bt709", "bt2020"})};
  Param<std::string> range_{*this, "range", "limited", "range of YCbCr", choices({"limited", "full"})};
  Param<double> fps_{*this,      "fps", 0, "pictures a second; 0: no rate of its own", millrace::range(0, 100000),
                     unit("1/s")};
  Param<bool> index_{*this, "index", false, "the tick's index stands before each picture"};
  Param<bool> loop_{*this, "loop", false, "begins again at the end"};
  Param<std::string> truncated_{*this, "truncated", "fail", "what happens when the file ends with a part of a picture",
                                choices({"fail", "drop"})};

  RawFrame frame_;
  SourceRate rate_;
  std::optional<RawFrames> frames_; // set for a regular file
  RawStream stream_;                // open for everything else
  std::optional<uint64_t> next_;    // the tick of the picture to be read next
  uint64_t given_ = 0;              // ticks since the stream began
  uint64_t round_ = 0;              // the tick at which the file was last begun
};

} // namespace

const mr_handler_type& file_raw_reader_type() {
  static const mr_handler_type type =
      detail::Type<RawReader>::table("file.raw_reader", "Gives the pictures of a file of raw frames", kRawReaderManual);
  return type;
}

} // namespace millrace::handlers
