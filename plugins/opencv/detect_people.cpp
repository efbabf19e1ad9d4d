// detect.people: boxes of the people in a picture.
#include <algorithm>
#include <vector>

#include <opencv2/core/utility.hpp>

#include "millrace/handler.h"
#include "plugins/opencv/people.h"
#include "plugins/opencv/picture.h"

namespace millrace::opencv {
namespace {

constexpr const char* kDetectPeopleManual = &R"(
Finds people who stand or walk: histograms of gradients and a linear classifier (Dalal and Triggs,
2005), on the CPU.

People are found from about 100 pixels of height on; `width` scales the picture first, so that the
people in it are larger or the search is faster (its time grows with the area). `threshold` is the
classifier's: a higher one finds fewer people, but more surely. A smaller `scale` tries more sizes
between the smallest and the largest. A person needs `group` + 1 windows that overlap. Boxes are in
pixels of the input, best first, with label 0; the score is the classifier's, cut off at 0 and 1.

A picture gives the same boxes on any number of `threads`. OpenCV has one number of threads for the
whole process: the handler that starts last sets it.

    video.file path=media/vtest.avi ! detect.people every=3 ! null.sink
)"[1];

// More people than can be followed in one scene. People with the lowest scores are left out.
constexpr uint64_t kPeopleMax = 256;

class DetectPeople final : public Handler {
 public:
  DetectPeople() {
    host_heavy();
    cost_hint_us(85000); // 768 × 576, scale 1.1, one core
  }

  // Extra threads beyond the number of processors would only wait for each other.
  void start() override { cv::setNumThreads(std::min(*threads_, cv::getNumberOfCPUs())); }

  void process(Tick& tick, Cpu&) {
    const PeopleSettings settings{*threshold_, *scale_, *width_, *group_};
    const std::vector<Box> people = detector_.detect(mat_of(video_(tick)), settings, kPeopleMax);
    std::copy(people.begin(), people.end(), boxes_.allocate(tick, people.size()).begin());
  }

 private:
  Input<Image> video_{*this, "video", pixels({Pixel::gray8, Pixel::bgr8}), help("the picture")};
  Output<Records<Box>> boxes_{*this, "boxes", count_max(kPeopleMax), help("a box for each person, best first")};
  Param<double> threshold_{*this,        "threshold", 0.0, "classifier's score from which on a window is a person",
                           range(-2, 4), live};
  Param<double> scale_{*this, "scale", 1.1, "from one size of people to the next", range(1.01, 2), live};
  Param<int> width_{*this,          "width",    0,   "width that the picture is resized to; 0: as it is",
                    range(0, 2560), unit("px"), live};
  Param<int> group_{*this,         "group", 2, "overlapping windows, less one, that make a person; 0: each is reported",
                    range(0, 100), live};
  Param<int> threads_{*this, "threads", 1, "threads of the search; at most one a processor", range(1, 256)};

  PeopleDetector detector_;
};

MILLRACE_HANDLER(DetectPeople, "detect.people", "Finds people who stand or walk", kDetectPeopleManual)

} // namespace
} // namespace millrace::opencv
