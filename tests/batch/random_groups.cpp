// Random groups in virtual time: streams that come, stall, fail, end and go, devices that vary and hang, and an
// observer that holds every step of the collector against the rules.
//
// MILLRACE_BATCH=n tries n groups; MILLRACE_SEED=s begins with another one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <tuple>

#include "batch/controller.h"
#include "batch/plain_rules.h"
#include "observe/random.h"
#include "tests/batch/rig.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::batch {
namespace {

constexpr int64_t kUs = 1'000;

class RandomGroup {
 public:
  explicit RandomGroup(uint64_t seed) : random_(seed) {
    group_.streams_max = static_cast<uint32_t>(random_.between(1, 10));
    group_.in_flight = static_cast<uint32_t>(random_.between(1, 2));
    group_.budget_ns = random_.between(3, 60) * kMs;
    has_priorities_ = random_.below(3) == 0;
    make_curve();
    make_rule();
    collector_ = std::make_unique<Collector>(group_, ServiceCurve(curve_), *rule_);
    streams_.resize(group_.streams_max);
    for (uint32_t s = 0; s < group_.streams_max; ++s)
      if (random_.below(4) != 0) add(s);
  }

  // All that left, in words: firings and drops with their times.
  std::string run() {
    const int64_t stops_ns = 300 * kMs;
    while (now_ < stops_ns) {
      int64_t next_ns = std::min(look_ns_, stops_ns);
      for (const Stream& stream : streams_)
        if (stream.is_there && !stream.has_ended) next_ns = std::min(next_ns, stream.gives_ns);
      for (const Flight& flight : flights_)
        if (flight.firing) next_ns = std::min(next_ns, flight.ends_ns);
      now_ = std::max(now_, next_ns);
      step();
      if (!complaint_.empty()) return complaint_;
    }
    for (uint32_t s = 0; s < group_.streams_max; ++s)
      if (streams_[s].is_there && !streams_[s].has_ended) end(s);
    while (!waiting_.empty() || collector_->forecast().under_way() > 0) {
      if (!advance_to_the_end()) return complain("items wait for ever");
      if (!complaint_.empty()) return complaint_;
    }
    return given_ == settled_ ? "" : complain("an item was not settled");
  }

  const std::string& log() const { return log_; }
  uint64_t given() const { return given_; }
  uint64_t dropped_late() const { return dropped_late_; }
  uint64_t most_at_once() const { return most_at_once_; }

 private:
  struct Waits {
    int64_t key_ns, given_ns, due_ns;
    uint32_t rows;
  };
  using ItemName = std::pair<uint32_t, uint64_t>;
  struct Stream {
    bool is_there = false, has_ended = false, failed = false;
    StreamTerms terms;
    int64_t gives_ns = 0, media_ns = 0;
    uint64_t ordinal = 0, leaves = 0; // the next to be given, and to leave
    uint32_t inside = 0;
  };
  struct Flight {
    const Firing* firing = nullptr;
    int64_t ends_ns = 0;
  };

  void make_curve() {
    const auto buckets = static_cast<uint32_t>(random_.between(1, 6));
    int64_t ns = random_.between(50, 1000) * kUs;
    for (uint32_t b = 0; b < buckets; ++b) {
      const int64_t paired_ns = random_.below(2) ? ns * random_.between(50, 100) / 100 : 0;
      curve_.push_back({1u << b, ns, ns + random_.between(0, 20) * kUs, paired_ns});
      ns = ns * random_.between(100, 200) / 100;
    }
    spread_percent_ = random_.below(3) * 10;
  }

  void make_rule() {
    kind_ = static_cast<uint32_t>(random_.below(5));
    const uint32_t most = curve_.back().items;
    if (kind_ == 3) {
      rule_ =
          std::make_unique<FixedRule>(static_cast<uint32_t>(random_.between(1, most)), random_.between(0, 20) * kMs);
    } else if (kind_ == 4) {
      rule_ = std::make_unique<FreeRule>(most);
      group_.order = Order::media_time;
    } else {
      drops_ = kind_ != 2;
      rule_ = std::make_unique<Controller>(Budget{group_.budget_ns, 0.8, drops_},
                                           static_cast<double>(random_.between(100, 5000)), 5 * kMs);
    }
  }

