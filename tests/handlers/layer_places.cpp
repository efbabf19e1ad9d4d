// Layouts: where layers lie, how they are fitted, and what is refused.
#include "handlers/image/layer_places.h"

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>
#include <string>

using namespace millrace::handlers;

namespace {

LayoutSettings settings_of(LayerLayout layout) {
  LayoutSettings settings;
  settings.layout = layout;
  return settings;
}

std::string refusal_of(const char* places) {
  try {
    parse_places(places);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("nine layers make a grid of three by three, and five one with an empty place") {
  const LayoutSettings grid = settings_of(LayerLayout::grid);
  CHECK(natural_canvas(grid, 9, {640, 360}) == Extent{1920, 1080});
  const std::vector<LayerCell> nine = place_layers(grid, 9, {1920, 1080});
  REQUIRE(nine.size() == 9);
  CHECK(nine[0] == LayerCell{0, 0, {640, 360}});
  CHECK(nine[5] == LayerCell{1280, 360, {640, 360}});
  CHECK(nine[8] == LayerCell{1280, 720, {640, 360}});
  CHECK(natural_canvas(grid, 5, {10, 10}) == Extent{30, 20});
  CHECK(place_layers(grid, 5, {30, 20})[4] == LayerCell{10, 10, {10, 10}});
}

TEST_CASE("cells fill any canvas without overlap, and are as far apart as the gap says") {
  std::mt19937 random(61);
  for (int round = 0; round < 300; ++round) {
    LayoutSettings grid = settings_of(LayerLayout::grid);
    grid.columns = static_cast<uint32_t>(random() % 6 + 1);
    grid.gap = static_cast<uint32_t>(random() % 4);
    const uint32_t rows = static_cast<uint32_t>(random() % 5 + 1), count = grid.columns * rows;
    const Extent canvas = {static_cast<uint32_t>(random() % 200 + 24), static_cast<uint32_t>(random() % 200 + 20)};
    const std::vector<LayerCell> cells = place_layers(grid, count, canvas);
    INFO("round " << round);
    for (uint32_t i = 0; i < count; ++i) {
      const bool last_column = i % grid.columns == grid.columns - 1, last_row = i / grid.columns == rows - 1;
      const int64_t right = cells[i].x + cells[i].size.width, bottom = cells[i].y + cells[i].size.height;
      REQUIRE(cells[i].size.width > 0);
      REQUIRE(cells[i].size.height > 0);
      REQUIRE(right + (last_column ? 0 : grid.gap) == (last_column ? canvas.width : cells[i + 1].x));
      REQUIRE(bottom + (last_row ? 0 : grid.gap) == (last_row ? canvas.height : cells[i + grid.columns].y));
    }
  }
}

TEST_CASE("a row and a column are grids of one row and one column") {
  CHECK(natural_canvas(settings_of(LayerLayout::row), 3, {40, 30}) == Extent{120, 30});
  CHECK(place_layers(settings_of(LayerLayout::row), 3, {120, 30})[2] == LayerCell{80, 0, {40, 30}});
  CHECK(natural_canvas(settings_of(LayerLayout::column), 3, {40, 30}) == Extent{40, 90});
  CHECK(place_layers(settings_of(LayerLayout::column), 3, {40, 90})[2] == LayerCell{0, 60, {40, 30}});
}

TEST_CASE("insets go from their corner along the upright side") {
  LayoutSettings inset = settings_of(LayerLayout::inset);
  inset.scale = 0.25;
  inset.gap = 10;
  CHECK(place_layers(inset, 2, {400, 200})[0] == LayerCell{0, 0, {400, 200}});
  CHECK(place_layers(inset, 2, {400, 200})[1] == LayerCell{290, 140, {100, 50}});
  CHECK(place_layers(inset, 3, {400, 200})[2] == LayerCell{290, 80, {100, 50}});
  inset.corner = Corner::top_left;
  CHECK(place_layers(inset, 3, {400, 200})[2] == LayerCell{10, 70, {100, 50}});
  CHECK(natural_canvas(inset, 3, {400, 200}) == Extent{400, 200});
}

TEST_CASE("places are pixels or hundredths of the canvas, with or without a size") {
  LayoutSettings overlay = settings_of(LayerLayout::overlay);
  overlay.places = parse_places(" ; 70%,-5 ; 10,50%,25%x40");
  REQUIRE(overlay.places.size() == 3);
  const std::vector<LayerCell> cells = place_layers(overlay, 4, {200, 100});
  CHECK(cells[0] == LayerCell{0, 0, {200, 100}});
  CHECK(cells[1] == LayerCell{140, -5, {0, 0}});
  CHECK(cells[2] == LayerCell{10, 50, {50, 40}});
  CHECK(cells[3] == LayerCell{0, 0, {200, 100}});
  CHECK(parse_places("").empty());
}

TEST_CASE("a place that is none is refused with what it would look like") {
  CHECK(refusal_of("1,2;3") ==
        "the place '3' is neither \"x,y\" nor \"x,y,WIDTHxHEIGHT\", such as \"70%,70%,25%x25%\"");
  for (const char* wrong : {"x", "1;2", "1,", "1,2,", "1,2,3", "1,2,3x", "1,2,0x5", "1,2,5x-1", "1,2,3x4,5", "1 ,2",
                            "nan,1", "1e9,1", "1,2%%"})
    CHECK(refusal_of(wrong) != "");
}

TEST_CASE("a canvas without room for its cells is refused, and so is one that is too large") {
  LayoutSettings grid = settings_of(LayerLayout::grid);
  grid.gap = 8;
  CHECK_THROWS_WITH(place_layers(grid, 9, {18, 600}),
                    "a canvas of 18 x 600 has no room for 3 x 3 cells with gaps of 8 pixels");
  CHECK(place_layers(grid, 9, {19, 600})[1].size.width == 1);
  CHECK_THROWS_WITH(natural_canvas(settings_of(LayerLayout::row), 64, {65536, 2}),
                    doctest::Contains("make a canvas of 4194304 x 2"));
}

TEST_CASE("contain shows all of a picture, cover all of its cell, and both keep its shape") {
  const LayerCell cell = {10, 20, {100, 100}};
  const FittedLayer contained = fit_layer({200, 100}, cell, Fit::contain);
  CHECK(contained.part == Extent{200, 100});
  CHECK(contained.size == Extent{100, 50});
  CHECK(contained.x == 10);
  CHECK(contained.y == 45);
  const FittedLayer covering = fit_layer({200, 100}, cell, Fit::cover);
  CHECK(covering.part == Extent{100, 100});
  CHECK(covering.part_x == 50);
  CHECK(covering.part_y == 0);
  CHECK(covering.size == Extent{100, 100});
  CHECK(fit_layer({200, 100}, cell, Fit::stretch).part == Extent{200, 100});
  CHECK(fit_layer({200, 100}, cell, Fit::stretch).size == Extent{100, 100});
  CHECK(fit_layer({33, 44}, {5, 6, {}}, Fit::contain).size == Extent{33, 44});
}

TEST_CASE("no shape is fitted to nothing, however narrow") {
  for (Fit fit : {Fit::contain, Fit::cover, Fit::stretch})
    for (const auto& [picture, cell] : {std::pair{Extent{65536, 1}, Extent{1, 65536}},
                                        {Extent{1, 65536}, Extent{65536, 1}},
                                        {Extent{1, 1}, Extent{65536, 65536}}}) {
      const FittedLayer fitted = fit_layer(picture, {0, 0, cell}, fit);
      CHECK(fitted.part.width > 0);
      CHECK(fitted.part.height > 0);
      CHECK(fitted.size.width > 0);
      CHECK(fitted.size.height > 0);
      CHECK(fitted.part_x + fitted.part.width <= picture.width);
      CHECK(fitted.part_y + fitted.part.height <= picture.height);
      CHECK(fitted.size.width <= cell.width);
      CHECK(fitted.size.height <= cell.height);
    }
}
