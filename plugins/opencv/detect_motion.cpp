// detect.motion: boxes of what moves before a camera that stands still.
#include <algorithm>
#include <vector>

#include "millrace/handler.h"
#include "plugins/opencv/motion.h"
#include "plugins/opencv/picture.h"

namespace millrace::opencv {
namespace {

constexpr const char* kDetectMotionManual = &R"(
Finds what moves before a camera that stands still, on the CPU: what differs from a background by
`threshold` or more has changed. The background is learnt: pixel by pixel it follows the picture, and
needs `memory` pictures for a change from black to white. So something that passes leaves no mark,
something that stops becomes background after a while, and what was there in the first picture and
left is seen as a ghost for as long.

Changes that are no further apart than `join` become one box; two people side by side are one thing
then. A box needs `area_min` of the picture's area in changed pixels. `width` reduces the picture
first: a smaller one takes less time and has less noise. Boxes are in pixels of the input, those with
the most changed pixels first, with label 0; the score is the changed part of the box.

The first picture has no boxes. A camera that moves, or a cut of a film, changes everything.

    video.file path=media/vtest.avi ! detect.motion ! null.sink
)"[1];

// As many as detect.people may find. Boxes with the fewest changed pixels are left out.
constexpr uint64_t kThingsMax = 256;

class DetectMotion final : public Handler {
 public:
  DetectMotion() { cost_hint_us(1200); } // 768 × 576, reduced to 320

  void start() override { detector_.clear(); }
  void reset() override { detector_.clear(); }

  void process(Tick& tick, Cpu&) {
    const MotionSettings settings{*width_, *threshold_, *memory_, *join_, *area_min_};
    const std::vector<Box> things = detector_.detect(mat_of(video_(tick)), settings, kThingsMax);
    std::copy(things.begin(), things.end(), boxes_.allocate(tick, things.size()).begin());
  }

 private:
  Input<Image> video_{*this, "video", pixels({Pixel::gray8}), help("the picture")};
  Output<Records<Box>> boxes_{*this, "boxes", count_max(kThingsMax),
                              help("a box for each thing, the most changed first")};
  Param<int> threshold_{
      *this, "threshold", 25, "difference from the background from which on a pixel has changed", range(1, 255), live};
  Param<int> memory_{
      *this, "memory", 150, "pictures in which the background goes from black to white", range(1, 100000), live};
  Param<int> join_{*this,         "join",     12,  "changes that are no further apart are one thing",
                   range(0, 512), unit("px"), live};
  Param<double> area_min_{*this,       "area_min", 0.001, "part of the picture that a thing changes, at least",
                          range(0, 1), live};
  Param<int> width_{*this,          "width",   320, "width that a larger picture is reduced to; 0: as it is",
                    range(0, 2560), unit("px")};

  MotionDetector detector_;
};

MILLRACE_HANDLER(DetectMotion, "detect.motion", "Finds what moves before a camera that stands still",
                 kDetectMotionManual)

} // namespace
} // namespace millrace::opencv
