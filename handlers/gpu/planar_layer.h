// One layer of image.composite on a canvas of nv12, i420 or p010, as a kernel takes it, and the 2 × 2 pixels of such a
// canvas that a thread makes. It compiles for the CPU too, so that tests can check it.
//
// Rule. A layer is scaled in its own format, and then laid over the canvas in 4:4:4, by the arithmetic of
// canvas_numbers.h and in the same order as in handlers/image/compose_planes.h, so the bytes are equal. The exceptions
// are those of resample_math.h: a scaled number may differ by 1. All layers are laid in one launch, because chroma is
// the mean of what they leave in each pixel.
#pragma once

#include <cstdint>

#include "handlers/gpu/canvas_numbers.h"
#include "handlers/gpu/layer.h"
#include "handlers/gpu/samples.h"

namespace millrace::handlers::gpu {

struct PlanarLayer {
  Layer layer; // as for a canvas of rgb8
  LayerNumbers numbers;
  bool has_planes;
};

// `opacity` is that of this layer.
inline PlanarLayer planar_layer_of(const DevicePicture& picture, const LayerCell& cell, uint8_t opacity,
                                   const ComposeSettings& settings, const mr_image& canvas) {
  const auto pixel = static_cast<Pixel>(picture.image.format);
  const FittedLayer fitted =
      at_whole_chroma(fit_layer({picture.image.width, picture.image.height}, cell, settings.fit), pixel);
  return {layer_of(picture, fitted, BlendMode::over, opacity, settings, Pixel::rgb8),
          layer_numbers(picture.image, canvas), halves_chroma(pixel)};
}

// ---- scaling planes -------------------------------------------------------------------------------------------------

// The axis of a chroma plane, for the axis of its picture.
MR_BOTH inline ResizeAxis halved_axis(ResizeAxis axis) {
  axis.source = (axis.source + 1) / 2;
  axis.target = (axis.target + 1) / 2;
  return axis;
}

// Reads the numbers of one kind in a plane from the layer's part on: luma, Cb or Cr, of 8 or 10 bits.
struct NumberPlane {
  const uint8_t* data;
  uint32_t stride, step; // bytes from row to row and from number to number
  bool is_wide;

