// The line of waiting items, and what leaves it.
#include "batch/collector.h"

#include <algorithm>
#include <utility>

#include "observe/error.h"

namespace millrace::batch {

uint32_t allowance_of(int64_t period_ns, int64_t budget_ns) {
  if (period_ns <= 0) return kAllowanceMost;
  const int64_t in_budget = budget_ns / period_ns + (budget_ns % period_ns != 0);
  return static_cast<uint32_t>(std::min<int64_t>(in_budget + 1, kAllowanceMost));
}

Collector::Collector(const Group& group, ServiceCurve curve, Rule& rule)
    : group_(group), forecast_(std::move(curve)), rule_(rule), streams_(group.streams_max) {
  MR_ASSERT(group.in_flight >= 1 && group.in_flight <= kInFlightMost, "a group has one or two firings in flight");
  line_.reserve(group.streams_max);
  dropped_.reserve(size_t{group.streams_max} * kAllowanceMost);
  for (Firing& firing : firings_) firing.items.reserve(forecast_.curve().items_max());
}

// ---- streams -------------------------------------------------------------------------------------------------------

void Collector::stream_added(uint32_t stream, const StreamTerms& terms, int64_t now_ns) {
  Stream& of = streams_[stream];
  MR_ASSERT(of.state == State::none, "a stream comes into a free place");
  MR_ASSERT(terms.priority <= 100, "a priority is a percentage");
  MR_ASSERT(terms.allowance >= 1 && terms.allowance <= kAllowanceMost, "an allowance is of 1 to kAllowanceMost items");
  of.state = State::live;
  of.terms = terms;
  of.last_ns = now_ns;
}

void Collector::stream_ended(uint32_t stream) {
  Stream& of = streams_[stream];
  MR_ASSERT(of.state != State::none, "the stream is there");
  if (of.state != State::failed) of.state = State::ended;
}

void Collector::stream_failed(uint32_t stream) {
  Stream& of = streams_[stream];
  MR_ASSERT(of.state != State::none, "the stream is there");
  if (of.state == State::failed) return;
  of.state = State::failed;
  failed_waiting_ += of.count;
}

void Collector::stream_removed(uint32_t stream) {
  Stream& of = streams_[stream];
  MR_ASSERT(of.state == State::ended || of.state == State::failed, "a stream ends before it is removed");
  MR_ASSERT(inside(stream) == 0, "a stream is removed once its items are settled");
  of.state = State::none;
}

// The time from which on no stream is waited for that could give an item before `until_ns` (B8), if none gives one
// meanwhile: now or earlier if there is none already, `until_ns` at the latest.
int64_t Collector::alone_from_ns(int64_t now_ns, int64_t until_ns) const {
  int64_t from_ns = now_ns;
  for (const Stream& of : streams_) {
    if (of.state != State::live || is_full(of)) continue;
    if (of.terms.period_ns == 0) return until_ns;
    const int64_t expected_ns = of.last_ns + of.terms.period_ns;
    if (expected_ns < until_ns) from_ns = std::max(from_ns, expected_ns + 2 * of.terms.period_ns);
  }
  return std::min(from_ns, until_ns);
}

// ---- the line ------------------------------------------------------------------------------------------------------

bool Collector::goes_before(uint32_t stream, uint32_t other) const {
  const Stream &left = streams_[stream], &right = streams_[other];
  const int64_t left_ns = left.items[left.first].deadline_ns, right_ns = right.items[right.first].deadline_ns;
  return left_ns != right_ns ? left_ns < right_ns : stream < other;
}

void Collector::sift_up(uint32_t place) {
  const uint32_t stream = line_[place];
  while (place > 0 && goes_before(stream, line_[(place - 1) / 2])) {
    line_[place] = line_[(place - 1) / 2];
    streams_[line_[place]].line_place = place;
    place = (place - 1) / 2;
  }
  line_[place] = stream;
  streams_[stream].line_place = place;
}

void Collector::sift_down(uint32_t place) {
  const uint32_t stream = line_[place];
  const auto count = static_cast<uint32_t>(line_.size());
  for (uint32_t child = 2 * place + 1; child < count; child = 2 * place + 1) {
    if (child + 1 < count && goes_before(line_[child + 1], line_[child])) ++child;
    if (!goes_before(line_[child], stream)) break;
    line_[place] = line_[child];
    streams_[line_[place]].line_place = place;
    place = child;
  }
  line_[place] = stream;
  streams_[stream].line_place = place;
}

void Collector::put_in_line(uint32_t stream) {
  line_.push_back(stream);
  sift_up(static_cast<uint32_t>(line_.size()) - 1);
}

void Collector::leave_line(uint32_t place) {
  const uint32_t last = line_.back();
  line_.pop_back();
  if (place == line_.size()) return;
  line_[place] = last;
  sift_up(place);
  sift_down(streams_[last].line_place);
}

// Takes the first item of the line.
Item Collector::take_first() {
  Stream& of = streams_[line_[0]];
  const Item item = of.items[of.first];
  of.first = (of.first + 1) % kAllowanceMost;
  rows_waiting_ -= item.rows;
  if (--of.count == 0)
    leave_line(0);
  else
    sift_down(0);
  return item;
}

bool Collector::give(uint32_t stream, uint64_t ordinal, int64_t now_ns, uint32_t rows, int64_t media_ns) {
  Stream& of = streams_[stream];
  MR_ASSERT(of.state == State::live, "a stream that has ended gives nothing");
  MR_ASSERT(rows >= 1 && rows <= forecast_.curve().items_max(), "an item fits into the largest firing");
  if (is_full(of)) return false;
  of.last_ns = now_ns;
  const int64_t budget_ns = group_.budget_ns;
  Item item{stream, ordinal, rows, now_ns, media_ns, kNever};
  if (group_.order == Order::deadline) {
    item.due_ns = now_ns + budget_ns;
    item.deadline_ns = item.due_ns - budget_ns / 100 * of.terms.priority;
  }
  of.items[(of.first + of.count) % kAllowanceMost] = item;
  rows_waiting_ += rows;
  if (of.count++ == 0) put_in_line(stream);
  if (is_full(of)) ++full_;
  rule_.gave(now_ns, rows, forecast_);
  return true;
}

// ---- what leaves ---------------------------------------------------------------------------------------------------

void Collector::drop_first(DropCause cause) {
  if (is_full(streams_[line_[0]])) --full_;
  dropped_.push_back({take_first(), cause});
}

void Collector::drop_failed() {
  for (uint32_t s = 0; s < streams_.size(); ++s) {
    Stream& of = streams_[s];
    if (of.state != State::failed || of.count == 0) continue;
    if (is_full(of)) --full_;
    for (; of.count > 0; --of.count) {
      dropped_.push_back({of.items[of.first], DropCause::failed});
      rows_waiting_ -= of.items[of.first].rows;
      of.first = (of.first + 1) % kAllowanceMost;
    }
    leave_line(of.line_place);
  }
  failed_waiting_ = 0;
}

uint32_t Collector::free_slot() const {
  uint32_t slot = 0;
  while (slot_used_[slot]) ++slot;
  return slot;
}

// Fills a firing with the first items of the line that fit; those that are late are dropped.
void Collector::form(const Choice& choice, int64_t now_ns) {
  const uint32_t slot = free_slot();
  Firing& firing = firings_[slot];
  firing.items.clear();
  firing.rows = 0;
  int64_t due_ns = kNever;
  while (!line_.empty()) {
    const Stream& of = streams_[line_[0]];
    const Item& first = of.items[of.first];
    if (first.due_ns < choice.drop_due_before_ns) {
      drop_first(DropCause::late);
      continue;
    }
    // An item of more rows than the rule asked for fires alone, in the bucket that it needs.
    if (!firing.items.empty() && firing.rows + first.rows > choice.fire) break;
    due_ns = std::min(due_ns, first.due_ns);
    firing.rows += first.rows;
    ++streams_[line_[0]].under_way;
    firing.items.push_back(take_first());
    if (firing.rows >= choice.fire) break;
  }
  if (firing.items.empty()) return;
  const ServiceCurve& curve = forecast_.curve();
  const size_t bucket = curve.bucket_for(firing.rows);
  firing.slot = slot;
  firing.ordinal = firings_formed_++;
  firing.bucket_items = curve.items(bucket);
  slot_used_[slot] = true;
  slot_due_ns_[slot] = due_ns;
  forecast_.started(slot, bucket, now_ns);
  step_.firing = &firing;
}

const Step& Collector::next(int64_t now_ns) {
  dropped_.clear();
  step_ = {};
  if (failed_waiting_ > 0) drop_failed();
  while (!line_.empty() && forecast_.under_way() < group_.in_flight) {
    const Stream& of = streams_[line_[0]];
    const Item& first = of.items[of.first];
    int64_t due_ns = kNever;
    for (uint32_t s = 0; s < kInFlightMost; ++s)
      if (slot_used_[s]) due_ns = std::min(due_ns, slot_due_ns_[s]);
    Choice choice = rule_.choose({now_ns, rows_waiting_, first.given_ns, first.deadline_ns, forecast_.under_way(),
                                  due_ns, full_ > 0, forecast_});
    if (first.due_ns < choice.drop_due_before_ns) {
      drop_first(DropCause::late);
      continue;
    }
    step_.look_again_ns = choice.look_again_ns;
    if (choice.fire == 0 && choice.fire_if_alone > 0) {
      step_.look_again_ns = alone_from_ns(now_ns, choice.look_again_ns);
      if (step_.look_again_ns <= now_ns) choice.fire = choice.fire_if_alone;
    }
    if (choice.fire > 0) {
      step_.look_again_ns = kNever;
      form(choice, now_ns);
    }
    if (choice.fire == 0 || step_.firing != nullptr) break;
  }
  step_.dropped = dropped_;
  return step_;
}

void Collector::firing_ended(uint32_t slot, int64_t now_ns, bool completed) {
  MR_ASSERT(slot < group_.in_flight && slot_used_[slot], "a firing ends once");
  const Firing& firing = firings_[slot];
  int64_t oldest_ns = kNever;
  for (const Item& item : firing.items) {
    Stream& of = streams_[item.stream];
    if (is_full(of)) --full_;
    --of.under_way;
    oldest_ns = std::min(oldest_ns, item.given_ns);
  }
  slot_used_[slot] = false;
  forecast_.ended(slot, now_ns, completed);
  rule_.ended({now_ns, firing.rows, firing.bucket_items, oldest_ns, slot_due_ns_[slot]}, forecast_);
}

} // namespace millrace::batch
