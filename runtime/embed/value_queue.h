// A bounded queue of values between an application's threads and a run's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "millrace/abi.h"

namespace millrace::embed {

// A value that owns its bytes.
struct QueuedValue {
  mr_value value{};
  std::vector<uint8_t> bytes;
  uint64_t index = 0; // index of its tick
  int64_t media_time_ns = 0;
};

enum class WhenFull { wait, drop_oldest, drop_newest };

// Any thread. A QueuedValue that is given back is used again, so that a steady stream allocates nothing.
class ValueQueue {
 public:
  // Call it before any other thread knows the queue.
  void set_depth(size_t depth) { depth_ = depth; }

  std::unique_ptr<QueuedValue> blank();
  void give_back(std::unique_ptr<QueuedValue> parcel);

  // False: the queue is closed, and the parcel is dropped. Never waits after relax().
  bool put(std::unique_ptr<QueuedValue> parcel, WhenFull when_full);
  // True if a put would find room now. Only useful if no other thread puts.
  bool has_room() const;

  // Takes the oldest value; waits for one. Null: the queue is closed and empty.
  std::unique_ptr<QueuedValue> take();
  std::unique_ptr<QueuedValue> try_take();
  std::unique_ptr<QueuedValue> try_take_newest();

  // Refuses further values; those in the queue may still be taken.
  void close();
  // From now on put() does not wait: a value that would wait for room drops the oldest one.
  void relax();
  // Closes the queue and drops its values.
  void abandon();

 private:
  std::unique_ptr<QueuedValue> pop(std::unique_lock<std::mutex>& lock);
  void drop_front();

  mutable std::mutex mutex_;
  std::condition_variable room_, filled_;
  std::deque<std::unique_ptr<QueuedValue>> waiting_;
  std::vector<std::unique_ptr<QueuedValue>> spare_;
  size_t depth_ = 1;
  bool closed_ = false, relaxed_ = false;
};

} // namespace millrace::embed
