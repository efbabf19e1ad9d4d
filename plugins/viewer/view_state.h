// The view as the person with control has chosen it: camera, slice and look, and the events since they were last asked
// for.
#pragma once

#include <deque>

#include "plugins/viewer/wire.h"

namespace millrace::viewer {

// So many events wait for view.events. Further ones replace the oldest moves, and then the oldest.
inline constexpr size_t kEventsMax = 1024;

// Look and slice. A value that nobody has chosen is the handler's.
struct ViewChoice {
  ViewLook look;
  ViewDims dims;
  bool has_contrast = false, has_gamma = false, has_opacity = false, has_crop[3] = {}; // they were chosen

  void apply(const LookChange& change);
  // `axis`: the one across which the slice lies.
  void apply(const DimsChange& change, size_t axis);
};

struct ViewState {
  std::deque<ViewEvent> events;
  ViewCamera camera;
  ViewChoice chosen;
  bool has_pointer = false; // some page's pointer is over the picture
  float pointer[2] = {};
  bool camera_changed = true, look_changed = true, dims_changed = true, pointer_changed = true;
  uint64_t events_lost = 0;

  // A move that follows a move of the same page with the same buttons takes its place, and its way is both ways.
  void add(const ViewEvent& event);
  void apply(const CameraChange& change);
  void choose(const ViewChoice& choice);
};

} // namespace millrace::viewer
