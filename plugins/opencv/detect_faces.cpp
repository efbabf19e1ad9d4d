// detect.faces: boxes of the faces in a picture.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <opencv2/core/utility.hpp>

#include "millrace/handler.h"
#include "plugins/opencv/cascade.h"
#include "plugins/opencv/faces.h"
#include "plugins/opencv/picture.h"

namespace millrace::opencv {
namespace {

constexpr const char* kDetectFacesManual = &R"(
Finds faces with a cascade of Haar or LBP features (Viola and Jones, 2001), on the CPU.

`cascade` is a file, or the name of one of those that OpenCV brings (Debian's package opencv-data):
haarcascade_frontalface_alt, haarcascade_frontalface_default, haarcascade_profileface,
lbpcascade_frontalface_improved (several times faster), and others, for eyes, cats or number plates.
The frontal ones find upright faces from 20 or 24 pixels on.

`width` scales the picture first: a smaller one is searched faster. `size_min` and `size_max` are in
pixels of the input and bound the search too. A smaller `scale` tries more sizes. A face needs
`group` + 1 windows that overlap; n of them have the score n / (n + group + 1), so 0.5 is just
enough. Boxes are in pixels of the input, best first, with label 0. A picture that is smaller than
the cascade's window has no faces.

A picture gives the same boxes on any number of `threads`. OpenCV has one number of threads for the
whole process: the handler that starts last sets it.

    video.file path=media/Megamind.avi ! detect.faces width=360 every=3 ! null.sink
)"[1];

// More faces than a picture of a crowd shows at a useful size. Faces with the lowest scores are left out.
constexpr uint64_t kFacesMax = 256;

class DetectFaces final : public Handler {
 public:
  DetectFaces() {
    host_heavy();
    cost_hint_us(40000); // 720 × 528, haarcascade_frontalface_alt, scale 1.1, one core
  }

  void start() override {
    if (*size_max_ > 0 && *size_max_ < *size_min_)
      throw std::invalid_argument("size_max is smaller than size_min: no face has such a size");
    detector_.emplace(find_cascade(*cascade_, cascade_folders()));
    // Extra threads beyond the number of processors would only wait for each other.
    cv::setNumThreads(std::min(*threads_, cv::getNumberOfCPUs()));
  }

  void process(Tick& tick, Cpu&) {
    const FaceSettings settings{*scale_, *group_, *size_min_, *size_max_, *width_};
    const std::vector<Box> faces = detector_->detect(mat_of(video_(tick)), settings, kFacesMax);
    std::copy(faces.begin(), faces.end(), boxes_.allocate(tick, faces.size()).begin());
  }

  void stop() override { detector_.reset(); }

 private:
  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::bgr8}), help("the picture")};
  Output<Records<Box>> boxes_{*this, "boxes", count_max(kFacesMax), help("a box for each face, best first")};
  Param<std::string> cascade_{*this, "cascade", "haarcascade_frontalface_alt", "a cascade's file or its name",
                              reads_path};
  Param<double> scale_{*this, "scale", 1.1, "from one size of faces to the next", range(1.01, 2), live};
  Param<int> group_{*this,         "group", 3, "overlapping windows, less one, that make a face; 0: each is reported",
                    range(0, 100), live};
  Param<int> size_min_{*this, "size_min", 0, "smallest face; 0: the cascade's own", range(0, 8192), unit("px")};
  Param<int> size_max_{*this, "size_max", 0, "largest face; 0: the picture's", range(0, 8192), unit("px")};
  Param<int> width_{*this,          "width",    0,   "width that the picture is resized to; 0: as it is",
                    range(0, 2560), unit("px"), live};
  Param<int> threads_{*this, "threads", 1, "threads of the search; at most one a processor", range(1, 256)};

  std::optional<FaceDetector> detector_;
};

MILLRACE_HANDLER(DetectFaces, "detect.faces", "Finds faces", kDetectFacesManual)

} // namespace
} // namespace millrace::opencv
