// Shares loops out by an atomic index; see crew.h.
#include "plugins/crew/crew.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace millrace {

namespace {

constexpr int kLooks = 2000; // before a thread sleeps: some fifty microseconds

// Polls a condition for a short time. False: it did not become true.
template <class Holds>
bool comes_soon(const Holds& holds) {
  for (int n = 0; n < kLooks; ++n) {
    if (holds()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return false;
}

} // namespace

Crew::Crew(uint32_t threads, std::function<bool()> stops) : stops_(std::move(stops)) {
  try {
    for (uint32_t n = 1; n < threads; ++n) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error&) { // no more of them: results do not depend on their number
  }
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    leaves_ = true;
  }
  begins_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::each(size_t count, size_t grain, const Part& work) {
  if (threads_.empty() || count <= grain) {
    for (size_t begin = 0; begin < count; begin += grain) {
      if (stops_()) throw Interrupted();
      work(begin, std::min(count, begin + grain));
    }
    return;
  }
  work_ = &work;
  count_ = count;
  grain_ = grain;
  next_ = 0;
  working_ = static_cast<uint32_t>(threads_.size());
  {
    const std::lock_guard lock(mutex_);
    ++round_;
  }
  begins_.notify_all();
  take_parts();
  const auto are_done = [this] { return working_ == 0; };
  if (!comes_soon(are_done)) {
    std::unique_lock lock(mutex_);
    ends_.wait(lock, are_done);
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Crew::take_parts() {
  try {
    for (size_t begin = next_.fetch_add(grain_); begin < count_; begin = next_.fetch_add(grain_)) {
      if (stops_()) throw Interrupted();
      (*work_)(begin, std::min(count_, begin + grain_));
    }
  } catch (...) {
    next_ = count_;
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
}

void Crew::serve() {
  uint64_t seen = 0;
  const auto has_work = [&] { return leaves_ || round_ != seen; };
  for (;;) {
    if (!comes_soon(has_work)) {
      std::unique_lock lock(mutex_);
      begins_.wait(lock, has_work);
    }
    if (leaves_) return;
    seen = round_;
    take_parts();
    if (--working_ > 0) continue;
    const std::lock_guard lock(mutex_);
    ends_.notify_one();
  }
}

} // namespace millrace