  MR_BOTH uint32_t at(uint32_t x, uint32_t y) const {
    const uint8_t* number = data + size_t{y} * stride + size_t{x} * step;
    return is_wide ? ten_bits_at(number) : *number;
  }
};
MR_BOTH inline NumberPlane luma_plane(const Layer& layer) {
  const bool is_wide = layer.layout == SampleLayout::p010;
  const uint32_t step = is_wide ? 2 : 1;
  return {layer.planes[0] + size_t{layer.part_y} * layer.strides[0] + size_t{layer.part_x} * step, layer.strides[0],
          step, is_wide};
}
// `which` is 0 for Cb and 1 for Cr.
MR_BOTH inline NumberPlane chroma_plane(const Layer& layer, uint32_t which) {
  const bool is_wide = layer.layout == SampleLayout::p010, own = layer.layout == SampleLayout::i420;
  const uint32_t bytes = is_wide ? 2 : 1, step = own ? bytes : 2 * bytes, plane = own ? 1 + which : 1;
  return {layer.planes[plane] + size_t{layer.part_y / 2} * layer.strides[plane] + size_t{layer.part_x / 2} * step +
              (own ? 0 : which * bytes),
          layer.strides[plane], step, is_wide};
}

MR_BOTH inline uint32_t bilinear_number(const NumberPlane& plane, const BilinearTap& column, const BilinearTap& row,
                                        uint32_t right, uint32_t below) {
  const uint32_t a = plane.at(column.first, row.first), b = plane.at(column.first, below);
  const uint32_t c = plane.at(right, row.first), d = plane.at(right, below);
  if (plane.is_wide) {
    const auto mixed = [&](uint32_t first, uint32_t second) {
      return mixed_sample(static_cast<uint16_t>(first << kBelowTenBits), static_cast<uint16_t>(second << kBelowTenBits),
                          row.weight);
    };
    return blended_sample16(mixed(a, b), mixed(c, d), column.weight) >> kBelowTenBits;
  }
  const auto mixed = [&](uint32_t first, uint32_t second) {
    return mixed_sample(static_cast<uint8_t>(first), static_cast<uint8_t>(second), row.weight);
  };
  return blended_sample(mixed(a, b), mixed(c, d), column.weight);
}

// Sums over rows first and then over columns, in the CPU's order.
MR_BOTH inline uint32_t area_number(const NumberPlane& plane, const AreaTaps& columns, const AreaTaps& rows) {
  float sum = 0;
  for (uint32_t column = columns.first; column <= columns.last; ++column) {
    float down = 0;
    for (uint32_t row = rows.first; row <= rows.last; ++row)
      down += rounded_product(static_cast<float>(plane.at(column, row)), rows.weight(row));
    sum += rounded_product(down, columns.weight(column));
  }
  // Times 64 is exact, so the CPU's sums of numbers at the top of 16 bits are these.
  if (plane.is_wide) return rounded_sample16(sum * 64) >> kBelowTenBits;
  const float rounded = sum + 0.5f;
  return static_cast<uint32_t>(rounded < 255 ? rounded : 255.0f);
}

// Number x, y of a plane at the layer's size on the canvas.
MR_BOTH inline uint32_t scaled_number(LayerScaling scaling, const NumberPlane& plane, const ResizeAxis& columns,
                                      const ResizeAxis& rows, uint32_t x, uint32_t y) {
  switch (scaling) {
    case LayerScaling::nearest: return plane.at(nearest_source(columns, x), nearest_source(rows, y));
    case LayerScaling::bilinear: {
      const BilinearTap column = bilinear_tap(columns, x), row = bilinear_tap(rows, y);
      return bilinear_number(plane, column, row, smaller(column.first + 1, columns.source - 1),
                             smaller(row.first + 1, rows.source - 1));
    }
    case LayerScaling::area: return area_number(plane, area_taps(columns, x), area_taps(rows, y));
    default: return plane.at(x, y);
  }
}

// ---- two by two pixels
// ------------------------------------------------------------------------------------------------

struct PixelBlock {
  Ycbcr16 pixels[4]; // row by row
};

// `weight` is 0…kWeightMax.
MR_BOTH inline void lay_pixel(const Ycbcr16& above, uint32_t weight, Ycbcr16& below) {
  below.y = laid_number(below.y, above.y, weight);
  below.u = laid_number(below.u, above.u, weight);
  below.v = laid_number(below.v, above.v, weight);
}

// Lays the layer over the block that begins at x, y of the canvas.
MR_BOTH inline void lay_block(const PlanarLayer& planar, const CanvasNumbers& canvas, uint32_t x, uint32_t y,
                              PixelBlock& block) {
  const Layer& layer = planar.layer;
  uint32_t chroma_x = UINT32_MAX, chroma_y = UINT32_MAX, u = 0, v = 0; // those that the pixel before had
  MR_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    // Places left of or above the layer wrap and are beyond any layer.
    const uint32_t column = x + i % 2 - static_cast<uint32_t>(layer.left);
    const uint32_t row = y + i / 2 - static_cast<uint32_t>(layer.top);
    if (column >= layer.columns.target || row >= layer.rows.target) continue;
    if (!planar.has_planes) {
      const uint32_t color = scaled_pixel(layer, column, row), alpha = color >> 24;
      const auto channel = [&](uint32_t shift) {
        const auto number = static_cast<int32_t>(color >> shift & 255);
        return layer.premultiplied ? straight16(number, static_cast<int32_t>(alpha)) : number << 4;
      };
      lay_pixel(encoded16(canvas, channel(0), channel(8), channel(16)), alpha * layer.opacity, block.pixels[i]);
      continue;
    }
    const uint32_t luma = scaled_number(layer.scaling, luma_plane(layer), layer.columns, layer.rows, column, row);
    if (column / 2 != chroma_x || row / 2 != chroma_y) {
      chroma_x = column / 2;
      chroma_y = row / 2;
      const ResizeAxis columns = halved_axis(layer.columns), rows = halved_axis(layer.rows);
      u = scaled_number(layer.scaling, chroma_plane(layer, 0), columns, rows, chroma_x, chroma_y);
      v = scaled_number(layer.scaling, chroma_plane(layer, 1), columns, rows, chroma_x, chroma_y);
    }
    lay_pixel(canvas_pixel(planar.numbers, canvas, static_cast<int32_t>(luma), static_cast<int32_t>(u),
                           static_cast<int32_t>(v)),
              255u * layer.opacity, block.pixels[i]);
  }
}