  void add(uint32_t s) {
    Stream& stream = streams_[s];
    const uint64_t ordinal = stream.ordinal;
    stream = {};
    stream.is_there = true;
    stream.ordinal = stream.leaves = ordinal; // a new stream in the place: its items have names of their own
    stream.terms.period_ns = random_.below(5) == 0 ? 0 : random_.between(500, 20'000) * kUs;
    stream.terms.priority = has_priorities_ ? static_cast<uint32_t>(random_.between(0, 100)) : 0;
    stream.terms.allowance = static_cast<uint32_t>(random_.between(1, kAllowanceMost));
    stream.gives_ns = now_ + random_.between(0, 5000) * kUs;
    collector_->stream_added(s, stream.terms, now_);
  }

  void end(uint32_t s) {
    streams_[s].has_ended = true;
    streams_[s].failed = random_.below(2) == 0;
    streams_[s].failed ? collector_->stream_failed(s) : collector_->stream_ended(s);
    drain();
  }

  void give(uint32_t s) {
    Stream& stream = streams_[s];
    const uint32_t rows = random_.below(4) == 0 ? static_cast<uint32_t>(random_.between(1, curve_.back().items)) : 1;
    stream.media_ns += random_.between(0, 10) * kMs;
    const bool taken = collector_->give(s, stream.ordinal, now_, rows, stream.media_ns);
    if (taken == (stream.inside >= stream.terms.allowance)) complain("an allowance is not kept");
    if (taken) {
      const int64_t due_ns = now_ + group_.budget_ns;
      const int64_t key_ns = group_.order == Order::media_time
                                 ? stream.media_ns
                                 : due_ns - group_.budget_ns / 100 * int64_t{stream.terms.priority};
      waiting_[{s, stream.ordinal++}] = {key_ns, now_, due_ns, rows};
      ++stream.inside;
      ++given_;
    }
    const int64_t period_ns = std::max(stream.terms.period_ns, kMs);
    stream.gives_ns = now_ + period_ns * random_.between(0, 200) / 100;
    if (random_.below(30) == 0) stream.gives_ns += random_.between(1, 60) * kMs; // it stalls
  }

  void step() {
    for (uint32_t slot = 0; slot < flights_.size(); ++slot)
      if (flights_[slot].firing && flights_[slot].ends_ns <= now_) end_firing(slot);
    for (uint32_t s = 0; s < group_.streams_max; ++s) {
      Stream& stream = streams_[s];
      if (stream.is_there && !stream.has_ended && stream.gives_ns <= now_) give(s);
      if (random_.below(200) == 0 && stream.is_there && !stream.has_ended) end(s);
      if (stream.has_ended && stream.is_there && stream.inside == 0 && random_.below(4) == 0) {
        collector_->stream_removed(s);
        stream.is_there = false;
      }
      if (!stream.is_there && random_.below(100) == 0) add(s);
    }
    drain();
  }

  void drain() {
    while (complaint_.empty()) {
      const Step& step = collector_->next(now_);
      for (const Dropped& dropped : step.dropped) drop(dropped);
      if (step.firing == nullptr) {
        look_ns_ = step.look_again_ns;
        if (look_ns_ <= now_) complain("it asks to look again at once");
        return;
      }
      fire(*step.firing);
    }
  }

  void leave(const Item& item) {
    const ItemName name{item.stream, item.ordinal};
    if (waiting_.erase(name) == 0) complain("an item left twice, or never came");
    if (item.ordinal != streams_[item.stream].leaves++) complain("the items of a stream left out of order");
    log_ += " " + std::to_string(item.stream) + ":" + std::to_string(item.ordinal);
  }

  void drop(const Dropped& dropped) {
    const Item& item = dropped.item;
    log_ += "\n" + std::to_string(now_) + " dropped";
    leave(item);
    --streams_[item.stream].inside;
    ++settled_;
    if (dropped.cause == DropCause::failed) {
      if (!streams_[item.stream].failed) complain("an item of a stream that works was dropped as failed");
      return;
    }
    ++dropped_late_;
    if (!drops_) complain("a rule that drops nothing dropped an item");
    const Forecast& forecast = collector_->forecast();
    const int64_t longest_ns = 4 * forecast.curve().p95_ns(forecast.curve().count() - 1);
    if (item.due_ns > now_ + forecast.busy_for_ns(now_) + longest_ns + forecast.margin_ns())
      complain("an item was dropped that no firing would have made late");
  }

  void fire(const Firing& firing) {
    log_ += "\n" + std::to_string(now_) + " fired " + std::to_string(firing.bucket_items);
    uint32_t under_way = 0;
    for (const Flight& flight : flights_) under_way += flight.firing != nullptr;
    if (under_way >= group_.in_flight) complain("more firings than may be in flight");
    if (firing.slot >= group_.in_flight || flights_[firing.slot].firing) complain("a slot is used twice");
    uint32_t rows = 0;
    std::tuple<int64_t, uint32_t> last{kAlways, 0};
    for (const Item& item : firing.items) {
      rows += item.rows;
      const auto found = waiting_.find({item.stream, item.ordinal});
      if (found != waiting_.end()) last = std::max(last, {found->second.key_ns, item.stream});
      leave(item);
    }
    if (firing.items.empty() || rows != firing.rows) complain("a firing's rows are not those of its items");
    if (firing.rows > firing.bucket_items || firing.bucket_items > curve_.back().items)
      complain("a firing is too large");
    most_at_once_ = std::max<uint64_t>(most_at_once_, firing.items.size());
    check_overtaken(last);
    const auto bucket_ns = curve_[ServiceCurve(curve_).bucket_for(firing.bucket_items)].median_ns;
    int64_t took_ns = bucket_ns * (100 + static_cast<int64_t>(random_.below(spread_percent_ + 1))) / 100;
    if (random_.below(50) == 0) took_ns *= 20; // it hangs
    flights_[firing.slot] = {&firing, now_ + took_ns};
  }

  // The items that fired come before all that still wait.
  void check_overtaken(const std::tuple<int64_t, uint32_t>& last) {
    for (const auto& [name, waits] : waiting_)
      if (std::tuple<int64_t, uint32_t>{waits.key_ns, name.first} < last) complain("an item was overtaken");
  }

  void end_firing(uint32_t slot) {
    const Firing& firing = *flights_[slot].firing;
    log_ += "\n" + std::to_string(now_) + " ended " + std::to_string(firing.ordinal);
    for (const Item& item : firing.items) {
      --streams_[item.stream].inside;
      ++settled_;
    }
    flights_[slot].firing = nullptr;
    collector_->firing_ended(slot, now_);
  }

  bool advance_to_the_end() {
    int64_t next_ns = look_ns_;
    for (const Flight& flight : flights_)
      if (flight.firing) next_ns = std::min(next_ns, flight.ends_ns);
    if (next_ns == kNever) return false;
    now_ = std::max(now_, next_ns);
    for (uint32_t slot = 0; slot < flights_.size(); ++slot)
      if (flights_[slot].firing && flights_[slot].ends_ns <= now_) end_firing(slot);
    drain();
    return true;
  }

  std::string complain(const std::string& words) {
    if (complaint_.empty()) complaint_ = words + " at " + std::to_string(now_) + " ns";
    return complaint_;
  }

  Random random_;
  Group group_;
  std::vector<BucketTime> curve_;
  uint64_t spread_percent_ = 0;
  uint32_t kind_ = 0;
  bool has_priorities_ = false, drops_ = false;
  std::unique_ptr<Rule> rule_;
  std::unique_ptr<Collector> collector_;
  std::vector<Stream> streams_;
  std::array<Flight, kInFlightMost> flights_;
  std::map<ItemName, Waits> waiting_;
  int64_t now_ = 0, look_ns_ = kNever;
  uint64_t given_ = 0, settled_ = 0, dropped_late_ = 0, most_at_once_ = 0;
  std::string log_, complaint_;
};

TEST_CASE("B3, B5, B6, B7: random groups settle each item once, in order, none overtaken, and repeat") {
  const char* asked = std::getenv("MILLRACE_BATCH");
  const int64_t groups = asked ? std::atoll(asked) : millrace::test::part_of(1000);
  uint64_t given = 0, dropped_late = 0, most_at_once = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const uint64_t seed = random_seed() * 1'000'003ull + static_cast<uint64_t>(g);
    CAPTURE(seed);
    RandomGroup group(seed), again(seed);
    REQUIRE(group.run() == "");
    again.run();
    REQUIRE(group.log() == again.log());
    given += group.given();
    dropped_late += group.dropped_late();
    most_at_once = std::max(most_at_once, group.most_at_once());
  }
  MESSAGE(groups << " groups, " << given << " items, " << dropped_late << " dropped late, at most " << most_at_once
                 << " in a firing");
  CHECK(given > 0);
  if (groups >= 100) CHECK(dropped_late > 0);
}

} // namespace
} // namespace millrace::batch
