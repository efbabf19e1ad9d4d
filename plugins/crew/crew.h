// Threads that share the loops of a handler. Many loops take some ten microseconds, and to wake a thread takes longer.
// So threads poll for the next loop for a short time before they sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "the loop was interrupted"; }
};

// Belongs to one thread, which works too.
class Crew {
 public:
  // `threads`: that compute, the caller's among them; at least 1. If the system starts fewer, those do the work.
  // `stops`: asked by all of them before each part; it may become true at any time.
  explicit Crew(
      uint32_t threads, std::function<bool()> stops = [] { return false; });
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  using Part = std::function<void(size_t begin, size_t end)>;
  // Calls work for parts of 0 … count, each of at most `grain`, on several threads at a time, and returns when all are
  // done. If a call throws, the parts that nobody has begun are left out, and each() throws the same. If the crew is to
  // stop, it throws Interrupted.
  void each(size_t count, size_t grain, const Part& work);

 private:
  void take_parts();
  void serve();

  const std::function<bool()> stops_;
  std::mutex mutex_; // guards what is waited for
  std::condition_variable begins_, ends_;
  std::atomic<uint64_t> round_{0};   // counts calls of each()
  std::atomic<uint32_t> working_{0}; // threads that have not ended this round
  std::atomic<bool> leaves_{false};
  // Written by the owner before a round begins.
  const Part* work_ = nullptr;
  size_t count_ = 0, grain_ = 1;
  std::atomic<size_t> next_{0};
  std::exception_ptr failure_; // under mutex_
  std::vector<std::thread> threads_;
};

} // namespace millrace
