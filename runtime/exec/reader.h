// A source that blocks is read by a thread of its own, so that it delays no other step (semantics.md 1.4).
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/source.h"

namespace millrace::exec {

// Reads ahead by at most plan::kReadAhead values; for a live source it keeps the newest ones. Only the reader's thread
// calls the handler until it has left. The public functions are for the head of the pace, except stop(), which the
// thread that ends the run calls.
class Reader {
 public:
  // `reads`: from now on; else once it is told to begin anew.
  Reader(SourceRun& step, bool reads);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // `due_ns`, if it is given, becomes the media time at which the value was due.
  Answer take(std::vector<Slot>& slots, int64_t* due_ns = nullptr);
  // True if take() would give a value that is due at this media time.
  bool has_due(int64_t media_ns);
  // True if the source has a rate or is live: of several values that are due, the newest counts.
  bool newest_counts() const { return live_ || rate_.numerator > 0; }
  // Returns how many values were dropped since the last call because a newer one took their place. From now on a value
  // is dropped as it is read if the next one is due by `until_ns`, so that a fast file keeps its speed. A value that is
  // due after `kept_after_ns` stays.
  uint64_t superseded_by(int64_t until_ns, int64_t kept_after_ns = INT64_MAX);
  // Drops all values that were read, without the head taking any. Returns how many.
  uint64_t drop_all();
  // True if nothing is left and nothing more comes.
  bool at_end();

  // Asks the thread to leave the handler and interrupts it; true once it has left for good. Call it again until then,
  // because an interrupt that comes just before the blocking call is lost.
  bool leave();
  // Stops, resets and starts the source, in a new thread that then reads on. Called once leave() has said true.
  void begin_anew(const DueTimes& times);
  // How far that is. `failed`: the source did not start, or has failed since.
  Started started();
  // Waits for the end of a thread that has left, and drops what it has read.
  void join();
  // Ends the thread.
  void stop();

 private:
  struct Read {
    std::vector<Slot> slots;
    int64_t due_ns = 0;
  };

  void begin();
  void loop();
  bool start_source();
  bool has_room();
  void add(Read read);

  SourceRun& step_;
  DueTimes due_times_;
  graph::Rational rate_; // that of due_times_
  const bool live_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Read> values_;
  bool ended_ = false, stopping_ = false, left_ = false;
  Started started_ = Started::yes;
  int64_t base_ns_ = 0; // SourceState::base_ns
  int64_t until_ns_ = INT64_MIN, kept_after_ns_ = INT64_MAX;
  uint64_t superseded_ = 0;
  mr_tick_info info_{}; // the source's own count of values
  std::thread thread_;  // last: it uses all of the above
};

} // namespace millrace::exec
