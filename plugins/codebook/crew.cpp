// Shares loops out by an atomic index; see crew.h.
#include "plugins/codebook/crew.h"

#include <algorithm>

namespace millrace::codebook {

Crew::Crew(uint32_t threads) {
  for (uint32_t n = 1; n < threads; ++n) threads_.emplace_back([this] { serve(); });
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
    for (size_t begin = 0; begin < count; begin += grain) work(begin, std::min(count, begin + grain));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    count_ = count;
    grain_ = grain;
    next_ = 0;
    working_ = static_cast<uint32_t>(threads_.size());
    ++round_;
  }
  begins_.notify_all();
  take_parts();
  std::unique_lock lock(mutex_);
  ends_.wait(lock, [this] { return working_ == 0; });
}

void Crew::take_parts() {
  for (size_t begin = next_.fetch_add(grain_); begin < count_; begin = next_.fetch_add(grain_))
    (*work_)(begin, std::min(count_, begin + grain_));
}

void Crew::serve() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begins_.wait(lock, [&] { return leaves_ || round_ != seen; });
    if (leaves_) return;
    seen = round_;
    lock.unlock();
    take_parts();
    lock.lock();
    if (--working_ == 0) ends_.notify_one();
  }
}

} // namespace millrace::codebook
