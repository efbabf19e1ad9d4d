// Computes the places of a composition's layers on its canvas: rectangles, from a layout's name and numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace::handlers {

// overlay: each over the whole canvas, or at its place. grid, row, column: side by side. inset: the first over the
// whole canvas, the others small in a corner of it.
enum class LayerLayout { overlay, grid, row, column, inset };
enum class Corner { top_left, top_right, bottom_left, bottom_right };

// A length in pixels, or in hundredths of the canvas's side.
struct Length {
  double value = 0;
  bool percent = false;
};
// The place of one layer; a width of 0 stands for the layer's own size.
struct LayerPlace {
  Length x, y, width, height;
};
// "x,y" or "x,y,WIDTHxHEIGHT" for each layer, with ";" between them; numbers are pixels or end in "%". An empty entry
// fills the canvas. Throws std::invalid_argument with the invalid entry.
std::vector<LayerPlace> parse_places(std::string_view text);

struct LayoutSettings {
  LayerLayout layout = LayerLayout::grid;
  uint32_t columns = 0; // columns of a grid; 0: as many as make it square
  uint32_t gap = 0;     // between cells, and around insets
  double scale = 0.3;   // size of insets, as a part of the canvas
  Corner corner = Corner::bottom_right;
  std::vector<LayerPlace> places; // places of an overlay's layers
};

struct Extent {
  uint32_t width = 0, height = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};
// The size of the canvas on which the first layer keeps its size. `count` is at least 1.
Extent natural_canvas(const LayoutSettings& settings, uint32_t count, Extent first);

// A rectangle on the canvas; it may lie partly or wholly outside.
struct LayerCell {
  int64_t x = 0, y = 0;
  Extent size; // 0 x 0: the layer's own
  friend bool operator==(const LayerCell&, const LayerCell&) = default;
};
// One cell for each layer. Throws std::invalid_argument if the canvas has no room for them.
std::vector<LayerCell> place_layers(const LayoutSettings& settings, uint32_t count, Extent canvas);

// How a picture fills a rectangle of another shape.
enum class Fit { contain, cover, stretch };

// The part of a picture, and the rectangle of the canvas that it is scaled to.
struct FittedLayer {
  uint32_t part_x = 0, part_y = 0;
  Extent part;
  int64_t x = 0, y = 0;
  Extent size;
};
// contain: the whole picture, in its shape, in the middle of the cell. cover: the middle part of the picture that has
// the cell's shape. stretch: the whole picture over the whole cell.
FittedLayer fit_layer(Extent picture, const LayerCell& cell, Fit fit);

} // namespace millrace::handlers
