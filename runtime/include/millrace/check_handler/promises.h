// Checks of declarations: facts, ends, pending results, kept values, state, in place, allocations. Each check returns
// the cases that it tried, and throws Skip or Fault.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "millrace/check_handler/rig.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {
namespace check {

inline std::string probes_alike(const Subject& subject) {
  const Feed feed = working_feed(subject);
  mr_facts facts[2];
  for (mr_facts& told : facts) {
    told = no_facts();
    Rig rig(subject, feed);
    require_start(rig, "");
    told = rig.test.facts();
  }
  require(facts[0].rate_num == facts[1].rate_num && facts[0].rate_den == facts[1].rate_den &&
              facts[0].tick_count == facts[1].tick_count && facts[0].live == facts[1].live,
          "two instances with the same parameters tell different facts");
  require(facts[0].rate_num >= 0 && facts[0].rate_den >= 0, "it tells a negative rate");
  require(facts[0].rate_num == 0 || facts[0].rate_den > 0, "it tells a rate with denominator 0");
  require(facts[0].time_num == 0 || (facts[0].time_num > 0 && facts[0].time_den > 0),
          "it tells a unit of time that is not above 0");
  require(facts[0].tick_count >= -1, "it tells a negative number of ticks");
  return "";
}

inline std::string ends_as_it_said(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  if (!rig.is_source()) throw Skip("it is no source");
  require_start(rig, "");
  const int64_t count = rig.test.facts().tick_count;
  if (count < 0 || count > kEndTicksMax)
    throw Skip("it tells no end within " + std::to_string(kEndTicksMax) + " ticks");
  int64_t given = 0;
  Result result = rig.tick(0);
  for (; !result.end() && given <= count; result = rig.tick(static_cast<uint64_t>(given))) {
    require_fine(rig, result, "at tick " + std::to_string(given));
    given += !result.not_yet();
  }
  require(given == count, "it told " + std::to_string(count) + " ticks and " +
                              (given > count ? "goes on after them" : "ends after " + std::to_string(given)));
  require(rig.tick(0).end(), "asked again after its end, it begins anew");
  return "";
}

inline std::string keeps_to_max_pending(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  const uint32_t most = rig.declared().max_pending;
  require_start(rig, "");
  uint64_t owed = 0, settled = 0, next = 0;
  const auto take = [&] {
    for (const Result& result : rig.test.published()) {
      require(result.status != MR_ERROR, "a late result fails: " + words_of(result.error));
      require(result.tick.index >= next, "late results come out of the order of their ticks");
      next = result.tick.index + 1;
      require_sound_values(rig, result);
      ++settled;
    }
  };
  for (uint64_t k = 0; k < kTicks + 2ull * most; ++k) {
    const Result result = rig.tick(k);
    require_fine(rig, result, "at tick " + std::to_string(k));
    owed += result.pending();
    require(rig.test.pending() <= most, "more results are pending than it declares");
    take();
  }
  require_ok(rig, rig.test.drain(), "drain fails");
  take();
  require(settled == owed, "after drain it still owes " + std::to_string(owed - settled) + " results");
  if (most == 0) throw Skip("its results are never late");
  return "";
}

// The runtime writes new values over old ones as soon as `keeps` allows it; here they are scribbled over at once.
inline std::vector<uint64_t> seen_with_old_values(const Subject& subject, const Feed& feed, bool scribble) {
  Rig rig(subject, feed);
  require_start(rig, "");
  uint32_t keeps = 0;
  for (uint32_t p = 0; p < rig.declared().port_count; ++p) keeps = std::max(keeps, rig.declared().ports[p].keeps);
  std::deque<std::vector<Value>> past;
  std::vector<uint64_t> seen;
  for (uint64_t k = 0; k < kTicks; ++k) {
    past.push_back(rig.give(k));
    const Result result = rig.test.tick();
    require_fine(rig, result, "at tick " + std::to_string(k));
    seen.push_back(seen_of(result));
    for (const Result& late : rig.test.published()) seen.push_back(seen_of(late));
    if (past.size() <= size_t{keeps} + rig.declared().max_pending) continue;
    for (const Value& value : past.front())
      if (scribble) scramble(value.block()->data(), value.block()->capacity(), 0xDEAD + k);
    past.pop_front();
  }
  return seen;
}

inline std::string keeps_what_it_declares(const Subject& subject) {
  const Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); rig.is_source()) throw Skip("it has no inputs");
  const std::vector<uint64_t> whole = seen_with_old_values(subject, feed, false);
  if (whole != seen_with_old_values(subject, feed, false))
    throw Skip("its results differ from run to run by themselves");
  require(whole == seen_with_old_values(subject, feed, true),
          "its results depend on inputs of earlier ticks, which it has not declared with keeps()");
  return "";
}

// Each of two instances gets every other value; a third gets all. A handler without state cannot tell.
inline std::string has_no_state(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig whole(subject, feed);
  if (!(whole.declared().traits & MR_TRAIT_STATELESS)) throw Skip("it is not declared stateless");
  if (whole.is_source()) throw Skip("a source is asked for every tick");
  Rig even(subject, feed), odd(subject, feed);
  for (Rig* rig : {&whole, &even, &odd}) require_start(*rig, "");
  for (uint64_t k = 0; k < kTicks; ++k) {
    const Result all = whole.tick(k);
    require_fine(whole, all, "at tick " + std::to_string(k));
    const Result first = even.tick(k, k % 2 == 1), second = odd.tick(k, k % 2 == 0);
    require(seen_of(k % 2 == 0 ? first : second) == seen_of(all),
            "an instance that has seen other ticks before gives another result at tick " + std::to_string(k));
  }
  return "";
}

