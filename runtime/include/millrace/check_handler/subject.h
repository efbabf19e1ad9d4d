// The subject of a check, and its verdict.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/testing.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

enum class Verdict { pass, fail, skipped };

struct Finding {
  Verdict verdict = Verdict::pass;
  std::string reason; // the fault, or the reason for skipping; of a pass: the cases that the handler refused in words
};

// Counts the heap allocations of this thread. A program that replaces operator new sets it; it is null elsewhere.
struct AllocationCounter {
  void (*count)(bool on) = nullptr;
  uint64_t (*counted)() = nullptr; // since the program began
};

// A handler and the parameters that it needs to start at all.
struct Subject {
  mr_handler_type type;
  std::vector<Setting> settings;
  AllocationCounter allocations;
};

template <class H>
Subject subject_of(std::vector<Setting> settings = {}) {
  return {v1::detail::Type<H>::table("test.handler", "A handler under test", ""), std::move(settings), {}};
}

struct HandlerCheck {
  const char* name;
  const char* sentence; // true of a handler that passes
  Finding (*run)(const Subject& subject);
};

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
