// Calls with several items in a TableTest.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "millrace/testing/table_test.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

inline void TableTest::put() {
  if (put_.size() >= MR_ITEMS_MAX) throw std::logic_error("more items are put than any call takes");
  auto item = std::make_shared<Firing>();
  item->fires = start() == MR_OK && required_inputs_present();
  if (started_) prepare(*item);
  ++index_;
  put_.push_back(std::move(item));
}

inline std::vector<Result> TableTest::fire_items() {
  const std::vector<std::shared_ptr<Firing>> items = std::exchange(put_, {});
  std::vector<std::shared_ptr<Firing>> called;
  for (const std::shared_ptr<Firing>& item : items)
    if (item->fires) called.push_back(item);
  if (type_.process_items && called.size() > declaration_->items_max)
    throw std::logic_error("the handler takes " + std::to_string(declaration_->items_max) + " items a call, and " +
                           std::to_string(called.size()) + " were put");
  if (type_.process_items && !called.empty()) call_items(called);
  std::vector<Result> results;
  for (const std::shared_ptr<Firing>& item : items) {
    if (!started_) {
      results.push_back(refused(MR_ERROR));
    } else if (!item->fires) {
      results.push_back(settle(*item, MR_OK));
      results.back().fired = false;
    } else if (!type_.process_items) {
      results.push_back(fire(item));
    } else {
      if (item->failed) set_error(item->failed->c_str());
      const std::lock_guard lock(mutex_);
      results.push_back(settle(*item, item->failed ? MR_ERROR : MR_OK));
    }
  }
  return results;
}

inline void TableTest::call_items(const std::vector<std::shared_ptr<Firing>>& items) {
  std::vector<std::pair<uint32_t, std::shared_ptr<Block>>> together;
  for (uint32_t p = 0; p < declaration_->port_count; ++p) {
    const mr_port& port = declaration_->ports[p];
    if (port.direction == MR_INPUT && (port.flags & MR_PORT_DENSE))
      together.emplace_back(entries_[p].first, lay_together(items, entries_[p].first));
  }
  std::vector<mr_tick*> ticks;
  for (const std::shared_ptr<Firing>& item : items) {
    item->pieces.resize(output_count_);
    ticks.push_back(&item->tick);
  }
  set_error("");
  const auto count = static_cast<uint32_t>(ticks.size());
  mr_status status = type_.process_items(self_, ticks.data(), count);
  if (status == MR_OK && type_.finish_items) status = type_.finish_items(self_, ticks.data(), count);
  for (const auto& [input, piece] : together) {
    const uint8_t* at = piece->data();
    for (const std::shared_ptr<Firing>& item : items) {
      const Value& value = item->input_values[input];
      const auto bytes = static_cast<size_t>(value.header().extent_bytes);
      if (std::memcmp(at, value.data(), bytes) != 0)
        item->failed = "the handler wrote into input " + std::to_string(input) + ", which others may read";
      at += bytes;
    }
  }
  for (const std::shared_ptr<Firing>& item : items) {
    if (status != MR_OK) item->failed = error();
    take_apart(*item);
  }
}

inline std::shared_ptr<Block> TableTest::lay_together(const std::vector<std::shared_ptr<Firing>>& items,
                                                      uint32_t input) const {
  uint64_t bytes = 0;
  for (const std::shared_ptr<Firing>& item : items) bytes += item->input_values[input].header().extent_bytes;
  auto piece = std::make_shared<Block>(bytes);
  uint8_t* at = piece->data();
  for (const std::shared_ptr<Firing>& item : items) {
    const Value& value = item->input_values[input];
    std::memcpy(at, value.data(), static_cast<size_t>(value.header().extent_bytes));
    item->inputs[input].data = at;
    at += value.header().extent_bytes;
  }
  return piece;
}

inline void TableTest::take_apart(Firing& item) {
  for (uint32_t o = 0; o < output_count_; ++o) {
    if (!item.pieces[o]) continue;
    const bool is_intact = item.pieces[o]->intact() && item.pieces[o]->intact_before();
    if (!is_intact) item.failed = "the handler wrote past the end of " + output_name(o) + " of all items";
    Block& own = *item.blocks[o];
    std::memcpy(own.data(), item.outputs[o].data, static_cast<size_t>(own.capacity()));
    item.outputs[o].data = own.data();
  }
}

inline mr_status TableTest::allocate_items(mr_tick* const* items, uint32_t count, uint32_t output,
                                           const uint64_t* bytes) {
  TableTest& test = of(items[0]);
  uint64_t all = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (const mr_status status = allocate(items[i], output, bytes[i]); status != MR_OK) return status;
    all += bytes[i];
  }
  if (!(test.port_of_output(output).flags & MR_PORT_DENSE) || count == 1) return MR_OK;
  const auto piece = std::make_shared<Block>(all);
  uint8_t* at = piece->data();
  for (uint32_t i = 0; i < count; ++i) {
    firing_of(items[i]).pieces[output] = piece;
    items[i]->outputs[output].data = at;
    at += bytes[i];
  }
  return MR_OK;
}

inline void TableTest::fail_item(mr_tick* item, const char* sentence) {
  firing_of(item).failed = sentence;
  of(item).set_error(sentence);
}

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
