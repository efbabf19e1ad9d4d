// The services of the runtime (mr_host) as a TableTest gives them to its handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "millrace/payload/size.h"
#include "millrace/testing/table_test.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

inline TableTest::Firing& TableTest::firing_of(mr_tick* tick) {
  static_assert(offsetof(Firing, tick) == 0, "a tick's address is its firing's");
  return *reinterpret_cast<Firing*>(tick);
}

inline mr_status TableTest::give(mr_tick* tick, uint32_t output, std::shared_ptr<Block> block, uint32_t state) {
  Firing& firing = firing_of(tick);
  firing.outputs[output] = {&block->value(), block->data(), block->capacity(), state, 0, 0};
  firing.blocks[output] = std::move(block);
  return MR_OK;
}

inline mr_status TableTest::allocate(mr_tick* tick, uint32_t output, uint64_t bytes) {
  TableTest& test = of(tick);
  const uint64_t limit = detail::bytes_max(test.output_formats_[output]);
  if (bytes > limit)
    return test.refuse(test.output_name(output) + " asks for " +
                       (bytes == kTooManyBytes ? "more bytes than 64 bits count" : std::to_string(bytes) + " bytes") +
                       ", more than the configured " + std::to_string(limit));
  return give(tick, output, std::make_shared<Block>(bytes), MR_OUTPUT_OWN);
}

inline mr_status TableTest::modify(mr_tick* tick, uint32_t output, uint32_t input) {
  TableTest& test = of(tick);
  if (!(test.port_of_output(output).flags & MR_PORT_IN_PLACE))
    return test.refuse(test.output_name(output) + " is not declared with mr::in_place");
  const Value& source = firing_of(tick).input_values[input];
  if (!source) return test.refuse(test.output_name(output) + " modifies an input that is empty");
  if (test.in_place_) return give(tick, output, source.block(), MR_OUTPUT_OWN);
  const uint64_t bytes = source.header().extent_bytes;
  auto copy = std::make_shared<Block>(bytes);
  copy->value() = source.raw();
  std::memcpy(copy->data(), source.data(), static_cast<size_t>(bytes));
  return give(tick, output, std::move(copy), MR_OUTPUT_OWN);
}

inline mr_status TableTest::adopt(mr_tick* tick, uint32_t output, const void* data, uint64_t bytes,
                                  void (*release)(void*), void* context) {
  if (firing_of(tick).outputs[output].state != MR_OUTPUT_SILENT) {
    if (release) release(context);
    return of(tick).refuse(of(tick).output_name(output) + " holds something already on this tick");
  }
  return give(tick, output, std::make_shared<Block>(data, bytes, release, context), MR_OUTPUT_ADOPTED);
}

inline mr_tick* TableTest::defer(mr_tick* tick) {
  TableTest& test = of(tick);
  const std::lock_guard lock(test.mutex_);
  if (!test.current_ || &test.current_->tick != tick || test.current_->deferred) return nullptr;
  if (test.pending_.size() >= test.declaration_->max_pending) return nullptr;
  test.current_->deferred = true;
  test.pending_.push_back(test.current_);
  return tick;
}

inline mr_status TableTest::publish(mr_tick* tick) {
  TableTest& test = of(tick);
  const std::lock_guard lock(test.mutex_);
  if (test.pending_.empty() || &test.pending_.front()->tick != tick) return MR_ERROR;
  test.published_.push_back(test.settle(*test.pending_.front(), MR_OK));
  test.pending_.pop_front();
  return MR_OK;
}

inline void TableTest::log(void* instance, uint32_t level, const char* sentence) {
  TableTest& test = *static_cast<TableTest*>(instance);
  const std::lock_guard lock(test.mutex_);
  test.logs_.push_back({level, sentence});
}

inline mr_status TableTest::borrow(void* instance, uint32_t output, mr_block* block) {
  TableTest& test = *static_cast<TableTest*>(instance);
  const std::lock_guard lock(test.mutex_);
  const mr_format& format = test.output_formats_[output];
  if (test.borrowed_.size() >= format.held) return MR_ERROR;
  auto lent = std::make_shared<Block>(detail::bytes_max(format));
  *block = {lent->data(), lent->capacity(), reinterpret_cast<uint64_t>(lent.get())};
  test.borrowed_.push_back(std::move(lent));
  return MR_OK;
}

inline mr_status TableTest::give_borrowed(mr_tick* tick, uint32_t output, uint64_t token) {
  TableTest& test = of(tick);
  std::shared_ptr<Block> given;
  {
    const std::lock_guard lock(test.mutex_);
    for (const std::shared_ptr<Block>& block : test.borrowed_)
      if (reinterpret_cast<uint64_t>(block.get()) == token) given = block;
  }
  if (given) return give(tick, output, std::move(given), MR_OUTPUT_OWN);
  return test.refuse(test.output_name(output) + " gives a block that is not borrowed");
}

inline void TableTest::give_back(void* instance, uint32_t, uint64_t token) {
  TableTest& test = *static_cast<TableTest*>(instance);
  const std::lock_guard lock(test.mutex_);
  std::erase_if(test.borrowed_,
                [&](const std::shared_ptr<Block>& block) { return reinterpret_cast<uint64_t>(block.get()) == token; });
}

inline void TableTest::count(void* instance, const char* name, int64_t add) {
  TableTest& test = *static_cast<TableTest*>(instance);
  const std::lock_guard lock(test.mutex_);
  test.counts_[name] += add;
}

inline void* TableTest::share(void* instance, const char* name, void* (*make)(void*), void (*drop)(void*),
                              void* context) {
  std::shared_ptr<void>& object = (*static_cast<TableTest*>(instance)->shared_)[name];
  if (!object)
    if (void* const made = make(context)) object = std::shared_ptr<void>(made, drop);
  return object.get();
}

inline mr_status TableTest::serve(void* instance, const mr_site* site) {
  static_cast<TableTest*>(instance)->site_ = site;
  return MR_OK;
}

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
