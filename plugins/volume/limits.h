// The ranges of a viewer's numbers. The host refuses a number beyond them; a device, which cannot ask anybody, takes
// the nearest one within.
#pragma once

#include <cmath>

#include "millrace/payload/view.h"

namespace millrace::volume {

struct Limits {
  float least, most;

  MR_HOST_DEVICE bool have(float number) const { return number >= least && number <= most; }
  // The least for what is no number.
  MR_HOST_DEVICE float nearest(float number) const { return fminf(fmaxf(number, least), most); }
};

// Functions, because device code cannot refer to constants of a class type.
MR_HOST_DEVICE constexpr Limits place_limits() { return {-ViewCamera::kPlaceMax, ViewCamera::kPlaceMax}; }
MR_HOST_DEVICE constexpr Limits zoom_limits() { return {ViewCamera::kZoomMin, ViewCamera::kZoomMax}; }
MR_HOST_DEVICE constexpr Limits view_limits() { return {0, 170}; } // degrees
MR_HOST_DEVICE constexpr Limits contrast_limits() { return {-ViewLook::kContrastMax, ViewLook::kContrastMax}; }
MR_HOST_DEVICE constexpr Limits gamma_limits() { return {ViewLook::kGammaMin, ViewLook::kGammaMax}; }
MR_HOST_DEVICE constexpr Limits part_limits() { return {0, 1}; }

MR_HOST_DEVICE inline ViewCamera nearest_sound(ViewCamera camera) {
  for (float& place : camera.center) place = place_limits().nearest(place);
  for (float& angle : camera.angles) angle = place_limits().nearest(angle);
  camera.zoom = zoom_limits().nearest(camera.zoom);
  camera.field_of_view = view_limits().nearest(camera.field_of_view);
  return camera;
}

MR_HOST_DEVICE inline ViewLook nearest_sound(ViewLook look) {
  look.low = contrast_limits().nearest(look.low);
  look.high = contrast_limits().nearest(look.high);
  look.gamma = gamma_limits().nearest(look.gamma);
  look.opacity = part_limits().nearest(look.opacity);
  look.iso = part_limits().nearest(look.iso);
  for (int axis = 0; axis < 3; ++axis) {
    look.crop_low[axis] = part_limits().nearest(look.crop_low[axis]);
    look.crop_high[axis] = Limits{look.crop_low[axis], 1}.nearest(look.crop_high[axis]);
  }
  return look;
}

} // namespace millrace::volume
