// Numbers with a decimal point on one thread, whatever locale the process has.
#pragma once

#include <locale.h>

namespace millrace {

// While it lives, C functions of this thread (strtod, printf and what libraries build on them) read and write numbers
// as in the C locale. A host program or a plugin may have set another one with setlocale(), or may do so meanwhile:
// FFmpeg then refuses "23.4". Threads of the runtime have it for their whole life, a host's thread while it is in a
// function of the runtime.
//
// All threads share one locale, which is made when the first of them needs it. Language, letters and times are those
// that the process had then. glibc 2.36 loses some bytes for each locale that it makes while LOCPATH is set.
//
// The runtime's own conversions need none of this (millrace/read_number.h, fmt, to_chars).
class PlainNumbers {
 public:
  PlainNumbers();
  ~PlainNumbers();
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  locale_t before_ = nullptr; // null: the system could not make a locale, and nothing was changed
};

} // namespace millrace
