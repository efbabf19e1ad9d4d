// A shared handler that takes several items of a firing in one call (items_run.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/handler_run.h"

namespace millrace::exec {

struct ItemsRun : HandlerRun {
  StepResult advance(uint64_t first) override; // `first`: a firing's first item; it calls for all

  // The arguments of one item.
  struct Row {
    CallArguments call;
    uint64_t ordinal = 0;
    std::string failure; // the sentence by which it has failed
  };

  // built
  mr_status (*process_items)(void*, mr_tick* const*, uint32_t) = nullptr;
  mr_status (*finish_items)(void*, mr_tick* const*, uint32_t) = nullptr; // null: none
  uint32_t items_max = 1;                                                // in a call
  std::vector<bool> is_dense_output;                                     // by output
  // By input, if it is dense: where the rows of items are gathered that do not lie side by side already.
  std::vector<std::unique_ptr<std::byte[]>> gathered;

  // claimer
  std::vector<Histogram> by_items; // RunOptions::measure_bodies: times of calls of 1, 2, 4, … items; else empty
  std::vector<Row> rows;           // one for each item that is called, in their order
  std::vector<mr_tick*> ticks;     // the same
  uint32_t called_items = 0;
};

// The part of mr_host.allocate_items for an output whose items lie in one piece.
mr_status allocate_side_by_side(ItemsRun& step, mr_tick* const* items, uint32_t count, uint32_t output,
                                const uint64_t* bytes);

} // namespace millrace::exec
