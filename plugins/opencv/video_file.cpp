// video.file: the pictures of a video file, one a tick.
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include <opencv2/videoio.hpp>
#include <opencv2/videoio/registry.hpp>

#include "millrace/handler.h"
#include "plugins/opencv/frame_rate.h"
#include "plugins/opencv/input_path.h"
#include "plugins/opencv/picture.h"
#include "plugins/opencv/picture_times.h"

namespace millrace::opencv {
namespace {

constexpr const char* kManual = &R"(
Plays the pictures of a video file in their order, one a tick, and ends with the file.

The file's own rate is the source's rate; a broadcast rate that is reported as 29.97 is taken as
30000/1001. While the file's times agree with it, picture n is shown at n / rate, so times never
drift; from the first picture on that does not, each has the time that the file gives it (a variable
rate, of which the source's rate is the mean). Times begin at 0 and rise; one that is missing, or
that no camera makes, becomes the one before and a period. With `loop` the file begins again at its
end, times go on, and the stream has no end.

Pictures are decoded by FFmpeg into the plan's memory, as bgr8; a rotation that the file asks for is
applied. A file that does not exist, is empty or cannot be decoded is refused before anything runs;
one that breaks off early ends the stream with a warning; what is damaged in the middle is what the
decoder makes of it. Only regular files are read: no pipe, device or network address, which might
never end. Pictures of more than 134 million pixels are refused.

    video.file path=media/vtest.avi ! image.blur sigma=2 ! null.sink
)"[1];

class VideoFile final : public Handler {
 public:
  VideoFile() { cost_hint_us(1500); } // 768 × 576 of MPEG-4 on one core

  void probe(Facts& facts) override {
    open();
    facts.rate(rate_.numerator, rate_.denominator);
    if (!*loop_ && announced_ > 0) facts.tick_count(announced_);
  }

  void configure(const Formats& formats) override {
    if (size_.empty()) return; // not probed: the size stays unknown
    formats.image(video_, Pixel::bgr8, static_cast<uint32_t>(size_.width), static_cast<uint32_t>(size_.height));
  }

  void start() override {
    if (!capture_.isOpened() || taken_ > 0) open();
    times_ = PictureTimes(rate_);
  }

  void process(Tick& tick, Cpu&) {
    if (!advance()) return tick.end();
    const PictureTime time = times_.next(container_ms_);
    const ImageSpan picture =
        video_.allocate(tick, Pixel::bgr8, static_cast<uint32_t>(size_.width), static_cast<uint32_t>(size_.height));
    decode_into(picture);
    mr_header& header = video_.header(tick);
    header.pts_ns = time.pts_ns;
    header.duration_ns = time.duration_ns;
  }

  void stop() override {
    capture_.release();
    grabbed_ = false; // it went with the capture
  }
  void reset() override {
    open();
    times_ = PictureTimes(rate_);
  }

 private:
  // Opens the file at its first picture and decodes that, because only then the size is certain: containers lie about
  // it, and a rotation swaps its sides. Opening again is also how the file is rewound: seeking is exact in few formats.
  void open() {
    size_of_input("video", *path_);
    // FFmpeg alone, where there is it: the other backends take a path for a pattern of picture files or a device.
    const bool has_ffmpeg = cv::videoio_registry::hasBackend(cv::CAP_FFMPEG);
    if (!capture_.open(*path_, has_ffmpeg ? cv::CAP_FFMPEG : cv::CAP_ANY))
      throw cannot_read("video", *path_, "the file is damaged or of a kind that is not known");
    check_size();
    cv::Mat first;
    taken_ = 0;
    grab();
    if (!grabbed_ || !capture_.retrieve(first) || first.empty())
      throw cannot_read("video", *path_, "no picture in it can be decoded");
    if (first.type() != CV_8UC3) throw cannot_read("video", *path_, "its pictures are not of three 8-bit channels");
    size_ = first.size();
    const double rate = capture_.get(cv::CAP_PROP_FPS);
    rate_ = frame_rate_of(rate);
    if (!is_plausible_rate(rate)) log(MR_LOG_WARNING, "'" + *path_ + "' says no frame rate: 25 is taken");
    announced_ = picture_count_of(capture_.get(cv::CAP_PROP_FRAME_COUNT), rate_);
  }

  // Before a picture is decoded: a flipped bit in a header can ask for all memory.
  void check_size() const {
    const double width = capture_.get(cv::CAP_PROP_FRAME_WIDTH), height = capture_.get(cv::CAP_PROP_FRAME_HEIGHT);
    if (width * height > kPixelsMax)
      throw cannot_read("video", *path_,
                        "its pictures are said to be " + std::to_string(std::llround(width)) + " × " +
                            std::to_string(std::llround(height)) + ", more than are read");
  }

  void grab() {
    grabbed_ = capture_.isOpened() && capture_.grab();
    if (!grabbed_) return;
    // OpenCV says 0 where there is no time, as for the pictures that a decoder still holds at the end of the file.
    container_ms_ = capture_.get(cv::CAP_PROP_POS_MSEC);
    if (taken_ > 0 && container_ms_ == 0) container_ms_ = std::numeric_limits<double>::quiet_NaN();
  }

  // Moves to the next picture; false at the end of the stream.
  bool advance() {
    if (!grabbed_) grab();
    if (!grabbed_ && taken_ > 0 && *loop_) {
      open();
      times_.begin_again();
    }
    if (!grabbed_ && taken_ > 0) report_shortfall();
    return grabbed_;
  }

  // Many counts are guesses from the duration, which are off by a picture, and say nothing where the rate varies: there
  // the time that was reached decides.
  void report_shortfall() {
    const bool reached = times_.end_ns() >= time_of_picture(rate_, announced_ - 1);
    if (announced_ > taken_ + 1 && !reached)
      log(MR_LOG_WARNING, "'" + *path_ + "' breaks off after " + std::to_string(taken_) + " of " +
                              std::to_string(announced_) + " pictures");
    announced_ = 0; // said once
  }

  void decode_into(const ImageSpan& picture) {
    cv::Mat target = mat_of(picture);
    const uint8_t* planned = target.data;
    if (!capture_.retrieve(target) || target.empty())
      throw cannot_read("video", *path_, "picture " + std::to_string(taken_) + " cannot be decoded");
    grabbed_ = false;
    ++taken_;
    if (target.data == planned) return;
    // OpenCV took memory of its own: the size differs from the first picture's, or a rotation needed a second buffer.
    if (target.size() != size_ || target.type() != CV_8UC3)
      throw cannot_read("video", *path_,
                        "picture " + std::to_string(taken_ - 1) + " is " + std::to_string(target.cols) + " × " +
                            std::to_string(target.rows) + ", the first was " + std::to_string(size_.width) + " × " +
                            std::to_string(size_.height));
    target.copyTo(mat_of(picture));
  }

  Output<Image> video_{*this, "video", pixels({Pixel::bgr8}), help("the pictures")};
  Param<std::string> path_{*this, "path", "", "the video file", required, reads_path};
  Param<bool> loop_{*this, "loop", false, "begins again at the end"};

  cv::VideoCapture capture_;
  cv::Size size_;
  FrameRate rate_;
  int64_t announced_ = 0; // pictures, as the container says; 0: it does not
  int64_t taken_ = 0;     // pictures given since the file was opened
  PictureTimes times_;
  double container_ms_ = 0; // of the picture that is grabbed; NaN: none
  bool grabbed_ = false;    // the next picture is taken from the file, but not given yet
};

MILLRACE_HANDLER(VideoFile, "video.file", "Plays the pictures of a video file", kManual)

} // namespace
} // namespace millrace::opencv
