// Where the layers of a composition lie on its canvas: rectangles, from a layout's name and numbers.
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
// Where one layer lies; a width of 0 stands for the layer's own size.
struct LayerPlace {
  Length x, y, width, height;
};
// "x,y" or "x,y,WIDTHxHEIGHT" for each layer, with ";" between them; numbers are pixels or end in "%". An empty one
// fills the canvas. Throws std::invalid_argument with the entry that is none.
std::vector<LayerPlace> parse_places(std::string_view text);

struct LayoutSettings {
  LayerLayout layout = LayerLayout::grid;
  uint32_t columns = 0; // of a grid; 0: as many as make it square
  uint32_t gap = 0;     // between cells, and around insets
  double scale = 0.3;   // of insets, as a part of the canvas
  Corner corner = Corner::bottom_right;
  std::vector<LayerPlace> places; // of an overlay
};

struct Extent {
  uint32_t width = 0, height = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};
// The canvas on which each layer has the first one's size. `count` at least 1.
Extent natural_canvas(const LayoutSettings& settings, uint32_t count, Extent first);

// A rectangle of the canvas; it may lie partly or wholly outside.
struct LayerCell {
  int64_t x = 0, y = 0;
  Extent size; // 0 x 0: the layer's own
  friend bool operator==(const LayerCell&, const LayerCell&) = default;
};
// One for each layer; throws std::invalid_argument where the canvas has no room for them.
std::vector<LayerCell> place_layers(const LayoutSettings& settings, uint32_t count, Extent canvas);

// How a picture fills a rectangle of another shape.
enum class Fit { contain, cover, stretch };

// Which part of a picture is scaled to which rectangle of the canvas.
struct FittedLayer {
  uint32_t part_x = 0, part_y = 0;
  Extent part;
  int64_t x = 0, y = 0;
  Extent size;
};
// contain: all of the picture, in its shape, in the middle of the cell. cover: the middle of the picture that has the
// cell's shape. stretch: all of it over all of the cell.
FittedLayer fit_layer(Extent picture, const LayerCell& cell, Fit fit);

} // namespace millrace::handlers
