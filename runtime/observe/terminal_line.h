// Whether the terminal's line is not ended yet. The process has one terminal, and who writes to it next, also a signal
// handler, ends that line first.
#pragma once

#include <atomic>

namespace millrace {

inline std::atomic<bool> terminal_line_is_open{false};
inline constexpr const char* kClearLine = "\r\x1b[K";

} // namespace millrace
