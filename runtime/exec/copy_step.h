// Copies between domains (copy_step.cpp).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "exec/step.h"

namespace millrace::exec {

struct CopyRun;

// A copy under way.
struct CopyCall {
  CopyRun* step = nullptr;
  mr_tick_info info{};
  int64_t begun = 0, begun_ns = 0; // when it began: in trace time, and in the run's
  // The blocks that are copied, each with its target.
  std::vector<std::pair<memory::Block*, memory::Block*>> carried;
  bool brings_presence = false; // the presence of one of them is known only at the fence
};

// A step whose firing makes a copy certain.
struct CopyReader {
  const StepRun* step;
  uint32_t member; // index of the copy's input that it reads
};

// The copies that a device has of a lasting value and of its successor (semantics.md 3.7).
struct KeptCopies {
  const memory::Block* source = nullptr; // the value's block at its origin; null: nothing was copied yet
  uint64_t generation = 0;               // the block's, when it was copied
  uint32_t newest = 0;                   // the block of the ring that has its copy
  Slot slot;                             // as the copy left it
  uint64_t read_until[2] = {};           // by block: 1 + the last ordinal that reads it; 0: none does
};

struct CopyRun : StepRun {
  StepResult advance(uint64_t ordinal) override; // in a group's pace, of a firing's first item: it copies for all

  // built
  std::vector<CopyCall> copy_calls; // by ordinal & mask
  std::vector<CopyReader> readers;
  // claimer
  SingleWriter<uint64_t> copies, bytes_copied;
  KeptCopies kept;
  // In a group's pace, by item: the inputs that are wanted, and the source of the last one; null: nothing is copied.
  std::vector<uint64_t> wanted;
  std::vector<const Slot*> sources;
};

} // namespace millrace::exec
