// A flag that is true while the terminal shows a line without its end. The process has one terminal, so any code that
// writes to it next, a signal handler too, clears that line first.
#pragma once

#include <atomic>

namespace millrace {

inline std::atomic<bool> terminal_line_is_open{false};
inline constexpr const char* kClearLine = "\r\x1b[K";

} // namespace millrace
