// Changes of the view; see view_state.h.
#include "plugins/viewer/view_state.h"

#include <algorithm>
#include <cmath>

namespace millrace::viewer {

namespace {

constexpr float kZoomMin = 1e-4F, kZoomMax = 1e4F, kElevationMax = 90, kTurn = 360;

bool is_of_kind(const ViewEvent& event, ViewEventKind kind) { return event.kind == static_cast<int32_t>(kind); }

bool replaces(const ViewEvent& later, const ViewEvent& earlier) {
  return is_of_kind(later, ViewEventKind::move) && is_of_kind(earlier, ViewEventKind::move) &&
         later.viewer == earlier.viewer && later.buttons == earlier.buttons && later.modifiers == earlier.modifiers;
}

} // namespace

void ViewState::add(const ViewEvent& event) {
  const bool is_of_keys = is_of_kind(event, ViewEventKind::key_down) || is_of_kind(event, ViewEventKind::key_up);
  if (!is_of_keys) {
    has_pointer = !is_of_kind(event, ViewEventKind::leave);
    pointer[0] = event.x;
    pointer[1] = event.y;
    pointer_changed = true;
  }
  if (!events.empty() && replaces(event, events.back())) {
    const ViewEvent before = events.back();
    events.back() = event;
    events.back().dx += before.dx;
    events.back().dy += before.dy;
    return;
  }
  if (events.size() == kEventsMax) {
    const auto move = std::find_if(events.begin(), events.end(),
                                   [](const ViewEvent& old) { return is_of_kind(old, ViewEventKind::move); });
    events.erase(move == events.end() ? events.begin() : move);
    ++events_lost;
  }
  events.push_back(event);
}

// A point of the picture `p` pixels from its middle shows the point `center + p / zoom` of the scene, along the
// picture's own axes.
void ViewState::apply(const CameraChange& change) {
  camera_changed = true;
  const auto shift = [this](float right, float down) {
    const ViewAxes axes = axes_of(camera);
    for (int axis = 0; axis < 3; ++axis) camera.center[axis] += right * axes.right[axis] + down * axes.down[axis];
  };
  switch (change.op) {
    case CameraChange::Op::reset: camera = ViewCamera(); return;
    case CameraChange::Op::pan: return shift(-change.dx / camera.zoom, -change.dy / camera.zoom);
    case CameraChange::Op::zoom: {
      const float zoom = std::clamp(camera.zoom * change.factor, kZoomMin, kZoomMax);
      const float nearer = 1 / camera.zoom - 1 / zoom;
      shift(change.anchor[0] * nearer, change.anchor[1] * nearer);
      camera.zoom = zoom;
      return;
    }
    case CameraChange::Op::orbit:
      camera.angles[0] = std::remainder(camera.angles[0] + change.dx, kTurn);
      camera.angles[1] = std::clamp(camera.angles[1] + change.dy, -kElevationMax, kElevationMax);
      return;
  }
}

void ViewState::apply(const LookChange& change) {
  look_changed = true;
  if (change.has_low) look.low = change.look.low;
  if (change.has_high) look.high = change.look.high;
  if (change.has_gamma) look.gamma = change.look.gamma;
  if (change.has_opacity) look.opacity = change.look.opacity;
}

void ViewState::apply(const DimsChange& change) {
  dims_changed = true;
  if (change.axis >= 0) dims.steps[change.axis] = change.step;
  if (change.shown > 0) dims.shown = change.shown;
  if (change.level >= 0) dims.level = change.level;
}

} // namespace millrace::viewer
