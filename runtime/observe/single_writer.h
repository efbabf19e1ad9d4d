// A number that one thread at a time writes and any thread may read while it is being counted.
#pragma once

#include <atomic>

namespace millrace {

// Relaxed loads and stores, no read-modify-write: adding costs what it costs for a plain number. Who writes may change,
// where something else hands over between the two, as the claim of a segment does.
template <class T>
class SingleWriter {
 public:
  SingleWriter() = default;
  // Containers are filled before anybody counts.
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
