// Cuts the bytes of a connection into lines, and holds no more than one message and what was read with it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::serve {

class Lines {
 public:
  explicit Lines(size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  // Call it when next() has nothing: so the bytes of one call are all that is held beyond a line.
  void add(std::string_view bytes);

  struct Line {
    std::string text;
    bool too_long = false; // the text is dropped up to the line's end
  };
  // The next whole line without its end, or one that is found to be too long; nothing: more bytes are needed.
  std::optional<Line> next();
  // No more bytes come. True if a line was begun that has no end; it is dropped.
  bool end();

 private:
  const size_t line_bytes_max_;
  std::string bytes_;
  size_t begin_ = 0;  // the lines before it were given
  size_t looked_ = 0; // there is no line end between `begin_` and this
  bool skips_ = false;
};

} // namespace millrace::serve
