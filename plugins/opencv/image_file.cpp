// image.file: a picture file, or all that match a pattern, one a tick.
#include <stdexcept>
#include <string>
#include <vector>

#include "millrace/handler.h"
#include "plugins/opencv/fit_picture.h"
#include "plugins/opencv/frame_rate.h"
#include "plugins/opencv/picture.h"
#include "plugins/opencv/picture_file.h"
#include "plugins/opencv/picture_list.h"

namespace millrace::opencv {
namespace {

constexpr const char* kImageFileManual = &R"(
Gives the pictures of one file, or of all files that a pattern such as `frames/*.png` or
`frames/%06d.png` matches, one a tick.

The files are looked up once, before anything runs, and come in natural order: frame2.png before
frame10.png. `%d` stands for a number and `%06d` for one of at least six digits, in the file's name:
existing numbers are given from the lowest on, and gaps are skipped. If a file has the pattern
itself as its name, that file is read.

The whole list is given `repeat` times, or, with `loop`, without end. With `fps` the source has that
rate and picture n is shown at n / fps; without it there is a picture at each tick.

Pictures are bgr8, or bgra8 with `alpha` (opaque if a file has no transparency); deeper ones are
reduced to 8 bits, and a rotation that the file asks for is applied. Colours are never multiplied by
alpha. All have the size of the first:
`sizes` says whether another size is refused, fitted in with its proportions kept and a black (or
transparent) border, or stretched.

A file that is missing, empty, cut off or cannot be decoded is an error that names it; in a list,
when its turn comes. Of an animated PNG and of a TIFF file with several pages the first picture is
read, and a note says so; GIF and films are for video.file. TIFF is read with whole numbers of 8 or
16 bits. Damage in the middle of a file is left to its decoder. Only regular files are
read, of at most 1 GB and 134 million pixels.

    image.file path=examples/data/pattern-*.png fps=2 ! image.blur sigma=2 ! null.sink
)"[1];

class ImageFile final : public Handler {
 public:
  ImageFile() { cost_hint_us(5000); } // 768 × 576 of PNG on one core

  void probe(Facts& facts) override {
    look_up();
    if (*fps_ > 0) {
      const FrameRate rate = frame_rate_of(*fps_);
      facts.rate(rate.numerator, rate.denominator);
    }
    if (!*loop_) facts.tick_count(count());
  }

  void configure(const Formats& formats) override {
    if (first_.empty()) return; // not probed: the size stays unknown
    formats.image(video_, *alpha_ ? Pixel::bgra8 : Pixel::bgr8, static_cast<uint32_t>(first_.cols),
                  static_cast<uint32_t>(first_.rows));
  }

  void start() override {
    if (first_.empty()) look_up();
    tell();
    shown_ = 0;
  }

  void process(Tick& tick, Cpu&) {
    if (!*loop_ && shown_ >= count()) return tick.end();
    const ImageSpan picture = video_.allocate(tick, *alpha_ ? Pixel::bgra8 : Pixel::bgr8,
                                              static_cast<uint32_t>(first_.cols), static_cast<uint32_t>(first_.rows));
    fill(mat_of(picture));
    if (*fps_ > 0) {
      const FrameRate rate = frame_rate_of(*fps_);
      mr_header& header = video_.header(tick);
      header.pts_ns = time_of_picture(rate, shown_);
      header.duration_ns = time_of_picture(rate, shown_ + 1) - header.pts_ns;
    }
    ++shown_;
  }

  void stop() override { first_.release(); }
  void reset() override { shown_ = 0; }

 private:
  void look_up() {
    files_ = pictures_of(*path_);
    first_ = read_picture(files_[0], *alpha_, &note_);
  }

  void tell() {
    if (!note_.empty()) log(MR_LOG_INFO, note_);
    note_.clear();
  }

  int64_t count() const { return static_cast<int64_t>(files_.size()) * *repeat_; }

  void fill(cv::Mat target) {
    const std::string& path = files_[static_cast<size_t>(shown_) % files_.size()];
    const cv::Mat picture = &path == &files_[0] ? first_ : read_picture(path, *alpha_, &note_);
    tell();
    if (picture.size() == target.size())
      picture.copyTo(target);
    else if (*sizes_ == "fit")
      fit_into(picture, target);
    else if (*sizes_ == "stretch")
      stretch_into(picture, target);
    else
      throw std::runtime_error("the picture '" + path + "' is " + in_words(picture.size()) + ", the first was " +
                               in_words(target.size()) + "; `sizes: fit` or `sizes: stretch` would scale it");
  }

  Output<Image> video_{*this, "video", pixels({Pixel::bgr8, Pixel::bgra8}), help("the pictures")};
  Param<std::string> path_{
      *this, "path", "", "a picture file, or a pattern such as frames/*.png or frames/%06d.png", required, reads_path};
  Param<double> fps_{*this, "fps", 0.0, "pictures a second; 0: no rate of its own", range(0, 1000), unit("1/s")};
  Param<int> repeat_{*this, "repeat", 1, "how often the whole list is given", range(1, 1e9)};
  Param<bool> loop_{*this, "loop", false, "gives the list again and again, without end"};
  Param<std::string> sizes_{*this, "sizes", "refuse", "what happens to a picture of another size than the first",
                            choices({"refuse", "fit", "stretch"})};
  Param<bool> alpha_{*this, "alpha", false, "keeps transparency: pictures are bgra8"};

  std::vector<std::string> files_;
  std::string note_; // about the picture that was read last, until it is told
  cv::Mat first_;    // kept, not decoded again; all pictures have its size
  int64_t shown_ = 0;
};

MILLRACE_HANDLER(ImageFile, "image.file", "Gives picture files, one a tick", kImageFileManual)

} // namespace
} // namespace millrace::opencv
