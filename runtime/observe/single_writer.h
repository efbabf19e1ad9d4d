// A number that one thread at a time writes while any thread may read it.
#pragma once

#include <atomic>

namespace millrace {

// Uses relaxed loads and stores and no read-modify-write, so adding costs no more than for a plain number. The writing
// thread may change if something else synchronizes the old and the new one, as the claim of a segment does.
template <class T>
class SingleWriter {
 public:
  SingleWriter() = default;
  // For filling containers, before any thread counts.
  SingleWriter(const SingleWriter& other) : value_(other.get()) {}
  SingleWriter& operator=(const SingleWriter& other) { return set(other.get()); }

  T get() const { return value_.load(std::memory_order_relaxed); }
  operator T() const { return get(); }
  SingleWriter& set(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  SingleWriter& operator+=(T more) { return set(static_cast<T>(get() + more)); }
  SingleWriter& operator++() { return *this += 1; }

 private:
  std::atomic<T> value_{};
};

} // namespace millrace
