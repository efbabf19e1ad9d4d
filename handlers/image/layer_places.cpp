// Places layers: in whole numbers for cells, which must meet without a seam, and in doubles for lengths that people
// give as percentages.
#include "handlers/image/layer_places.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>

namespace millrace::handlers {
namespace {

// A place or size beyond this is a typing error; the bound also keeps sums within 64 bits.
constexpr double kLengthMax = 1e6;

// Takes a number with an optional "%" from the front of the text.
bool take_length(std::string_view& text, Length& length) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), length.value);
  if (problem != std::errc() || !(std::abs(length.value) <= kLengthMax)) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  length.percent = text.starts_with('%');
  if (length.percent) text.remove_prefix(1);
  return true;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::string_view trim_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

LayerPlace parse_place(std::string_view text) {
  LayerPlace place;
  std::string_view rest = trim_spaces(text);
  if (rest.empty()) return {{}, {}, {100, true}, {100, true}};
  bool good = take_length(rest, place.x) && take(rest, ',') && take_length(rest, place.y);
  if (good && !rest.empty())
    good = take(rest, ',') && take_length(rest, place.width) && take(rest, 'x') && take_length(rest, place.height) &&
           place.width.value > 0 && place.height.value > 0;
  if (!good || !rest.empty())
    throw std::invalid_argument("the place '" + std::string(trim_spaces(text)) +
                                "' is neither \"x,y\" nor \"x,y,WIDTHxHEIGHT\", such as \"70%,70%,25%x25%\"");
  return place;
}

int64_t pixels_of(const Length& length, uint32_t side) {
  return std::llround(length.percent ? length.value * side / 100 : length.value);
}

uint32_t extent_of(const Length& length, uint32_t side) {
  if (length.value <= 0) return 0;
  return static_cast<uint32_t>(std::max<int64_t>(pixels_of(length, side), 1));
}

struct GridShape {
  uint32_t columns, rows;
};

GridShape grid_shape(const LayoutSettings& settings, uint32_t count) {
  if (settings.layout == LayerLayout::row) return {count, 1};
  if (settings.layout == LayerLayout::column) return {1, count};
  uint32_t columns = settings.columns;
  if (columns == 0)
    while (columns * columns < count) ++columns;
  return {columns, (count + columns - 1) / columns};
}

// The first pixel of cell `index` of `count` along a side; the room without the gaps is divided evenly.
uint32_t cell_edge(uint32_t index, uint32_t count, uint32_t gap, uint32_t side) {
  const uint32_t room = side - gap * (count - 1);
  return static_cast<uint32_t>(uint64_t{room} * index / count) + gap * index;
}

std::vector<LayerCell> place_in_grid(const LayoutSettings& settings, uint32_t count, Extent canvas) {
  const GridShape shape = grid_shape(settings, count);
  const auto fits = [&](uint32_t cells, uint32_t side) { return uint64_t{settings.gap} * (cells - 1) + cells <= side; };
  if (!fits(shape.columns, canvas.width) || !fits(shape.rows, canvas.height))
    throw std::invalid_argument("a canvas of " + std::to_string(canvas.width) + " x " + std::to_string(canvas.height) +
                                " has no room for " + std::to_string(shape.columns) + " x " +
                                std::to_string(shape.rows) + " cells with gaps of " + std::to_string(settings.gap) +
                                " pixels");
  std::vector<LayerCell> cells;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t column = i % shape.columns, row = i / shape.columns;
    const uint32_t left = cell_edge(column, shape.columns, settings.gap, canvas.width);
    const uint32_t top = cell_edge(row, shape.rows, settings.gap, canvas.height);
    const uint32_t right = cell_edge(column + 1, shape.columns, settings.gap, canvas.width) - settings.gap;
    const uint32_t bottom = cell_edge(row + 1, shape.rows, settings.gap, canvas.height) - settings.gap;
    cells.push_back({left, top, {right - left, bottom - top}});
  }
  return cells;
}