inline std::string writes_in_place_alike(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig copied(subject, feed), over(subject, feed);
  bool in_place = false;
  for (uint32_t p = 0; p < copied.declared().port_count; ++p)
    in_place = in_place || (copied.declared().ports[p].flags & MR_PORT_IN_PLACE);
  if (!in_place) throw Skip("no output is declared in place");
  over.test.allow_in_place();
  require_start(copied, "");
  require_start(over, "");
  for (uint64_t k = 0; k < kTicks; ++k) {
    const Result apart = copied.tick(k), within = over.tick(k);
    require_fine(copied, apart, "at tick " + std::to_string(k));
    require_fine(over, within, "at tick " + std::to_string(k) + ", in place");
    require(seen_of(apart) == seen_of(within), "written over its input, the result is another one");
  }
  return "";
}

// The results of as many ticks as `calls` has items in all, given in calls of these sizes. Three streams take turns.
inline std::vector<uint64_t> seen_in_calls(const Subject& subject, const Feed& feed,
                                           const std::vector<uint32_t>& calls) {
  Rig rig(subject, feed);
  require_start(rig, "");
  std::vector<uint64_t> seen;
  uint64_t k = 0;
  for (const uint32_t items : calls) {
    for (uint32_t i = 0; i < items; ++i, ++k) {
      rig.give(k);
      rig.test.set_stream(static_cast<uint32_t>(k % 3));
      rig.test.put();
    }
    for (const Result& result : rig.test.fire_items()) {
      require_fine(rig, result, "in a call of " + std::to_string(items) + " items");
      seen.push_back(seen_of(result));
    }
  }
  return seen;
}

// The number of items of a call depends on the load, so nothing that a handler gives may.
inline std::string takes_items_alike(const Subject& subject) {
  const Feed feed = working_feed(subject);
  uint32_t most = 0;
  if (const Rig rig(subject, feed); (most = rig.declared().items_max) == 0) throw Skip("it takes one tick a call");
  const uint32_t all = 2 * most;
  const std::vector<uint32_t> one_by_one(all, 1);
  const std::vector<uint64_t> alone = seen_in_calls(subject, feed, one_by_one);
  if (alone != seen_in_calls(subject, feed, one_by_one)) throw Skip("its results differ from run to run by themselves");
  if (most == 1) return "";
  for (const uint32_t items : {2u, most})
    require(seen_in_calls(subject, feed, std::vector<uint32_t>(all / items, items)) == alone,
            "in a call of " + std::to_string(items) + " items an item gives another result than in a call of its own");
  require(seen_in_calls(subject, feed, {1, most, most - 1}) == alone,
          "in calls of different sizes an item gives another result than in a call of its own");
  return "";
}

// Stands between the handler and the rig, because both allocate and only the handler is counted. A thread checks one
// handler at a time.
struct CountedCall {
  mr_status (*process)(void*, mr_tick*) = nullptr;
  const mr_host* host = nullptr;
  AllocationCounter counter;
};
inline thread_local CountedCall counted_call;

struct Uncounted {
  Uncounted() { counted_call.counter.count(false); }
  ~Uncounted() { counted_call.counter.count(true); }
};
inline mr_status allocate_uncounted(mr_tick* tick, uint32_t output, uint64_t bytes) {
  const Uncounted here;
  return counted_call.host->allocate(tick, output, bytes);
}
inline mr_status modify_uncounted(mr_tick* tick, uint32_t output, uint32_t input) {
  const Uncounted here;
  return counted_call.host->modify(tick, output, input);
}
inline mr_status adopt_uncounted(mr_tick* tick, uint32_t output, const void* data, uint64_t bytes,
                                 void (*release)(void*), void* context) {
  const Uncounted here;
  return counted_call.host->adopt(tick, output, data, bytes, release, context);
}
inline mr_status process_counted(void* self, mr_tick* tick) {
  counted_call.host = tick->host;
  mr_host host = *tick->host;
  host.allocate = &allocate_uncounted;
  host.modify = &modify_uncounted;
  host.adopt = &adopt_uncounted;
  tick->host = &host;
  counted_call.counter.count(true);
  const mr_status status = counted_call.process(self, tick);
  counted_call.counter.count(false);
  tick->host = counted_call.host;
  return status;
}

inline std::string allocates_nothing(const Subject& subject) {
  Subject counted = subject;
  const Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); !(rig.declared().traits & MR_TRAIT_NO_ALLOCATION))
    throw Skip("it is not declared to allocate nothing");
  if (!subject.allocations.count) throw Skip("this program does not count allocations");
  if (Rig rig(subject, feed); rig.declared().max_pending > 0) throw Skip("its ticks outlive the call that is counted");
  counted_call = {subject.type.process, nullptr, subject.allocations};
  counted.type.process = &process_counted;
  Rig rig(counted, feed);
  require_start(rig, "");
  // The first ticks may still fill buffers that were sized in start().
  for (uint64_t k = 0; k < 3; ++k) require_fine(rig, rig.tick(k), "at tick " + std::to_string(k));
  const uint64_t before = subject.allocations.counted();
  for (uint64_t k = 3; k < kTicks; ++k) require_fine(rig, rig.tick(k), "at tick " + std::to_string(k));
  const uint64_t allocated = subject.allocations.counted() - before;
  require(allocated == 0, "it is declared to allocate nothing and allocates " + std::to_string(allocated) +
                              " times in " + std::to_string(kTicks - 3) + " ticks");
  return "";
}

} // namespace check
} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
