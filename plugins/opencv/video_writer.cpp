// video.writer: pictures into a video file.
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include <opencv2/videoio.hpp>
#include <opencv2/videoio/registry.hpp>

#include "millrace/handler.h"
#include "plugins/opencv/frame_rate.h"
#include "plugins/opencv/output_path.h"
#include "plugins/opencv/picture.h"

namespace millrace::opencv {
namespace {

constexpr const char* kManual = &R"(
Writes the pictures that it gets into a video file, whose container follows from the path's
extension.

`codec` is a FourCC code that the container can hold; without one it is mp4v for .mp4, .mov and
.m4v, and MJPG for all others. `fps` is the rate that the file says; 0 takes it from the pictures:
from the first one's duration, else from the time between the first two; a single picture of unknown
duration is written at 25. The file's rate is constant: of a variable rate all pictures are kept,
their times are not. Folders on the way to the file are made, and a file that was there is
overwritten. All pictures must have one size; most codecs drop the last column and row of odd ones.
The file is complete when the stream has ended.

    video.file path=media/vtest.avi ! video.writer path=out/copy.mp4
)"[1];

constexpr size_t kCodecLetters = 4;

std::string default_codec(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".mp4" || extension == ".mov" || extension == ".m4v" ? "mp4v" : "MJPG";
}

std::string in_words(const cv::Size& size) { return std::to_string(size.width) + " × " + std::to_string(size.height); }

class VideoWriter final : public Handler {
 public:
  VideoWriter() { cost_hint_us(4000); } // 768 × 576 as mp4v on one core

  // What can be refused without a picture is refused here, before the stream runs.
  void start() override {
    codec_ = codec_param_->empty() ? default_codec(*path_) : *codec_param_;
    if (codec_.size() != kCodecLetters)
      throw std::invalid_argument("codec '" + codec_ + "' is no FourCC code: four letters such as mp4v");
    if (extension_of(*path_).empty())
      throw cannot_write("the extension, which chooses the container, is missing (.mp4 or .avi)");
    make_folders_for(*path_);
    first_.release();
    written_ = 0;
  }

  void process(Tick& tick, Cpu&) {
    const ImageView view = video_(tick);
    const cv::Mat picture = mat_of(view);
    if (!writer_.isOpened() && !open_for(view.header(), picture)) return;
    if (picture.size() != size_)
      throw cannot_write("a picture is " + in_words(picture.size()) + ", the file was begun at " + in_words(size_));
    write(picture);
  }

  void drain() override {
    if (!first_.empty()) {
      open(kFrameRateFallback, first_.size());
      write_first();
    }
    close();
    std::error_code error;
    if (written_ > 0 && (std::filesystem::file_size(*path_, error) == 0 || error))
      throw cannot_write("nothing arrived in the file; is the disk full?");
  }

  // Without a drain (an interrupted run) what was written is still made a whole file.
  void stop() override {
    first_.release();
    close();
  }

  // A jump in the stream is no new file: the pictures after it follow those before.
  void reset() override {}

 private:
  // True when the file is open. The first picture of unknown duration is kept until the second tells the rate.
  bool open_for(const mr_header& header, const cv::Mat& picture) {
    if (*fps_ > 0) {
      open(frame_rate_of(*fps_), picture.size());
    } else if (header.duration_ns > 0) {
      open(frame_rate_of_period(header.duration_ns), picture.size());
    } else if (first_.empty()) {
      picture.copyTo(first_);
      first_pts_ns_ = header.pts_ns;
      return false;
    } else {
      open(frame_rate_of_period(header.pts_ns - first_pts_ns_), first_.size());
    }
    write_first();
    return true;
  }

  void open(FrameRate rate, const cv::Size& size) {
    const double fps = static_cast<double>(rate.numerator) / static_cast<double>(rate.denominator);
    const int code = cv::VideoWriter::fourcc(codec_[0], codec_[1], codec_[2], codec_[3]);
    const bool has_ffmpeg = cv::videoio_registry::hasBackend(cv::CAP_FFMPEG);
    if (!writer_.open(*path_, has_ffmpeg ? cv::CAP_FFMPEG : cv::CAP_ANY, code, fps, size, true))
      throw cannot_write("either the file cannot be made, or a '" + extension_of(*path_) + "' file of " +
                         in_words(size) + " cannot hold codec '" + codec_ + "'");
    size_ = size;
  }

  void write(const cv::Mat& picture) {
    writer_.write(picture);
    ++written_;
  }
  void write_first() {
    if (first_.empty()) return;
    write(first_);
    first_.release();
  }
  void close() {
    if (writer_.isOpened()) writer_.release();
  }

  std::runtime_error cannot_write(const std::string& why) const {
    return std::runtime_error("cannot write the video '" + *path_ + "': " + why);
  }

  Input<Image> video_{*this, "video", pixels({Pixel::bgr8}), help("the pictures")};
  Param<std::string> path_{*this,    "path",     "", "the video file; its extension chooses the container",
                           required, writes_path};
  Param<std::string> codec_param_{*this, "codec", "", "FourCC code; empty: by the extension"};
  Param<double> fps_{*this,          "fps",      0.0, "pictures a second that the file says; 0: those of the stream",
                     range(0, 1000), unit("1/s")};

  std::string codec_;
  cv::VideoWriter writer_;
  cv::Size size_;
  cv::Mat first_; // waits for the second picture
  int64_t first_pts_ns_ = 0;
  uint64_t written_ = 0;
};

MILLRACE_HANDLER(VideoWriter, "video.writer", "Writes pictures into a video file", kManual)

} // namespace
} // namespace millrace::opencv
