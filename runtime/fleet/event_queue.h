// The events that a state machine of a fleet has for its owner, who polls for them.
#pragma once

#include <deque>
#include <utility>

namespace millrace::fleet {

template <class Event>
class EventQueue {
 public:
  // The caller fills in what belongs to the type.
  Event& add(typename Event::Type type) {
    Event& event = events_.emplace_back();
    event.type = type;
    return event;
  }
  // The oldest event; false if there is none.
  bool poll(Event& event) {
    if (events_.empty()) return false;
    event = std::move(events_.front());
    events_.pop_front();
    return true;
  }

 private:
  std::deque<Event> events_;
};

} // namespace millrace::fleet
