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
  uint64_t index = 0; // of its tick
  int64_t media_time_ns = 0;
};

enum class WhenFull { wait, drop_oldest, drop_newest };

// Any thread. QueuedValues that come back are used again, so that a steady stream allocates nothing.
class ValueQueue {
 public:
  // Before any other thread knows of it.
  void set_depth(size_t depth) { depth_ = depth; }

  std::unique_ptr<QueuedValue> blank();
  void give_back(std::unique_ptr<QueuedValue> parcel);

  // False: closed; the parcel is gone. Never waits once relaxed.
  bool put(std::unique_ptr<QueuedValue> parcel, WhenFull when_full);
  // Whether a put would find room now: for the only one who puts.
  bool has_room() const;

  // The oldest; waits for one. Null: closed, and nothing waits any more.
  std::unique_ptr<QueuedValue> take();
  std::unique_ptr<QueuedValue> try_take();
  std::unique_ptr<QueuedValue> try_take_newest();

  // Nothing more is put; what waits may be taken.
  void close();
  // Nobody waits for room any more: what finds the queue full drops the oldest.
  void relax();
  // Closed, and what waits is let go.
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
