// Evaluates one placement: the load of each resource, the length of a tick on a list schedule, and the bytes that are
// copied.
#include "plan/evaluate.h"

#include <cmath>

namespace millrace::plan {

namespace {

// The part of a period to which a resource may be filled (5.3).
constexpr double kFillMax = 0.8;

// Compares what counts before the latency. Negative: `a` is better; 0: neither is.
int order_of_loads(const Prices& prices, const Score& a, const Score& b) {
  if (!same(a.overload, b.overload)) return a.overload < b.overload ? -1 : 1;
  if (prices.period_us == 0 && !same(a.load_us, b.load_us)) return a.load_us < b.load_us ? -1 : 1;
  return 0;
}

} // namespace

bool same(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

Evaluator::Evaluator(const Prices& prices, const WaysBySize& ways)
    : prices_(prices),
      made_by_(prices.tasks.size(),
               [&](const auto& add) {
                 for (uint32_t b = 0; b < prices.buffers.size(); ++b) add(prices.buffers[b].producer, b);
               }),
      read_by_(prices.tasks.size(),
               [&](const auto& add) {
                 for (uint32_t b = 0; b < prices.buffers.size(); ++b)
                   for (const uint32_t reader : prices.buffers[b].readers) add(reader, b);
               }),
      ways_(ways),
      can_access_(std::any_of(prices.hops.begin(), prices.hops.end(),
                              [](const HopPrice& hop) { return hop.access_us_per_byte != Prices::kInfeasible; })),
      opens_region_(prices.tasks.size(), false),
      worker_free_(prices.domains) {}

Score Evaluator::operator()(const Places& places) {
  Score score = loads(places);
  score.latency_us = latency_us(places, Prices::kInfeasible);
  return score;
}

bool Evaluator::improves(const Places& places, Score& score, Goal goal) {
  Score with = loads(places);
  int order = order_of_loads(prices_, with, score);
  const bool loads_count = prices_.period_us == 0 || score.overload > 0;
  if (order == 0 && goal == Goal::even && loads_count && !same(with.next_us, score.next_us))
    order = with.next_us < score.next_us ? -1 : 1;
  if (order > 0) return false;
  with.latency_us = latency_us(places, order < 0 ? Prices::kInfeasible : score.latency_us);
  if (order == 0 && !is_better(prices_, with, score)) return false;
  score = with;
  return true;
}

Score Evaluator::loads(const Places& places) {
  Score score;
  load_.assign(prices_.domains, 0);
  engine_.assign(prices_.domains * prices_.domains, 0);
  for (uint32_t t = 0; t < places.size(); ++t) {
    const Prices::Task& task = prices_.tasks[t];
    const double us = (task.us[places[t]] + reading_us(t, places)) * task.share;
    load_[places[t]] += us;
    score.load_us = std::max(score.load_us, us / task.streams); // calls of one stream's task never overlap
  }
  add_regions(places);
  for (uint32_t b = 0; b < prices_.buffers.size(); ++b) {
    const Prices::Buffer& buffer = prices_.buffers[b];
    each_copy(prices_, buffer, ways_.of(b), places, [&](uint32_t from, uint32_t to) {
      const HopPrice& hop = prices_.hop(from, to);
      const double us = buffer.share * ways_.of(b).hop_us(from, to);
      engine_[prices_.engine(from, to)] += us;
      if (!hop.overlaps_compute) {
        load_[prices_.submitter(from, to)] += us;
      } else if (!prices_.crossing_us.empty()) {
        const uint32_t device = prices_.submitter(from, to);
        load_[device] += buffer.share * prices_.crossing_us[device];
      }
      score.bytes += buffer.share * buffer.bytes;
      ++score.copies;
    });
  }
  double fullest_us = 0;
  const auto add = [&](double us) {
    score.next_us = std::max(score.next_us, std::min(us, fullest_us));
    fullest_us = std::max(fullest_us, us);
  };
  for (uint32_t d = 0; d < prices_.domains; ++d) add(load_[d] / std::max(1u, prices_.workers[d]));
  for (const double us : engine_) add(us);
  score.load_us = std::max(score.load_us, fullest_us);
  if (prices_.period_us > 0) score.overload = std::max(0.0, score.load_us / (kFillMax * prices_.period_us) - 1);
  return score;
}

void Evaluator::add_regions(const Places& places) {
  if (prices_.region_us.empty()) return;
  const uint32_t domains = prices_.domains;
  passed_.assign(places.size() * domains, 0);
  region_share_.assign(places.size() * domains, 0);
  for (uint32_t t = 0; t < places.size(); ++t) {
    const uint32_t here = places[t];
    uint32_t* const passed = &passed_[t * domains];
    uint32_t region = 1;
    for (const uint32_t b : read_by_.of(t)) {
      const uint32_t producer = prices_.buffers[b].producer;
      if (producer >= t) continue; // by a delay, from an earlier tick
      const uint32_t* const before = &passed_[producer * domains];
      for (uint32_t d = 0; d < domains; ++d) passed[d] = std::max(passed[d], before[d]);
      region = std::max(region, before[here] + (places[producer] == here ? 0 : 1));
    }
    passed[here] = std::max(passed[here], region);
    double& share = region_share_[here * places.size() + region - 1];
    opens_region_[t] = share == 0;
    if (prices_.tasks[t].share <= share) continue;
    load_[here] += (prices_.tasks[t].share - share) * prices_.region_us[here];
    share = prices_.tasks[t].share;
  }
}

double Evaluator::reading_us(uint32_t t, const Places& places) const {
  if (!can_access_) return 0;
  double us = 0;
  for (const uint32_t b : read_by_.of(t)) {
    const Prices::Buffer& buffer = prices_.buffers[b];
    if (reads_in_place(prices_, buffer, ways_.of(b), places, places[t]))
      us += buffer.bytes * prices_.hop(places[buffer.producer], places[t]).access_us_per_byte;
  }
  return us;
}

double Evaluator::latency_us(const Places& places, double enough_us) {
  there_.assign(prices_.buffers.size() * prices_.domains, 0);
  engine_.assign(prices_.domains * prices_.domains, 0);
  for (uint32_t d = 0; d < prices_.domains; ++d) worker_free_[d].assign(std::max(1u, prices_.workers[d]), 0);
  double last = 0;
  for (uint32_t t = 0; t < prices_.tasks.size(); ++t) {
    const uint32_t domain = places[t];
    double ready = 0;
    for (const uint32_t b : read_by_.of(t)) ready = std::max(ready, there_[b * prices_.domains + domain]);
    double& worker = *std::min_element(worker_free_[domain].begin(), worker_free_[domain].end());
    worker = std::max(ready, worker) + prices_.tasks[t].latency_us(domain) + reading_us(t, places);
    if (opens_region_[t]) worker += prices_.region_us[domain];
    last = std::max(last, worker);
    if (last > enough_us && !same(last, enough_us)) break;
    for (const uint32_t b : made_by_.of(t)) carry(b, worker, places);
  }
  return last;
}

void Evaluator::carry(uint32_t b, double made, const Places& places) {
  const Prices::Buffer& buffer = prices_.buffers[b];
  double* const there = &there_[b * prices_.domains];
  std::fill(there, there + prices_.domains, made); // also for readers in place
  each_copy(prices_, buffer, ways_.of(b), places, [&](uint32_t from, uint32_t to) {
    const HopPrice& hop = prices_.hop(from, to);
    double& engine = engine_[prices_.engine(from, to)];
    engine = std::max(engine, there[from]);
    if (!hop.overlaps_compute) engine = std::max(engine, worker_free_[prices_.submitter(from, to)][0]);
    engine += ways_.late_hop_us(b, from, to);
    if (!hop.overlaps_compute) worker_free_[prices_.submitter(from, to)][0] = engine;
    there[to] = engine;
  });
}

Score evaluate(const Prices& prices, const Places& places) {
  const WaysBySize ways(prices);
  return Evaluator(prices, ways)(places);
}

bool is_better(const Prices& prices, const Score& a, const Score& b) {
  if (const int order = order_of_loads(prices, a, b); order != 0) return order < 0;
  if (!same(a.latency_us, b.latency_us)) return a.latency_us < b.latency_us;
  if (!same(a.bytes, b.bytes)) return a.bytes < b.bytes;
  return a.copies < b.copies;
}

double sum_us(const Prices& prices, const Places& places) {
  const WaysBySize ways(prices);
  double sum = 0;
  for (size_t t = 0; t < places.size(); ++t) sum += prices.tasks[t].streams * prices.tasks[t].us[places[t]];
  for (size_t b = 0; b < prices.buffers.size(); ++b) {
    each_copy(prices, prices.buffers[b], ways.of(b), places,
              [&](uint32_t from, uint32_t to) { sum += prices.buffers[b].streams * ways.of(b).hop_us(from, to); });
  }
  return sum;
}

} // namespace millrace::plan
