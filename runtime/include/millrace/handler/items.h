// The items of one call: ticks that a handler works on together.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "millrace/handler/tick.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// One to `items(max)` firings that a body takes in one call. They may be of different streams and are in their order
// within each. Each has an index, a time and outputs of its own. Valid until the call returns; no item can be deferred.
class Items {
 public:
  Items(mr_tick* const* raw, uint32_t count) : raw_(raw), count_(count) {
    for (uint32_t i = 0; i < count; ++i) new (&ticks_[i]) Tick(*raw[i]);
  }
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;

  uint32_t size() const { return count_; }
  Tick& operator[](uint32_t index) { return *at(index); }
  const Tick& operator[](uint32_t index) const { return *at(index); }
  Tick* begin() { return at(0); }
  Tick* end() { return at(0) + count_; }
  const Tick* begin() const { return at(0); }
  const Tick* end() const { return at(0) + count_; }

  mr_tick* const* raw() const { return raw_; }
  const mr_host& host() const { return *raw_[0]->host; }

 private:
  // Room for ticks that are made only for the items that are there.
  union Place {
    Place() {}
    Tick tick;
  };
  static_assert(sizeof(Place) == sizeof(Tick));
  Tick* at(uint32_t index) { return std::launder(&ticks_[index].tick); }
  const Tick* at(uint32_t index) const { return std::launder(&ticks_[index].tick); }

  mr_tick* const* raw_;
  uint32_t count_;
  Place ticks_[MR_ITEMS_MAX];
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
