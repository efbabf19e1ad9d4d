// Vectors whose elements lie on cache lines of their own.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace millrace::exec {

// Allocates whole cache lines, so that what one thread writes on every tick shares no line with what another thread
// reads or writes on every tick. From the plain heap, what lies beside what is chance, and each shared line costs a
// hand-over about 90 ns more.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr size_t kLine = 64;
  static constexpr size_t bytes(size_t count) { return (count * sizeof(T) + kLine - 1) / kLine * kLine; }
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(bytes(count), std::align_val_t(kLine))); }
  void deallocate(T* memory, size_t count) { ::operator delete(memory, bytes(count), std::align_val_t(kLine)); }
  friend bool operator==(LineAllocator, LineAllocator) { return true; }
};
template <class T>
using LineVector = std::vector<T, LineAllocator<T>>;

} // namespace millrace::exec
