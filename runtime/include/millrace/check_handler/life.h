// Checks of a handler's life: odd orders of start, drain, reset, stop and interrupt. Each check returns the cases that
// it tried, and throws Skip or Fault.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "millrace/check_handler/rig.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {
namespace check {

inline std::string described(const Subject& subject) {
  Rig rig(subject);
  require(subject.type.summary && *subject.type.summary, "it has no summary");
  for (uint32_t i = 0; i < rig.declared().param_count; ++i) {
    const mr_param& param = rig.declared().params[i];
    require(param.help && *param.help, "its parameter '" + std::string(param.name) + "' has no help");
  }
  return "";
}

inline std::string works(const Subject& subject) {
  std::string refusal;
  const std::optional<Feed> feed = find_feed(subject, refusal);
  require(feed.has_value(),
          "it does not start with these parameters and any input that its ports take: it said: " + refusal);
  Rig rig(subject, *feed);
  require_start(rig, "");
  uint64_t fired = 0;
  for (uint64_t k = 0; k < kTicks; ++k) {
    const Result result = rig.tick(k);
    require_fine(rig, result, "at tick " + std::to_string(k));
    fired += result.fired;
    if (result.end()) break;
  }
  require(fired > 0, "it never fired");
  require_ok(rig, rig.test.drain(), "drain fails");
  require_ok(rig, rig.test.stop(), "stop fails");
  return "";
}

inline std::string lives_twice(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  for (const char* life : {"the first time", "a second time", "a third time"}) {
    require_start(rig, life);
    for (uint64_t k = 0; k < 3; ++k) require_fine(rig, rig.tick(k), std::string("when it was started ") + life);
    require_ok(rig, rig.test.stop(), "stop fails");
  }
  return "";
}

inline std::string starts_on_any_device(const Subject& subject) {
  const Feed feed = working_feed(subject);
  for (const DeviceInfo& device : {DeviceInfo{DeviceKind::cpu, 0, "cpu"}, DeviceInfo{DeviceKind::sim, 1, "sim:1"}}) {
    Rig rig(subject, feed);
    rig.test.start_on(device);
    require_start(rig, "on " + std::string(device.name));
    for (uint64_t k = 0; k < 3; ++k)
      require_fine(rig, rig.tick(k), "at tick " + std::to_string(k) + " on " + std::string(device.name));
    require_ok(rig, rig.test.stop(), "stop fails");
  }
  return "";
}

inline std::string restarts(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  require_start(rig, "");
  for (uint64_t k = 0; k < 3; ++k) {
    require_fine(rig, rig.tick(k), "at tick " + std::to_string(k));
    require_ok(rig, rig.test.restart(), "stop, reset, start fails");
    require_fine(rig, rig.tick(k + 10), "after stop, reset, start");
  }
  return "";
}

inline std::string stops_without_start(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  require_ok(rig, subject.type.stop(rig.test.self()), "stop without start fails");
  require_start(rig, "after a stop without a start");
  require_fine(rig, rig.tick(0), "after a stop without a start");
  require_ok(rig, rig.test.stop(), "stop fails");
  require_ok(rig, subject.type.stop(rig.test.self()), "a second stop fails");
  { const Rig never_started(subject, feed); }
  Rig probed(subject, feed);
  mr_facts facts = no_facts();
  require_ok(probed, subject.type.probe(probed.test.self(), &facts), "probe fails");
  return ""; // and is destroyed with what the probe has opened
}

inline std::string drains_twice(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig idle(subject, feed);
  require_start(idle, "");
  require_ok(idle, idle.test.drain(), "drain before the first tick fails");
  require_ok(idle, idle.test.stop(), "stop fails");

  Rig rig(subject, feed);
  require_start(rig, "");
  for (uint64_t k = 0; k < 3; ++k) require_fine(rig, rig.tick(k), "at tick " + std::to_string(k));
  require_ok(rig, rig.test.drain(), "drain fails");
  rig.test.published();
  require_ok(rig, rig.test.drain(), "a second drain fails");
  require(rig.test.published().empty(), "a second drain publishes again");
  require_ok(rig, rig.test.stop(), "stop after drain fails");
  return "";
}

inline std::string resets(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  require_ok(rig, rig.test.reset(), "reset before start fails");
  require_start(rig, "after a reset");
  for (uint64_t k = 0; k < 3; ++k) {
    require_ok(rig, rig.test.reset(), "reset fails");
    require_fine(rig, rig.tick(k), "after a reset");
  }
  require_ok(rig, rig.test.drain(), "drain fails");
  require_ok(rig, rig.test.reset(), "reset after drain fails");
  require_ok(rig, rig.test.restart(), "it does not start after drain");
  require_fine(rig, rig.tick(9), "when it was started again after drain and reset");
  return "";
}

// The ids of records (fields `id`, `id_a` and `id_b`) by new names: 0, 1, … in the order in which they first come. So
// a tracker that numbers on after a reset gives the same as a fresh one.
class Renaming {
 public:
  // A copy of the value, or the value itself if its records have no ids.
  Value renamed(const mr_record_type* type, const Value& value) {
    if (!type || !value) return value;
    Value copy = value;
    for (uint32_t f = 0; f < type->field_count; ++f) {
      const mr_field& field = type->fields[f];
      const std::string_view name = field.name;
      const bool is_id = name == "id" || name == "id_a" || name == "id_b";
      if (!is_id || field.count != 1 || field.dtype_bits != 64) continue;
      if (copy.block() == value.block()) copy = copied(value);
      const mr_records& records = copy.raw().as.records;
      for (uint64_t r = 0; r < records.count; ++r)
        rename(copy.block()->data() + r * records.record_size + field.offset);
    }
    return copy;
  }