MR_BOTH inline void put_number(uint8_t* row, uint32_t i, uint32_t number, bool is_wide) {
  if (is_wide)
    reinterpret_cast<uint16_t*>(row)[i] = static_cast<uint16_t>(number << kBelowTenBits);
  else
    row[i] = static_cast<uint8_t>(number);
}

// A chroma number's plane, and its place in a row.
struct ChromaPlace {
  uint32_t plane, index;
};
MR_BOTH inline ChromaPlace chroma_place(const DevicePicture& canvas, uint32_t which, uint32_t x) {
  if (canvas.image.plane_count == 3) return {1 + which, x};
  return {1, 2 * x + which};
}

// Stores the numbers of the pixels inside the canvas, and the mean of their chroma.
MR_BOTH inline void store_block(const CanvasNumbers& numbers, const DevicePicture& canvas, uint32_t x, uint32_t y,
                                PixelBlock& block) {
  const bool is_wide = numbers.up == kBelowTenBits;
  Ycbcr16(&pixels)[4] = block.pixels;
  if (x + 1 == canvas.image.width) pixels[1] = pixels[0], pixels[3] = pixels[2];
  if (y + 1 == canvas.image.height) pixels[2] = pixels[0], pixels[3] = pixels[1];
  MR_UNROLL
  for (uint32_t i = 0; i < 4; ++i)
    if (x + i % 2 < canvas.image.width && y + i / 2 < canvas.image.height)
      put_number(row_of(canvas, 0, y + i / 2), x + i % 2, canvas_number(pixels[i].y, numbers.up), is_wide);
  const uint32_t sums[2] = {pixels[0].u + pixels[1].u + pixels[2].u + pixels[3].u,
                            pixels[0].v + pixels[1].v + pixels[2].v + pixels[3].v};
  for (uint32_t which = 0; which < 2; ++which) {
    const ChromaPlace place = chroma_place(canvas, which, x / 2);
    put_number(row_of(canvas, place.plane, y / 2), place.index, mean_number(sums[which], numbers.up), is_wide);
  }
}

// The arguments of a launch: its layers and their canvas.
template <uint32_t kLayersMax>
struct PlanarStack {
  PlanarLayer layers[kLayersMax];
  uint32_t count;
  Ycbcr16 background;
  CanvasNumbers numbers;
};

// Makes the block of the canvas that begins at x, y, which are even and inside.
template <uint32_t kLayersMax>
MR_BOTH void compose_block(const PlanarStack<kLayersMax>& stack, const DevicePicture& canvas, uint32_t x, uint32_t y) {
  PixelBlock block = {{stack.background, stack.background, stack.background, stack.background}};
  for (uint32_t l = 0; l < stack.count; ++l) lay_block(stack.layers[l], stack.numbers, x, y, block);
  store_block(stack.numbers, canvas, x, y, block);
}

} // namespace millrace::handlers::gpu
