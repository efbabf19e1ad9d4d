// The numbers of a picture, from a camera, a look and the handler's parameters. For host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "millrace/payload/view.h"
#include "plugins/volume/contrast.h"
#include "plugins/volume/march.h"

namespace millrace::volume {

// The parameters, where the look does not stand in for them.
struct Wanted {
  uint32_t width, height; // the picture's
  Mode mode;
  float iso; // a level
  float step;
};

// Sets all but the colours. ViewLook's low and high are parts of the volume's first contrast, its crop parts of the
// volume. While the camera moves, every second pixel of every second row is computed, and enlarged.
MR_HOST_DEVICE inline void set_sight(Sight& sight, const Wanted& wanted, const Contrast& contrast, Vector size,
                                     const ViewCamera& camera, const ViewLook& look) {
  const float range = contrast.high - contrast.low, low = contrast.low + look.low * range;
  const float high = contrast.low + look.high * range;
  sight.rays = Rays(camera, wanted.width, wanted.height, size);
  sight.crop.low = {look.crop_low[0] * size.x, look.crop_low[1] * size.y, look.crop_low[2] * size.z};
  sight.crop.high = {look.crop_high[0] * size.x, look.crop_high[1] * size.y, look.crop_high[2] * size.z};
  sight.width = wanted.width;
  sight.height = wanted.height;
  sight.coarse = camera.moving != 0 ? 2 : 1;
  sight.shading.mode = wanted.mode;
  sight.shading.low = low;
  sight.shading.per_value = 1 / fmaxf(high - low, 1e-20F);
  sight.shading.gamma = look.gamma;
  sight.shading.opacity = look.opacity;
  sight.shading.iso = wanted.iso;
  sight.shading.step = wanted.step;
}

} // namespace millrace::volume
