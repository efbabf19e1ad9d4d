// Changes of the view; see view_state.h.
#include "plugins/viewer/view_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace millrace::viewer {

namespace {

constexpr float kElevationMax = 90, kTurn = 360;

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
    for (int axis = 0; axis < 3; ++axis) {
      const float place = camera.center[axis] + right * axes.right[axis] + down * axes.down[axis];
      camera.center[axis] = std::clamp(place, -ViewCamera::kPlaceMax, ViewCamera::kPlaceMax);
    }
  };
  switch (change.op) {
    case CameraChange::Op::reset: camera = ViewCamera(); return;
    case CameraChange::Op::pan: return shift(-change.dx / camera.zoom, -change.dy / camera.zoom);
    case CameraChange::Op::zoom: {
      const float zoom = std::clamp(camera.zoom * change.factor, ViewCamera::kZoomMin, ViewCamera::kZoomMax);
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

void ViewState::choose(const ViewChoice& choice) {
  const auto differ = [](const auto& one, const auto& other) { return std::memcmp(&one, &other, sizeof one) != 0; };
  look_changed = look_changed || differ(chosen.look, choice.look);
  dims_changed = dims_changed || differ(chosen.dims, choice.dims);
  chosen = choice;
}

void ViewChoice::apply(const LookChange& change) {
  if (change.resets) *this = ViewChoice{ViewLook(), dims};
  const auto set = [](float& value, bool& is_chosen, const std::optional<float>& to, float least, float most) {
    if (to) value = std::clamp(*to, least, most), is_chosen = true;
  };
  set(look.low, has_contrast, change.low, -ViewLook::kContrastMax, ViewLook::kContrastMax);
  set(look.high, has_contrast, change.high, -ViewLook::kContrastMax, ViewLook::kContrastMax);
  set(look.gamma, has_gamma, change.gamma, ViewLook::kGammaMin, ViewLook::kGammaMax);
  set(look.opacity, has_opacity, change.opacity, 0, 1);
  look.iso = std::clamp(change.iso.value_or(look.iso), 0.0F, 1.0F);
  for (size_t axis = 0; axis < change.crop.size(); ++axis) {
    if (!change.crop[axis]) continue;
    look.crop_low[axis] = (*change.crop[axis])[0];
    look.crop_high[axis] = (*change.crop[axis])[1];
    has_crop[axis] = true;
  }
  const auto set_name = [](uint8_t(&name)[16], const std::optional<std::string>& to) {
    if (!to) return;
    std::fill(std::begin(name), std::end(name), uint8_t{0});
    std::copy(to->begin(), to->end(), name);
  };
  set_name(look.mode, change.mode);
  set_name(look.map, change.map);
}

void ViewChoice::apply(const DimsChange& change, size_t axis) {
  dims.axis = change.axis.value_or(dims.axis);
  if (change.step) dims.steps[change.step_axis ? static_cast<size_t>(*change.step_axis) : axis] = *change.step;
  dims.shown = change.shown.value_or(dims.shown);
  dims.level = change.level.value_or(dims.level);
}

} // namespace millrace::viewer