 private:
  static Value copied(const Value& value) {
    Value copy(std::make_shared<Block>(value.block()->capacity()));
    copy.raw() = value.raw();
    std::memcpy(copy.block()->data(), value.data(), static_cast<size_t>(value.header().extent_bytes));
    return copy;
  }
  void rename(uint8_t* at) {
    int64_t id = 0;
    std::memcpy(&id, at, sizeof id);
    if (id >= 0) id = names_.try_emplace(id, static_cast<int64_t>(names_.size())).first->second;
    std::memcpy(at, &id, sizeof id);
  }

  std::map<int64_t, int64_t> names_;
};

// The results of kTicks ticks from index kTicks on, those that came late last. Before them the handler sees the same
// number of other ticks and is reset, and drained before if it may owe results; a fresh one sees nothing before.
inline std::vector<uint64_t> seen_after(const Subject& subject, const Feed& feed, bool fresh) {
  Rig rig(subject, feed);
  require_start(rig, "");
  if (!fresh) {
    for (uint64_t k = 0; k < kTicks; ++k) require_fine(rig, rig.tick(3 * kTicks + k), "at tick " + std::to_string(k));
    if (rig.declared().max_pending > 0) require_ok(rig, rig.test.drain(), "drain fails");
    rig.test.published();
    require_ok(rig, rig.test.reset(), "reset fails");
  }
  rig.test.set_index(kTicks);
  std::vector<uint64_t> seen;
  Renaming ids;
  const auto see = [&](Result result) {
    for (Result::Output& output : result.outputs)
      output.value = ids.renamed(rig.test.format(output.port).records, output.value);
    seen.push_back(seen_of(result));
  };
  for (uint64_t k = kTicks; k < 2 * kTicks; ++k) {
    const Result result = rig.tick(k);
    require_fine(rig, result, "at tick " + std::to_string(k));
    if (!result.pending()) see(result);
  }
  require_ok(rig, rig.test.drain(), "drain fails");
  for (const Result& late : rig.test.published()) see(late);
  return seen;
}

inline std::string forgets_the_past(const Subject& subject) {
  const Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); rig.is_source()) throw Skip("it is a source: where it goes on is its own affair");
  const std::vector<uint64_t> fresh = seen_after(subject, feed, true);
  if (fresh != seen_after(subject, feed, true)) throw Skip("its results differ from run to run by themselves");
  require(fresh == seen_after(subject, feed, false),
          "after a reset it gives other results than a fresh instance: it keeps something of the ticks before");
  return "";
}

inline std::string interrupted_in_every_state(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  rig.test.interrupt(); // constructed
  mr_facts facts = no_facts();
  subject.type.probe(rig.test.self(), &facts);
  rig.test.interrupt(); // probed
  require_start(rig, "after an interrupt");
  rig.test.interrupt(); // started
  rig.tick(0);          // may end early, with any status
  rig.test.interrupt();
  rig.test.drain();
  rig.test.interrupt(); // drained
  rig.test.stop();
  rig.test.interrupt(); // stopped
  require_ok(rig, rig.test.restart(), "it does not start after an interrupt");
  require_fine(rig, rig.tick(1), "when it was started anew after an interrupt");
  return "";
}

// A second thread interrupts while the first one works. Calls may end early, but they must end.
inline std::string interrupted_while_it_works(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  require_start(rig, "");
  std::atomic<bool> done = false;
  std::thread interrupter([&] {
    while (!done.load()) {
      rig.test.interrupt();
      std::this_thread::yield();
    }
  });
  std::string thrown;
  try {
    for (uint64_t k = 0; k < kTicks; ++k) rig.tick(k);
    rig.test.drain();
  } catch (const std::exception& error) {
    thrown = error.what();
  }
  done = true;
  interrupter.join();
  require(thrown.empty(), thrown);
  require_ok(rig, rig.test.restart(), "it does not start after an interrupt");
  require_fine(rig, rig.tick(1), "when it was started anew after an interrupt");
  return "";
}

} // namespace check
} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
