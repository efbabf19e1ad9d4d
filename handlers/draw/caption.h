// Text with places for the tick's index and time: cut up once, filled in every tick without allocating.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::handlers {

class Caption {
 public:
  // A picture's line of text; longer ones are refused, so that the filled-in line has a bound too.
  static constexpr size_t kTextMax = 512;
  static constexpr size_t kLineMax = 2048;

  Caption() = default;
  // `{index}`, `{time}`; `{{` is a brace. Throws std::invalid_argument where braces hold anything else, or the text is
  // too long.
  explicit Caption(std::string_view text);

  // The line of this tick; valid until the next call. Time is written as h:mm:ss.mmm. What is beyond kLineMax bytes is
  // cut off.
  std::string_view line(uint64_t index, int64_t media_time_ns);

  enum class Kind { text, index, time };
  struct Piece {
    Kind kind;
    std::string text;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  void append(std::string_view text);

  std::vector<Piece> pieces_;
  std::array<char, kLineMax> line_{};
  size_t length_ = 0;
};

} // namespace millrace::handlers
