// Rings of blocks; see ring.h.
#include "memory/ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "device/host_pages.h"
#include "observe/error.h"

namespace millrace::memory {

namespace {

// The bytes are lost; the addresses stay.
void give_pages_back(uint8_t* data, uint64_t bytes) {
  const uint64_t page = device::round_up_to_pages(1);
  const uint64_t begin = device::round_up_to_pages(reinterpret_cast<uintptr_t>(data));
  const uint64_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

} // namespace

Ring::Ring(const RingOptions& options, std::byte* base, bool host_readable)
    : blocks_(std::make_unique<Block[]>(options.length)),
      records_(options.own_records ? options.length : 0),
      length_(options.length),
      capacity_(options.capacity),
      dynamic_(options.dynamic),
      host_readable_(host_readable),
      lasting_(options.lasting),
      high_water_(options.dynamic ? 0 : options.length) {
  MR_ASSERT(length_ > 0, "a ring has at least one block");
  const uint64_t stride = options.stride ? options.stride : block_bytes(capacity_);
  for (uint32_t i = 0; i < length_; ++i) {
    std::byte* at = base + i * stride;
    Block& block = blocks_[i];
    block.value = reinterpret_cast<mr_value*>(at);
    block.record = options.own_records ? &records_[i] : block.value;
    block.data = reinterpret_cast<uint8_t*>(at + sizeof(mr_value));
    block.ring = this;
  }
}

Ring::~Ring() { retire_all(); }

Block& Ring::next_free() {
  // Lanes of a stateless handler take from one ring: the thread that moves the count from 0 gets the block. Threads
  // that take at the same time may pass by a block that becomes free after they looked at it, so they go round again.
  // There are always as many free blocks as takers, so in each round that fails another thread took or freed a block.
  constexpr uint32_t kRoundsMax = 1000;
  uint32_t at = lasting_ || length_ <= kSearchedMax ? 0 : next_.load(std::memory_order_relaxed);
  for (uint32_t round = 0; round < kRoundsMax; ++round) {
    if (round > 0) std::this_thread::yield();
    for (uint32_t tried = 1; tried <= length_; ++tried) {
      Block& block = blocks_[at];
      at = at + 1 == length_ ? 0 : at + 1;
      uint32_t free = 0;
      if (block.holds.load(std::memory_order_relaxed) != free) continue;
      // Acquire: the last reader's release comes before we write.
      if (!block.holds.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      next_.store(at, std::memory_order_relaxed);
      if ((++taken_ & kCountMask) == 1) count_held();
      return block;
    }
  }
  MR_ASSERT(false, "a ring has no free block: its length was planned too short");
  return blocks_[0];
}

void Ring::count_held() {
  uint32_t held = 0;
  for (uint32_t i = 0; i < length_; ++i) held += blocks_[i].holds.load(std::memory_order_relaxed) > 0;
  if (held > high_water_.load(std::memory_order_relaxed)) high_water_.store(held, std::memory_order_relaxed);
}

void Ring::retire(Block& block) {
  if (block.foreign_release) {
    auto* release = block.foreign_release;
    block.foreign_release = nullptr;
    block.foreign = nullptr;
    release(block.foreign_context);
  }
  if (has_object(block)) {
    mr_object object = block.value->as.object;
    block.value->as.object = {};
    object.release(object.pointer);
  }
  if (lasting_ && dynamic_ && host_readable_) give_pages_back(block.data, capacity_);
}

void count_records(Block& block) {
  uint32_t expected = Block::kUncounted;
  if (block.counted.compare_exchange_strong(expected, Block::kCounting, std::memory_order_acquire)) {
    mr_records& records = block.record->as.records;
    records.count = std::min(records.count, block.value->as.records.count);
    block.record->header.extent_bytes = records.count * records.record_size;
    block.counted.store(Block::kCounted, std::memory_order_release);
  }
  while (block.counted.load(std::memory_order_acquire) != Block::kCounted) std::this_thread::yield();
}

void release(Block* block) {
  if (!block || !block->ring->dynamic()) return;
  // The last holder retires before the count reaches zero, since the producer may take the block right after. Of two
  // that release at the same time, the one that comes second must see that it is the last.
  uint32_t held = block->holds.load(std::memory_order_acquire);
  do {
    MR_ASSERT(held > 0, "a block is released as often as it is held");
    if (held == 1) block->ring->retire(*block); // nobody can add a hold without having one
  } while (!block->holds.compare_exchange_weak(held, held - 1, std::memory_order_acq_rel, std::memory_order_acquire));
}

} // namespace millrace::memory
