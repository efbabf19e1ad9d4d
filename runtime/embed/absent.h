// Waits for streams whose sources did not answer when the plan was made (batch-design §2).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "embed/compose.h"

namespace millrace::exec {
class Run;
}

namespace millrace::embed {

// Opens their sources again and again, with the waits of a stream that has failed (exec/stream_life.h), each with the
// time limit of a probe. A stream begins once its sources are open. At most plan::kProbesMax threads do so, begun only
// if a stream is absent.
class Absent {
 public:
  // Both must outlive it.
  Absent(const Composition& composition, exec::Run& run);
  // Call Run::end_streams() before: a thread may wait for a stream to begin.
  ~Absent();
  Absent(const Absent&) = delete;
  Absent& operator=(const Absent&) = delete;

 private:
  using Time = std::chrono::steady_clock;
  struct Waiting {
    uint32_t clock = 0;
    uint32_t failed = 0; // times
    Time::time_point next{};
  };
  void wait_to_try_again(Waiting& stream) const;
  void loop();
  bool begins(const Waiting& stream); // true also if it is no more awaited

  const Composition& composition_;
  exec::Run& run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> waiting_;
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_; // last: they use all of the above
};

} // namespace millrace::embed
