// track.boxes: turns occasional detections into numbered boxes at every tick.
#include "millrace/handler.h"
#include "plugins/opencv/tracker.h"

namespace millrace::opencv {
namespace {

constexpr const char* kTrackBoxesManual = &R"(
Follows boxes from detection to detection, gives each a number that stays with it, and says where it
is at every tick.

`video` sets the pace: there is a result for each of its values. `boxes` are detections. At a tick
without them the detector did not look (`every: 3`), and the boxes move on at their last speed. At a
tick with an empty list it looked and saw nothing. A detection belongs to the track whose predicted
box it overlaps, by `iou_min` at least (intersection over union), at the least total cost over all
pairs. A track is shown from its `min_hits`-th detection in a row on, and ends after `max_age` ticks
without one. Boxes are ordered by number; score and label are those of the last detection.

    video.file name=v path=media/vtest.avi ! track.boxes name=t ! null.sink v. ! detect.people every=3 ! t.boxes
)"[1];

class TrackBoxes final : public Handler {
 public:
  TrackBoxes() { cost_hint_us(2); } // a dozen boxes, detected at every third tick

  void start() override {
    tracker_ = Tracker({*iou_min_, static_cast<uint32_t>(*max_age_), static_cast<uint32_t>(*min_hits_)});
  }

  void process(Tick& tick, Cpu&) {
    tracker_.predict();
    if (detections_.present(tick)) tracker_.correct(detections_(tick));
    const size_t count = tracker_.write(tracks_.allocate(tick, kTracksMax));
    tracks_.shrink(tick, count);
  }

  void reset() override { tracker_.clear(); }

 private:
  Input<Any> video_{*this, "video", help("sets the pace; its content does not matter")};
  Input<Records<Box>> detections_{*this, "boxes", optional, help("what a detector saw at this tick")};
  Output<Records<Box>> tracks_{*this, "boxes", count_max(kTracksMax), help("the boxes that are followed, by number")};
  Param<int> max_age_{*this, "max_age", 15, "ticks that a track lives without a detection", range(0, 100000)};
  Param<int> min_hits_{*this, "min_hits", 2, "detections before a track is shown", range(1, 1000)};
  Param<double> iou_min_{*this, "iou_min", 0.3, "overlap of a detection with its track at least", range(0, 1)};

  Tracker tracker_;
};

MILLRACE_HANDLER(TrackBoxes, "track.boxes", "Follows boxes and gives each a number that stays with it",
                 kTrackBoxesManual)

} // namespace
} // namespace millrace::opencv
