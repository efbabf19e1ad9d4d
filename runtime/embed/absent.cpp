// Tries again and again to open the sources of absent streams; see absent.h.
#include "embed/absent.h"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "exec/run.h"
#include "exec/seats.h"
#include "exec/stream_life.h"
#include "observe/start_thread.h"
#include "plan/make_stream.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plugin/registry.h"

namespace millrace::embed {

Absent::Absent(const Composition& composition, exec::Run& run) : composition_(composition), run_(run) {
  const std::vector<plan::Clock>& clocks = composition.plan().clocks;
  for (uint32_t c = 0; c < clocks.size(); ++c) {
    if (clocks[c].absent.empty()) continue;
    waiting_.push_back({c});
    wait_to_try_again(waiting_.back());
  }
  const size_t threads = std::min(waiting_.size(), plan::kProbesMax);
  while (threads_.size() < threads) {
    try {
      threads_.push_back(start_thread("a thread that waits for streams", [this] { loop(); }));
    } catch (const Failure&) {
      if (threads_.empty()) throw;
      break; // fewer take longer
    }
  }
}

Absent::~Absent() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Absent::wait_to_try_again(Waiting& stream) const {
  stream.next = Time::now() + std::chrono::nanoseconds(exec::back_off_ns(stream.failed++));
}

bool Absent::begins(const Waiting& stream) {
  if (!run_.is_awaited(stream.clock)) return true;
  std::shared_ptr<plan::MadeStream> made; // instances in whose places others came are destroyed here
  std::optional<Error> failure;
  try {
    plan::StreamToMake wanted{.clock = stream.clock, .stream = composition_.stream_of(stream.clock)};
    wanted.is_sources_only = true;
    wanted.limits.over = &over_;
    made = std::make_shared<plan::MadeStream>(composition_.make_stream(wanted));
    std::promise<std::optional<Error>> answered;
    run_.add(
        stream.clock,
        {wanted.stream.name, made,
         [&](const Error* error) { answered.set_value(error ? std::optional<Error>(*error) : std::nullopt); }, true});
    failure = answered.get_future().get();
  } catch (const Failure& refused) {
    failure = refused.error();
  }
  if (failure && !over_) run_.still_absent(stream.clock, *failure);
  return !failure || !run_.is_awaited(stream.clock);
}

void Absent::loop() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    const auto next = std::min_element(waiting_.begin(), waiting_.end(),
                                       [](const Waiting& a, const Waiting& b) { return a.next < b.next; });
    if (next == waiting_.end()) {
      changed_.wait(lock); // another thread may put one back
      continue;
    }
    if (next->next > Time::now()) {
      changed_.wait_until(lock, next->next);
      continue;
    }
    Waiting stream = *next;
    waiting_.erase(next);
    lock.unlock();
    const bool is_settled = begins(stream);
    lock.lock();
    if (is_settled) continue;
    wait_to_try_again(stream);
    waiting_.push_back(stream);
    changed_.notify_one();
  }
}

} // namespace millrace::embed
