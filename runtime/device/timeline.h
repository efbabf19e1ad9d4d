// Time as a run sees it: the machine's monotonic clock, or a virtual one whose events happen in order and take no
// time at all. Devices and the executor ask this and nothing else, so that every rule of time can be tested exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace millrace::device {

class Timeline {
 public:
  virtual ~Timeline() = default;
  virtual int64_t now_ns() const = 0;
  virtual bool is_virtual() const { return false; }
  // Several machines may share this time: now_ns() is at most so far off what they share. 0: it is theirs exactly.
  virtual int64_t error_ns() const { return 0; }
};

class MonotonicTime final : public Timeline {
 public:
  int64_t now_ns() const override;
};

// Single threaded. Events at equal times run in the order in which they were scheduled; a time that has passed means
// now.
class VirtualTime final : public Timeline {
 public:
  int64_t now_ns() const override { return now_ns_; }
  bool is_virtual() const override { return true; }
  void schedule(int64_t at_ns, std::function<void()> event);
  bool empty() const { return events_.empty(); }
  // The time of the next event; INT64_MAX if there is none.
  int64_t next_ns() const;
  // Moves to the next event's time and runs it, then every watcher in the order in which they were added. False if
  // there is no event. An event may itself call step().
  bool step();

  // Calls `look` after each event, for virtual devices, which wait for words that any event may move (semantics.md
  // 4.2). A watcher neither adds nor removes watchers.
  void watch(const void* owner, std::function<void()> look);
  void unwatch(const void* owner);

 private:
  struct Event {
    int64_t at_ns;
    uint64_t order;
    std::function<void()> run;
    bool operator>(const Event& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order;
    }
  };
  struct Watcher {
    const void* owner;
    std::function<void()> look;
  };
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Watcher> watchers_;
  int64_t now_ns_ = 0;
  uint64_t order_ = 0;
};

} // namespace millrace::device