// The first fills the canvas; the others are placed from the corner along the vertical side.
std::vector<LayerCell> place_insets(const LayoutSettings& settings, uint32_t count, Extent canvas) {
  const auto scaled = [&](uint32_t side) {
    return static_cast<uint32_t>(std::max(std::llround(settings.scale * side), 1ll));
  };
  const Extent size = {scaled(canvas.width), scaled(canvas.height)};
  const bool right = settings.corner == Corner::top_right || settings.corner == Corner::bottom_right;
  const bool bottom = settings.corner == Corner::bottom_left || settings.corner == Corner::bottom_right;
  const int64_t gap = settings.gap;
  std::vector<LayerCell> cells = {{0, 0, canvas}};
  for (uint32_t i = 1; i < count; ++i) {
    const int64_t along = gap + (int64_t{size.height} + gap) * (i - 1);
    cells.push_back(
        {right ? canvas.width - gap - size.width : gap, bottom ? canvas.height - along - size.height : along, size});
  }
  return cells;
}

} // namespace

std::vector<LayerPlace> parse_places(std::string_view text) {
  std::vector<LayerPlace> places;
  if (trim_spaces(text).empty()) return places;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    places.push_back(parse_place(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return places;
}

Extent natural_canvas(const LayoutSettings& settings, uint32_t count, Extent first) {
  if (settings.layout == LayerLayout::overlay || settings.layout == LayerLayout::inset) return first;
  const GridShape shape = grid_shape(settings, count);
  const uint64_t width = uint64_t{first.width} * shape.columns + uint64_t{settings.gap} * (shape.columns - 1);
  const uint64_t height = uint64_t{first.height} * shape.rows + uint64_t{settings.gap} * (shape.rows - 1);
  if (std::max(width, height) > static_cast<uint64_t>(kLengthMax))
    throw std::invalid_argument("all layers in the first one's size make a canvas of " + std::to_string(width) + " x " +
                                std::to_string(height) + "; give it a width and a height");
  return {static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
}

std::vector<LayerCell> place_layers(const LayoutSettings& settings, uint32_t count, Extent canvas) {
  if (settings.layout == LayerLayout::inset) return place_insets(settings, count, canvas);
  if (settings.layout != LayerLayout::overlay) return place_in_grid(settings, count, canvas);
  std::vector<LayerCell> cells(count, {0, 0, canvas});
  for (uint32_t i = 0; i < std::min<size_t>(count, settings.places.size()); ++i) {
    const LayerPlace& place = settings.places[i];
    cells[i] = {pixels_of(place.x, canvas.width),
                pixels_of(place.y, canvas.height),
                {extent_of(place.width, canvas.width), extent_of(place.height, canvas.height)}};
  }
  return cells;
}

FittedLayer fit_layer(Extent picture, const LayerCell& cell, Fit fit) {
  const Extent size = cell.size.width == 0 ? picture : cell.size;
  FittedLayer fitted = {0, 0, picture, cell.x, cell.y, size};
  const uint64_t across = uint64_t{picture.width} * size.height, down = uint64_t{picture.height} * size.width;
  if (fit == Fit::stretch || across == down) return fitted;
  const auto share = [](uint64_t value, uint64_t part, uint64_t whole) {
    return static_cast<uint32_t>(std::clamp<uint64_t>((2 * value * part + whole) / (2 * whole), 1, value));
  };
  const bool picture_is_wider = across > down;
  if (fit == Fit::contain) {
    Extent& inside = fitted.size;
    (picture_is_wider ? inside.height : inside.width) =
        picture_is_wider ? share(size.height, down, across) : share(size.width, across, down);
    fitted.x += (size.width - inside.width) / 2;
    fitted.y += (size.height - inside.height) / 2;
  } else {
    (picture_is_wider ? fitted.part.width : fitted.part.height) =
        picture_is_wider ? share(picture.width, down, across) : share(picture.height, across, down);
    fitted.part_x = (picture.width - fitted.part.width) / 2;
    fitted.part_y = (picture.height - fitted.part.height) / 2;
  }
  return fitted;
}

} // namespace millrace::handlers
