// Reading ahead from a blocking source; see reader.h.
#include "exec/reader.h"

namespace millrace::exec {

Reader::Reader(StepRun& step) : step_(step), thread_([this] { loop(); }) {}

Reader::~Reader() { stop(); }

void Reader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Answer Reader::take(std::vector<Slot>& slots) {
  const std::lock_guard lock(mutex_);
  if (values_.empty()) return ended_ ? Answer::end : Answer::not_yet;
  slots = std::move(values_.front());
  values_.erase(values_.begin());
  room_.notify_all();
  return Answer::value;
}

void Reader::loop() {
  for (;; ++info_.index) {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return stopping_ || values_.size() < plan::kReadAhead; });
      if (stopping_) return;
    }
    step_.context.ordinal = info_.index;
    const mr_status status = call(step_, info_);
    {
      const std::lock_guard lock(mutex_);
      const bool over = status == MR_END || status == MR_INTERRUPTED || (status == MR_ERROR && step_.run->failing);
      if (over) ended_ = true;
      if (!over && status != MR_NOT_YET) {
        std::vector<Slot> slots(step_.outputs.size());
        for (size_t o = 0; o < slots.size(); ++o)
          if (step_.raw_outputs[o].state != MR_OUTPUT_SILENT) slots[o] = slot_of(step_.raw_outputs[o], step_);
        values_.push_back(std::move(slots));
      }
      if (ended_) stopping_ = true;
    }
    step_.run->notify();
  }
}

} // namespace millrace::exec
