// Draws a line of text on a dark plate over any picture that bytes can be written to, for handlers that show their
// measurements.
#pragma once

#include <millrace/handler.h>

#include <string_view>

#include "handlers/draw/glyphs.h"

namespace millrace::handlers {

// True if a line can be drawn: on interleaved 8-bit formats, and on the luma of nv12 and i420.
bool can_show(Pixel pixel);

// Draws the text with its plate's corner at x, y; negative numbers count from the right or the bottom edge. Clipped to
// the picture.
void draw_on_plate(const ImageSpan& picture, const GlyphSet& glyphs, std::string_view text, int64_t x, int64_t y,
                   Color color);

// A member of a handler that hands values on and writes on the pictures among them. It declares the parameters of the
// line. The handler calls configure() and start() from its functions of the same name. Hidden, as ports and parameters
// are.
class __attribute__((visibility("hidden"))) Readout {
 public:
  explicit Readout(Handler& owner);

  // Throws std::invalid_argument for an invalid colour, and for host objects, which have no bytes to hand on.
  void configure(const Format& input) const;
  void start();
  bool wanted() const { return draw_; }
  // Publishes the input's value on the output, in its own memory if the plan allows it.
  ImageSpan pass(Tick& tick, const Input<Any>& input, const Output<Any>& output) const;
  // Draws the text if the value is a picture that can be drawn on and drawing is wanted.
  void show(const ImageSpan& value, std::string_view text) const;

 private:
  Param<bool> draw_;
  Param<int64_t> x_, y_, size_;
  Param<std::string> color_, font_;
  GlyphSet glyphs_;
  Color ink_color_;
};

} // namespace millrace::handlers
