// Records of view.events: the deeds and wishes of a person who looks from afar, for the handlers that answer.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "millrace/payload/half_floats.h"
#include "millrace/payload/records.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// The kinds of events: values of ViewEvent::kind.
enum class ViewEventKind : int32_t { move = 0, down = 1, up = 2, wheel = 3, key_down = 4, key_up = 5, leave = 6 };

// Something that a person did with a pointer or a keyboard. Fields that an event has not are 0.
struct ViewEvent {
  static constexpr std::string_view kSchema = "millrace.ViewEvent";
  int32_t kind = 0;       // a ViewEventKind
  uint32_t buttons = 0;   // that are held: 1 left, 2 right, 4 middle, as browsers count them
  uint32_t modifiers = 0; // that are held: 1 Shift, 2 Control, 4 Alt, 8 Meta
  uint32_t viewer = 0;    // the page, from 1
  uint32_t seq = 0;       // counts the page's events, from 1
  float x = 0, y = 0;     // in pixels of the picture; the middle of its first pixel is (0.5, 0.5)
  float dx = 0, dy = 0;   // move: since the last event; wheel: how far, in pixels of a page
  uint8_t name[16] = {};  // the key's, as browsers call it: "a", "ArrowLeft"; ends with a zero
  double sent_s = 0;      // when the page sent it, by the page's clock
  static std::vector<mr_field> fields() {
    return {field("kind", &ViewEvent::kind),
            field("buttons", &ViewEvent::buttons),
            field("modifiers", &ViewEvent::modifiers),
            field("viewer", &ViewEvent::viewer),
            field("seq", &ViewEvent::seq),
            field("x", &ViewEvent::x),
            field("y", &ViewEvent::y),
            field("dx", &ViewEvent::dx),
            field("dy", &ViewEvent::dy),
            field("name", &ViewEvent::name),
            field("sent_s", &ViewEvent::sent_s)};
  }
};

// From where a scene is looked at.
struct ViewCamera {
  static constexpr std::string_view kSchema = "millrace.ViewCamera";
  // The ranges that handlers take. A viewer stays within them.
  static constexpr float kPlaceMax = 1e6F; // center and angles, either way: beyond it pixels are no longer apart
  static constexpr float kZoomMin = 1e-4F, kZoomMax = 1e4F;
  float center[3] = {};     // the point in the middle of the picture, in pixels of the scene, from its own middle
  float zoom = 1;           // pixels of the picture for one of the scene
  float angles[3] = {};     // degrees: azimuth, elevation, roll
  float field_of_view = 45; // degrees, from the picture's top to its bottom; 0: without perspective
  uint32_t moving = 0;      // 1: it is on its way, and a coarse picture will do
  static std::vector<mr_field> fields() {
    return {field("center", &ViewCamera::center), field("zoom", &ViewCamera::zoom),
            field("angles", &ViewCamera::angles), field("field_of_view", &ViewCamera::field_of_view),
            field("moving", &ViewCamera::moving)};
  }
};

// The directions of a camera's picture in the scene, each of length 1.
struct ViewAxes {
  float right[3], down[3], forward[3];
};
// Without angles they are x, y and z. A positive azimuth moves what is before the scene's middle to the right, a
// positive elevation moves it down, and a roll turns the picture clockwise.
MR_HOST_DEVICE inline ViewAxes axes_of(const ViewCamera& camera) {
  constexpr double kDegree = 3.14159265358979323846 / 180;
  const double azimuth = camera.angles[0] * kDegree, elevation = camera.angles[1] * kDegree;
  const double roll = camera.angles[2] * kDegree;
  const double right[3] = {std::cos(azimuth), 0, -std::sin(azimuth)};
  const double down[3] = {-std::sin(elevation) * std::sin(azimuth), std::cos(elevation),
                          -std::sin(elevation) * std::cos(azimuth)};
  const double forward[3] = {std::cos(elevation) * std::sin(azimuth), std::sin(elevation),
                             std::cos(elevation) * std::cos(azimuth)};
  ViewAxes axes{};
  for (int axis = 0; axis < 3; ++axis) {
    axes.right[axis] = static_cast<float>(std::cos(roll) * right[axis] - std::sin(roll) * down[axis]);
    axes.down[axis] = static_cast<float>(std::sin(roll) * right[axis] + std::cos(roll) * down[axis]);
    axes.forward[axis] = static_cast<float>(forward[axis]);
  }
  return axes;
}

