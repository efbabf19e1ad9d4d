// Counts allocations: replaces the global operator new of the command, and with it that of the plugins that it loads.
// This costs one test of a thread-local word for each allocation, which is nothing beside the allocation itself.
#include "cli/count_allocations.h"

#include <cstdlib>
#include <new>

namespace millrace::cli {

namespace {

thread_local bool counting = false;
thread_local uint64_t allocations = 0;

} // namespace

testing::AllocationCounter allocation_counter() {
  return {[](bool on) { counting = on; }, [] { return allocations; }};
}

namespace {

// Null if there is no memory.
void* counted_allocation(size_t bytes, size_t alignment) noexcept {
  if (counting) ++allocations;
  if (bytes == 0) bytes = 1;
  return alignment <= alignof(std::max_align_t)
             ? std::malloc(bytes)
             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* or_throw(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}

} // namespace

} // namespace millrace::cli

// The array forms call these. The nothrow forms are here because AddressSanitizer brings its own, and std::stable_sort
// would free memory from there with the operator delete from here. They are not inlined: if only one of a pair is, the
// compiler reports a mismatch.
__attribute__((noinline)) void* operator new(size_t bytes) {
  return millrace::cli::or_throw(millrace::cli::counted_allocation(bytes, 1));
}
__attribute__((noinline)) void* operator new(size_t bytes, std::align_val_t alignment) {
  return millrace::cli::or_throw(millrace::cli::counted_allocation(bytes, static_cast<size_t>(alignment)));
}
__attribute__((noinline)) void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return millrace::cli::counted_allocation(bytes, 1);
}
__attribute__((noinline)) void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return millrace::cli::counted_allocation(bytes, static_cast<size_t>(alignment));
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
