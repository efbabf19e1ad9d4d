// The memory of one output: a ring of blocks in one domain, laid out by the plan before the first tick.
//
// Problem. A handler asks for memory on every tick. A heap would make that slow, unbounded and different on every
// device; a pool would make it a lock. But the plan knows how long every value lives: until the last reader of its
// tick is done, and ticks in flight are bounded by the window.
//
// Why this way. If all readers of a value end with their tick, its block is a function of the tick, so taking one costs
// an index (static rings). If a value may be held for longer (a queue, `latest`, a decoupled reader, an application
// that pulls), blocks are counted, and the next free one is taken (dynamic rings). Each such holder adds its bound + 1
// to the ring's length, so a block is always free. semantics.md 3.2 and 3.3.
//
// Invariants.
//  - A block is [mr_value, 256 bytes][capacity bytes], self-describing, so that one copy moves both.
//  - take() never blocks and never fails; a ring without a free block is a planning bug and asserts.
//  - The producers of an output take: one thread, or one a lane for different ordinals, or of a dynamic ring any thread
//  that keeps to the count it was planned for. release() is legal from any thread.
//  - Of the free blocks of a dynamic ring the first is taken, so that only as many blocks have pages as are held at one
//  time (rings of more than 64 blocks take turns).
//  - A generation counts how often a block was taken; (block, generation) names a buffer for ever.
//  - Kept copies of a lasting value (semantics.md 3.7) are a static ring whose copy step chooses and counts by itself.
//
// Limits. No pool and no allocator: nothing here grows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "millrace/abi.h"

namespace millrace::memory {

class Ring;

// One buffer's place. `value` and `data` are addresses as the host sees them; the host must not access those of a
// device's block. Its producer writes it on every tick.
struct alignas(64) Block {
  mr_value* value = nullptr;
  // The host's description of the value. It is `value` itself, or a separate record if the host cannot read `value` (on
  // a device whose bodies enqueue) or can read it only too late (in blocks that such a device copies down).
  mr_value* record = nullptr;
  uint8_t* data = nullptr;
  Ring* ring = nullptr;
  std::atomic<uint32_t> holds{0};
  std::atomic<uint32_t> present{1}; // a device's body sets it when it runs; valid after the fence completes
  uint64_t generation = 0;
  bool given = false; // for a block lent to its handler: it already is one tick's value and cannot become another's
  // States of `staged`: whether foreign bytes were copied into the block itself, for copies to devices.
  static constexpr uint32_t kNotStaged = 0, kStaging = 1, kStaged = 2;
  std::atomic<uint32_t> staged{kNotStaged};
  // States of `counted`, for records that a device whose bodies enqueue copies down. Their count arrives with the
  // bytes; the first reader after the fence copies it into `record`.
  static constexpr uint32_t kCounted = 0, kUncounted = 1, kCounting = 2;
  std::atomic<uint32_t> counted{kCounted};
  // Foreign memory that this block stands for; released once, when the last hold ends or the block is reused.
  const void* foreign = nullptr;
  void (*foreign_release)(void*) = nullptr;
  void* foreign_context = nullptr;
};

struct RingOptions {
  uint32_t length = 1;
  bool dynamic = false;
  uint64_t capacity = 0; // bytes after the mr_value
  uint64_t stride = 0;   // bytes from one block to the next; 0: blocks are adjacent
  bool own_records = false;
  bool lasting = false; // a dynamic ring of the host: its values are few and large, and a block has pages while in use
};

// Bytes that a block of this capacity takes in an arena. Blocks begin at page-friendly multiples of 256.
constexpr uint64_t block_bytes(uint64_t capacity) { return sizeof(mr_value) + (capacity + 255) / 256 * 256; }

// Copies the count that came down with the bytes into `record`. To be called after the block's fence completes. Any
// thread.
void count_records(Block& block);
inline void learn_count(Block& block) {
  if (block.counted.load(std::memory_order_acquire) != Block::kCounted) count_records(block);
}

class alignas(64) Ring {
 public:
  // Lays blocks from `base`, length of them, block_bytes each, `stride` apart. `host_readable`: the host may follow the
  // addresses (cpu).
  Ring(const RingOptions& options, std::byte* base, bool host_readable);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // The block for ordinal `index`. Static rings choose it by index; dynamic rings take the next free one and hold it
  // once, for its slot.
  Block& take(uint64_t index) {
    Block& block = dynamic_ ? next_free() : blocks_[index % length_];
    if (block.generation == 0) begin_value(block);
    if (block.foreign_release || has_object(block)) retire(block);
    ++block.generation;
    if (host_readable_) block.staged.store(Block::kNotStaged, std::memory_order_relaxed);
    return block;
  }

  bool dynamic() const { return dynamic_; }
  uint32_t length() const { return length_; }
  uint64_t capacity() const { return capacity_; }
  Block& block(uint32_t index) { return blocks_[index]; }
  // The most blocks that were seen held at one time, sampled on one take in 64. For static rings: the length.
  uint32_t high_water() const { return high_water_; }

 private:
  // A longer ring begins its search where it ended the last one.
  static constexpr uint32_t kSearchedMax = 64;
  static constexpr uint32_t kCountMask = 63;
  Block& next_free();
  void count_held();
  // A block's memory is first written when the block is first used: a page of the host costs its time only then.
  void begin_value(Block& block) {
    if (host_readable_ && records_.empty()) new (block.value) mr_value{};
  }
  bool has_object(const Block& block) const {
    return host_readable_ && records_.empty() && block.value->header.kind == MR_KIND_OBJECT &&
           block.value->as.object.release; // objects do not come from devices
  }

 public:
  // Gives back what the block stands for (foreign memory, a host object), and the pages of a lasting value. Called when
  // it has no readers any more.
  void retire(Block& block);
  void retire_all() {
    for (uint32_t i = 0; i < length_; ++i)
      if (blocks_[i].generation > 0) retire(blocks_[i]);
  }

 private:
  std::unique_ptr<Block[]> blocks_;
  std::vector<mr_value> records_; // the blocks' records, if they have their own; else empty
  uint32_t length_;
  uint64_t capacity_;
  bool dynamic_;
  bool host_readable_;
  bool lasting_;
  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> high_water_{0};
  std::atomic<uint32_t> taken_{0};
};

// Counts a holder of a block of a dynamic ring. Static rings count no holders.
inline void hold(Block* block) {
  if (block && block->ring->dynamic()) block->holds.fetch_add(1, std::memory_order_relaxed);
}
// From any thread. The last one gives foreign memory and objects back at once.
void release(Block* block);

} // namespace millrace::memory