// How values become colours. A name that is empty and an `iso` of 0 leave the choice to the handler's parameters.
struct ViewLook {
  static constexpr std::string_view kSchema = "millrace.ViewLook";
  // The ranges that handlers take. A viewer stays within them.
  static constexpr float kContrastMax = 1e6F; // low and high, either way
  static constexpr float kGammaMin = 0.01F, kGammaMax = 100;
  float low = 0, high = 1; // the values that are black and white
  float gamma = 1;
  float opacity = 1;                                // 0…1
  float iso = 0;                                    // the level of a surface, 0…1
  float crop_low[3] = {}, crop_high[3] = {1, 1, 1}; // the part of a volume that is shown: x, y, z, each 0…1
  uint8_t mode[16] = {};                            // the way a volume is shown: "maximum"; ends with a zero
  uint8_t map[16] = {};                             // from levels to colours: "fire"; ends with a zero
  static std::vector<mr_field> fields() {
    return {field("low", &ViewLook::low),
            field("high", &ViewLook::high),
            field("gamma", &ViewLook::gamma),
            field("opacity", &ViewLook::opacity),
            field("iso", &ViewLook::iso),
            field("crop_low", &ViewLook::crop_low),
            field("crop_high", &ViewLook::crop_high),
            field("mode", &ViewLook::mode),
            field("map", &ViewLook::map)};
  }
};

// The slice of data of several dimensions that is shown.
struct ViewDims {
  static constexpr std::string_view kSchema = "millrace.ViewDims";
  int32_t steps[8] = {-1, -1, -1, -1, -1, -1, -1, -1}; // the place on each axis; -1: its middle
  int32_t axis = -1;                                   // across which it lies; -1: as the handler's parameter says
  int32_t shown = 2;                                   // dimensions that are shown: 2 or 3
  int32_t level = -1;                                  // resolution: 0 is the finest; -1: by how large it is seen
  static std::vector<mr_field> fields() {
    return {field("steps", &ViewDims::steps), field("axis", &ViewDims::axis), field("shown", &ViewDims::shown),
            field("level", &ViewDims::level)};
  }
};

// The kinds of controls: values of ViewControl::kind.
enum class ViewControlKind : int32_t { choice = 0, number = 1, range = 2 };

// A control that a handler offers to who looks from afar: view.remote shows it on the page, and what is chosen comes
// back as a record of view.events.
struct ViewControl {
  static constexpr std::string_view kSchema = "millrace.ViewControl";
  static constexpr size_t kParts = 128; // a histogram's
  int32_t kind = 0;                     // a ViewControlKind
  uint8_t key[24] = {};                 // the record and its field: "look.mode", "look.contrast"; ends with a zero
  uint8_t label[24] = {};               // for people; ends with a zero
  float low = 0, high = 1;              // the ends of a number or a range
  float step = 0;                       // from one number to the next; 0: as fine as it goes
  float value[2] = {};                  // before anybody chose: a choice's place, a number, both ends of a range
  uint8_t choices[512] = {};            // names, each ends with a zero; an empty one ends the list
  uint32_t histogram[kParts] = {};      // a range's: how many values lie in each equal part from low to high
  static std::vector<mr_field> fields() {
    return {field("kind", &ViewControl::kind),          field("key", &ViewControl::key),
            field("label", &ViewControl::label),        field("low", &ViewControl::low),
            field("high", &ViewControl::high),          field("step", &ViewControl::step),
            field("value", &ViewControl::value),        field("choices", &ViewControl::choices),
            field("histogram", &ViewControl::histogram)};
  }
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
