// Parses shapes in one pass over the words; every error names the shape that it is about.
#include "handlers/draw/shape_text.h"
#include "handlers/trimmed.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>

namespace millrace::handlers {
namespace {

struct Grammar {
  std::string_view word;
  ShapeKind kind;
  size_t points_min, points_max;
  std::string_view expected;
};
constexpr std::array<Grammar, 6> kGrammar = {{
    {"rectangle", ShapeKind::rectangle, 1, 1, "rectangle X,Y WIDTHxHEIGHT"},
    {"circle", ShapeKind::circle, 1, 1, "circle X,Y RADIUS"},
    {"ellipse", ShapeKind::ellipse, 1, 1, "ellipse X,Y RADIUSxRADIUS"},
    {"line", ShapeKind::line, 2, kShapePointsMax, "line X,Y X,Y …"},
    {"arrow", ShapeKind::arrow, 2, 2, "arrow X,Y X,Y"},
    {"polygon", ShapeKind::polygon, 3, kShapePointsMax, "polygon X,Y X,Y X,Y …"},
}};

// Takes the first word off `text`.
std::string_view next_word(std::string_view& text) {
  text = trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(kSpaces));
  text.remove_prefix(word.size());
  return word;
}

std::optional<double> read_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(std::abs(value) <= kShapeLengthMax)) return {};
  return value;
}

std::optional<ShapeLength> read_length(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const auto value = read_number(text);
  if (!value) return {};
  return ShapeLength{*value, percent};
}

// Reads two lengths with a mark between them.
std::optional<ShapePoint> read_pair(std::string_view word, char mark) {
  const size_t at = word.find(mark);
  if (at == std::string_view::npos) return {};
  const auto x = read_length(word.substr(0, at)), y = read_length(word.substr(at + 1));
  if (!x || !y) return {};
  return ShapePoint{*x, *y};
}

// Reads one shape of the text.
class ShapeReader {
 public:
  ShapeReader(size_t number, std::string_view text) : number_(number), text_(text) {}

  Shape read() {
    std::string_view rest = text_;
    const std::string_view name = next_word(rest);
    const auto known = std::find_if(kGrammar.begin(), kGrammar.end(), [&](const Grammar& g) { return g.word == name; });
    if (known == kGrammar.end())
      refuse("there is no shape '" + std::string(name) +
             "'; there are rectangle, circle, ellipse, line, arrow and polygon");
    grammar_ = &*known;
    shape_.kind = grammar_->kind;
    while (!(rest = trimmed(rest)).empty()) read_word(next_word(rest));
    if (shape_.points.size() < grammar_->points_min || (needs_size() && !sized_)) refuse_words("something is missing");
    return std::move(shape_);
  }

 private:
  bool needs_size() const { return grammar_->points_max == 1; }
  bool can_turn() const { return shape_.kind == ShapeKind::rectangle || shape_.kind == ShapeKind::ellipse; }
  bool can_fill() const { return shape_.kind != ShapeKind::line && shape_.kind != ShapeKind::arrow; }

  void read_word(std::string_view word) {
    if (word[0] == '#') {
      shape_.color = parse_color(word);
      if (!shape_.color) refuse("'" + std::string(word) + "' is neither #rrggbb nor #rrggbbaa");
    } else if (word == "filled") {
      if (!can_fill()) refuse("it has no inside to be filled");
      shape_.filled = true;
    } else if (word.starts_with("thickness=")) {
      shape_.thickness = read_number(word.substr(10));
      if (!shape_.thickness || !(*shape_.thickness > 0)) refuse("'" + std::string(word) + "' is no positive number");
    } else if (word.starts_with("angle=")) {
      const auto angle = read_number(word.substr(6));
      if (!angle) refuse("'" + std::string(word) + "' is no number of degrees");
      if (!can_turn()) refuse("only a rectangle or an ellipse has an angle");
      shape_.angle_deg = *angle;
    } else if (shape_.points.size() == 1 && needs_size() && !sized_) {
      read_size(word);
    } else if (const auto point = read_pair(word, ','); point && shape_.points.size() < grammar_->points_max) {
      shape_.points.push_back(*point);
    } else {
      refuse_words("'" + std::string(word) + "' does not belong there");
    }
  }

  void read_size(std::string_view word) {
    std::optional<ShapePoint> size;
    if (shape_.kind == ShapeKind::circle) {
      if (const auto radius = read_length(word)) size = ShapePoint{*radius, *radius};
    } else {
      size = read_pair(word, 'x');
    }
    if (!size || size->x.value < 0 || size->y.value < 0) refuse_words("'" + std::string(word) + "' is no size");
    shape_.size = *size;
    sized_ = true;
  }

  [[noreturn]] void refuse_words(const std::string& what) const {
    refuse(what + "; expected " + std::string(grammar_->expected) + ", then #rrggbb, thickness=N" +
           (can_turn() ? ", angle=N" : "") + (can_fill() ? " or filled" : ""));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw std::invalid_argument("shape " + std::to_string(number_) + " ('" + std::string(text_.substr(0, 80)) +
                                "'): " + what);
  }

  size_t number_;
  std::string_view text_;
  const Grammar* grammar_ = nullptr;
  Shape shape_;
  bool sized_ = false;
};

} // namespace

std::vector<Shape> parse_shapes(std::string_view text) {
  std::vector<Shape> shapes;
  size_t points = 0;
  while (!text.empty()) {
    const size_t end = text.find_first_of(";\n");
    const std::string_view item = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (item.empty()) continue;
    if (shapes.size() == kShapesMax)
      throw std::invalid_argument("there are more than " + std::to_string(kShapesMax) + " shapes");
    shapes.push_back(ShapeReader(shapes.size() + 1, item).read());
    points += shapes.back().points.size();
    if (points > kShapePointsMax)
      throw std::invalid_argument("the shapes have more than " + std::to_string(kShapePointsMax) + " points");
  }
  return shapes;
}

} // namespace millrace::handlers
