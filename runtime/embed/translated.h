// Errors of the library as those that an application sees.
#pragma once

#include <utility>

#include "millrace/runtime.h"
#include "observe/error.h"
#include "observe/plain_numbers.h"

namespace millrace::embed {

// Rethrows a Failure of the library as a RuntimeError.
template <class F>
auto translated_alone(F&& function) {
  try {
    return std::forward<F>(function)();
  } catch (const Failure& failure) {
    throw RuntimeError(format_code(failure.error().code), failure.what());
  }
}

// The same for functions that read text or call handlers, with numbers as in the C locale.
template <class F>
auto translated(F&& function) {
  const PlainNumbers numbers;
  return translated_alone(std::forward<F>(function));
}

} // namespace millrace::embed
