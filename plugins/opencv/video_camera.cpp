// video.camera: gives the live pictures of a camera.
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <opencv2/videoio.hpp>

#include "millrace/handler.h"
#include "millrace/param_text.h"
#include "plugins/opencv/camera_reader.h"
#include "plugins/opencv/cameras.h"
#include "plugins/opencv/frame_rate.h"
#include "plugins/opencv/picture.h"

namespace millrace::opencv {
namespace {

constexpr const char* kVideoCameraManual = &R"(
Gives the pictures of a camera as they come (Video4Linux).

`camera` is a number, as of /dev/video0, or the path of a device. `width`, `height`, `rate` and
`codec` (a FourCC code such as MJPG, in which many cameras are faster) are requested from the
camera; it takes the nearest that it has, which is logged. 0 and an empty code keep the camera's
own.

The source is live: it cannot be slowed, and a picture for which the pipeline has no time is dropped
and counted. A picture's time is when it was read, counted from the first one. A camera that is
absent or in use is refused before anything runs, with a list of the cameras that there are. A
camera that fails, or gives nothing for ten seconds, ends the run with an error. Pictures are bgr8.

    video.camera camera=0 width=640 height=480 ! null.sink
)"[1];

class VideoForLinux final : public CameraStream {
 public:
  cv::VideoCapture& capture() { return capture_[0]; }

  bool wait(int64_t timeout_ns) override {
    std::vector<int> ready;
    try {
      return cv::VideoCapture::waitAny(capture_, ready, timeout_ns);
    } catch (const cv::Exception&) {
      return true; // OpenCV cannot wait for this camera: read() waits instead, ten seconds at most
    }
  }
  bool read(cv::Mat& target) override { return capture().grab() && capture().retrieve(target) && !target.empty(); }

 private:
  std::vector<cv::VideoCapture> capture_ = std::vector<cv::VideoCapture>(1);
};

class VideoCamera final : public Handler {
 public:
  VideoCamera() {
    blocking();
    cost_hint_us(1000); // conversion of 640 × 480
  }

  void probe(Facts& facts) override {
    open();
    facts.live();
    if (has_rate_) facts.rate(rate_.numerator, rate_.denominator);
  }

  void configure(const Formats& formats) override {
    if (size_.empty()) return; // not probed: the size stays unknown
    formats.image(video_, Pixel::bgr8, static_cast<uint32_t>(size_.width), static_cast<uint32_t>(size_.height));
  }

  void start() override {
    if (!stream_.capture().isOpened()) open();
    reader_.clear();
    first_ns_ = -1;
  }

  void process(Tick& tick, Cpu&) {
    const ImageSpan picture =
        video_.allocate(tick, Pixel::bgr8, static_cast<uint32_t>(size_.width), static_cast<uint32_t>(size_.height));
    cv::Mat target = mat_of(picture);
    const uint8_t* planned = target.data;
    switch (reader_.next(stream_, target)) {
      case CameraAnswer::picture: break;
      case CameraAnswer::interrupted: video_.withdraw(tick); return tick.end();
      case CameraAnswer::silent: throw lost("gave no picture for ten seconds");
      case CameraAnswer::failed: throw lost("failed: is it still connected?");
    }
    if (target.data != planned) {
      if (target.size() != size_ || target.type() != CV_8UC3)
        throw lost("changed its pictures from " + in_words(size_) + " to " + in_words(target.size()));
      target.copyTo(mat_of(picture));
    }
    const int64_t now = now_ns();
    if (first_ns_ < 0) first_ns_ = now;
    mr_header& header = video_.header(tick);
    header.pts_ns = now - first_ns_;
    header.duration_ns = has_rate_ ? time_of_picture(rate_, 1) : 0;
  }

  void stop() override { stream_.capture().release(); }
  void interrupt() override { reader_.interrupt(); }

 private:
  // Opens the camera and reads one picture, because the size is certain only then.
  void open() {
    path_ = camera_path(*camera_, folders_);
    const std::string refusal = camera_refusal(path_, folders_);
    if (!refusal.empty()) throw std::runtime_error(refusal);
    cv::VideoCapture& capture = stream_.capture();
    if (!capture.open(path_, cv::CAP_V4L2))
      throw std::runtime_error("the camera '" + path_ +
                               "' cannot be used: another program has it, or it gives no "
                               "pictures (drivers list metadata devices, too)");
    ask_for(capture);
    cv::Mat first;
    if (!capture.read(first) || first.empty()) throw lost("gave no picture");
    if (first.type() != CV_8UC3) throw lost("gives pictures that are not of three 8-bit channels");
    size_ = first.size();
    const double rate = capture.get(cv::CAP_PROP_FPS);
    has_rate_ = is_plausible_rate(rate);
    rate_ = frame_rate_of(rate);
    report();
  }

  void ask_for(cv::VideoCapture& capture) const {
    if (!codec_->empty()) {
      if (codec_->size() != 4) throw std::invalid_argument("codec '" + *codec_ + "' is no FourCC code such as MJPG");
      const std::string& code = *codec_;
      capture.set(cv::CAP_PROP_FOURCC, cv::VideoWriter::fourcc(code[0], code[1], code[2], code[3]));
    }
    if (*width_ > 0) capture.set(cv::CAP_PROP_FRAME_WIDTH, *width_);
    if (*height_ > 0) capture.set(cv::CAP_PROP_FRAME_HEIGHT, *height_);
    if (*asked_rate_ > 0) capture.set(cv::CAP_PROP_FPS, *asked_rate_);
  }

  // Warns if the camera uses other values than were asked for.
  void report() const {
    const bool other_size = (*width_ > 0 && *width_ != size_.width) || (*height_ > 0 && *height_ != size_.height);
    if (other_size) log(MR_LOG_WARNING, "the camera '" + path_ + "' gives " + in_words(size_) + " instead");
    const double rate = static_cast<double>(rate_.numerator) / static_cast<double>(rate_.denominator);
    if (*asked_rate_ > 0 && has_rate_ && std::abs(rate - *asked_rate_) > 0.5)
      log(MR_LOG_WARNING,
          "the camera '" + path_ + "' gives " + v1::detail::number_text(rate) + " pictures a second instead");
  }

  std::runtime_error lost(const std::string& what) const {
    return std::runtime_error("the camera '" + path_ + "' " + what);
  }

  Output<Image> video_{*this, "video", pixels({Pixel::bgr8}), help("the pictures")};
  Param<std::string> camera_{*this, "camera", "0", "the camera's number, or the path of its device"};
  Param<int> width_{*this, "width", 0, "asked of the camera; 0: its own", range(0, 16384), unit("px")};
  Param<int> height_{*this, "height", 0, "asked of the camera; 0: its own", range(0, 16384), unit("px")};
  Param<double> asked_rate_{*this, "rate", 0.0, "asked of the camera; 0: its own", range(0, 1000), unit("1/s")};
  Param<std::string> codec_{*this, "codec", "", "FourCC code asked of the camera; empty: its own"};

  const CameraFolders folders_;
  std::string path_;
  VideoForLinux stream_;
  CameraReader reader_;
  cv::Size size_;
  FrameRate rate_;
  bool has_rate_ = false;
  int64_t first_ns_ = -1; // when the first picture was read
};

MILLRACE_HANDLER(VideoCamera, "video.camera", "Gives the pictures of a camera", kVideoCameraManual)

} // namespace
} // namespace millrace::opencv
