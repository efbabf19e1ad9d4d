// Text with places for values that change: the tick's index and time, the time of day, numbers from records. It is
// parsed once and filled in on every tick without allocating.
#pragma once

#include <millrace/handler.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/gpu/glyph_sheet.h"

namespace millrace::handlers {

// An input whose records a caption may show.
struct CaptionSource {
  const char* name;
  bool connected;
  const mr_record_type* type; // null: only the number of records is known
};

class Caption {
 public:
  // The longest text. Longer ones are refused, so that the filled-in line has a bound too.
  static constexpr size_t kTextMax = 512;
  static constexpr size_t kLineMax = 2048;

  Caption() = default;
  // `{index}`, `{time}`, `{clock}` and `{utc}` with a form for strftime after a colon, `{NAME.count}` and
  // `{NAME.FIELD}` of the sources; `{{` is a brace. Throws std::invalid_argument if braces hold anything else or if the
  // text is too long.
  explicit Caption(std::string_view text, std::span<const CaptionSource> sources = {});

  // True if the text shows the time of day, which differs from run to run.
  static bool shows_clock(std::string_view text);

  // The line of this tick; valid until the next call. Media time is written as h:mm:ss.mmm. `records` has one entry per
  // source, in their order. The line is cut off at kLineMax bytes.
  std::string_view line(uint64_t index, int64_t media_time_ns, std::span<const draw::LineRecords> records = {},
                        std::time_t now = 0);

  enum class Kind { text, index, time, local_clock, utc_clock, value };
  struct Piece {
    Kind kind;
    std::string text; // fixed text, or the strftime form of a clock
    uint32_t value;   // index into values()
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<draw::ValuePlace>& values() const { return values_; }

 private:
  void append(std::string_view text);
  void append_clock(const Piece& piece, std::time_t now);
  void append_value(const draw::ValuePlace& place, std::span<const draw::LineRecords> records);
  void add_place(std::string_view name, std::string_view text, std::span<const CaptionSource> sources);
  bool add_value(std::string_view name, std::span<const CaptionSource> sources);

  std::vector<Piece> pieces_;
  std::vector<draw::ValuePlace> values_;
  std::array<char, kLineMax> line_{};
  size_t length_ = 0;
};

} // namespace millrace::handlers
