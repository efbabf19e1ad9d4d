// A caption is a list of pieces: fixed text, and what changes.
#include "handlers/draw/caption.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <stdexcept>

namespace millrace::handlers {

Caption::Caption(std::string_view text) {
  if (text.size() > kTextMax)
    throw std::invalid_argument("the text is longer than " + std::to_string(kTextMax) + " bytes");
  std::string fixed;
  const auto end_fixed = [&] {
    if (!fixed.empty()) pieces_.push_back({Kind::text, fixed});
    fixed.clear();
  };
  while (!text.empty()) {
    if (text[0] != '{') {
      fixed += text[0];
      text.remove_prefix(1);
    } else if (text.starts_with("{{")) {
      fixed += '{';
      text.remove_prefix(2);
    } else if (text.starts_with("{index}") || text.starts_with("{time}")) {
      end_fixed();
      const bool index = text.starts_with("{index}");
      pieces_.push_back({index ? Kind::index : Kind::time, ""});
      text.remove_prefix(index ? 7 : 6);
    } else {
      const std::string_view wrong = text.substr(0, std::min(text.find('}'), text.size() - 1) + 1);
      throw std::invalid_argument("the text has '" + std::string(wrong) +
                                  "', but knows {index}, {time}, and {{ for a brace");
    }
  }
  end_fixed();
}

void Caption::append(std::string_view text) {
  const size_t count = std::min(text.size(), kLineMax - length_);
  std::copy_n(text.begin(), count, line_.begin() + static_cast<ptrdiff_t>(length_));
  length_ += count;
}

std::string_view Caption::line(uint64_t index, int64_t media_time_ns) {
  length_ = 0;
  char number[48];
  const int64_t ms = media_time_ns / 1'000'000;
  for (const Piece& piece : pieces_) {
    if (piece.kind == Kind::text) append(piece.text);
    if (piece.kind == Kind::index) {
      std::snprintf(number, sizeof number, "%" PRIu64, index);
      append(number);
    }
    if (piece.kind == Kind::time) {
      const int64_t positive = ms < 0 ? -ms : ms;
      std::snprintf(number, sizeof number, "%s%" PRId64 ":%02" PRId64 ":%02" PRId64 ".%03" PRId64, ms < 0 ? "-" : "",
                    positive / 3'600'000, positive / 60'000 % 60, positive / 1000 % 60, positive % 1000);
      append(number);
    }
  }
  return {line_.data(), length_};
}

} // namespace millrace::handlers
