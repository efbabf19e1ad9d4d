// Makes prices from the graph, and words from the result (semantics.md 5.3 to 5.6); placement.h has the calculation.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/draft.h"
#include "plan/placement.h"

namespace millrace::plan {

namespace {

// Guesses for a CUDA device that was not measured, from an H200 (docs/performance.md). `slope`: a graph of 8 handlers
// takes 10.8 µs, each of them 0.51. `crossover`, 64×36: a tick with one region between two copies takes 17.9 µs, some 4
// of them in its body.
constexpr double kGuessedRegionUs = 6.7, kGuessedCrossingUs = 3.6;

std::string time_words(double us) {
  return us >= 10'000 ? fmt::format("{:.1f} ms", us / 1000) : fmt::format("{:.0f} µs", us);
}

// A forbidden copy would need an infinite price, so both ends of its edge stay where the order of devices puts them.
bool is_tied(const Draft& draft, uint32_t h) {
  return std::any_of(draft.edges.begin(), draft.edges.end(), [&](const DraftEdge& edge) {
    return (edge.source == h || edge.target == h) && edge.declared->forbid_copy;
  });
}

class Pricing {
 public:
  Pricing(Draft& draft, const std::vector<std::vector<uint32_t>>& choices)
      : draft_(draft), choices_(choices), task_of_(draft.handlers.size()) {
    for (uint32_t t = 0; t < draft.order.size(); ++t) task_of_[draft.order[t]] = t;
  }

  void run() {
    find_free();
    if (free_.empty()) return;
    make_prices();
    const Choice choice = choose_places(prices_);
    for (const auto* moved : {&free_, &followers_})
      for (const uint32_t h : *moved) draft_.handlers[h].domain = choice.places[task_of_[h]];
    for (const uint32_t h : free_) draft_.handlers[h].reason = reason_of(h, choice);
    for (const uint32_t h : followers_) draft_.handlers[h].reason = "placed with what it reads";
    draft_.plan.notes.push_back(summary(choice));
  }

 private:
  // The time of a call there if it is more than a guess; else 0.
  Cost known(const DraftHandler& handler, uint32_t domain) const {
    const Cost cost = cost_in(draft_, handler, domain);
    return cost.sure ? cost : Cost{};
  }

  void find_free() {
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (choices_[h].size() > 1 && is_priced(draft_, h, choices_[h])) free_.push_back(h);
    }
    // Handlers that only read are moved with the others, at no price: if they were fixed, they would charge the others
    // for a copy.
    for (uint32_t h = 0; h < draft_.handlers.size() && !free_.empty(); ++h)
      if (follows_inputs(draft_, h, choices_[h]) && !is_tied(draft_, h)) followers_.push_back(h);
  }

  double rate_of(uint32_t clock) const {
    const graph::Rational& rate = draft_.plan.clocks[clock].rate;
    return rate.numerator > 0 ? static_cast<double>(rate.numerator) / static_cast<double>(rate.denominator) : 0;
  }

  void make_prices() {
    const auto domains = static_cast<uint32_t>(draft_.plan.domains.size());
    prices_.domains = domains;
    prices_.workers.assign(domains, 1); // one submits per device, and its kernels run one after another
    prices_.hosts = 0;
    for (uint32_t d = 0; d < domains; ++d) {
      prices_.hosts |= uint64_t{draft_.plan.on_host(d)} << d;
      if (draft_.plan.on_host(d)) prices_.workers[d] = std::max(1u, draft_.machine.workers_of(draft_.plan.domains[d]));
      prices_.pushes |= uint64_t{draft_.plan.domains[d].pushes} << d;
    }
    add_hops();
    add_launches();
    double fastest = 0; // the highest rate of the clocks that do not wait
    for (uint32_t c = 0; c < draft_.plan.clocks.size(); ++c)
      if (draft_.plan.clocks[c].realtime()) fastest = std::max(fastest, rate_of(c));
    if (fastest > 0) prices_.period_us = 1e6 / fastest;
    for (const uint32_t h : draft_.order) add_task(h, fastest);
    for (const uint32_t h : draft_.order) add_buffers(h);
  }

  void add_hops() {
    const uint32_t domains = prices_.domains;
    prices_.hops.assign(domains * domains, {});
    prices_.engines.resize(domains * domains);
    std::map<std::string, uint32_t> named;
    for (uint32_t from = 0; from < domains; ++from) {
      for (uint32_t to = 0; to < domains; ++to) {
        const uint32_t at = from * domains + to;
        prices_.engines[at] = at;
        const Hop* hop = find_hop(draft_, from, to);
        if (!hop) continue;
        prices_.hops[at] = hop->price;
        if (!hop->engine.empty()) prices_.engines[at] = named.try_emplace(hop->engine, at).first->second;
      }
    }
  }

  void add_launches() {
    std::string guessed;
    for (uint32_t d = 0; d < prices_.domains; ++d) {
      if (draft_.plan.on_host(d)) continue;
      LaunchCost cost;
      for (const LaunchCost& known : draft_.machine.launches)
        if (known.domain == name(d)) cost = known; // the last counts
      if (cost.domain.empty() && draft_.plan.domains[d].bodies == Bodies::enqueued) {
        cost = {name(d), kGuessedRegionUs, kGuessedCrossingUs};
        guessed += (guessed.empty() ? "" : ", ") + name(d);
      }
      if (cost.region_us <= 0 && cost.copy_us <= 0) continue;
      prices_.region_us.resize(prices_.domains);
      prices_.crossing_us.resize(prices_.domains);
      prices_.region_us[d] = cost.region_us;
      prices_.crossing_us[d] = cost.copy_us;
    }
    if (!guessed.empty())
      draft_.plan.notes.push_back("launches not measured: " + guessed + "; `millrace calibrate` does that");
  }

  void add_task(uint32_t h, double fastest) {
    const DraftHandler& handler = draft_.handlers[h];
    Prices::Task task;
    task.us.assign(prices_.domains, Prices::kInfeasible);
    task.late_us = task.us;
    const auto is_in = [&](const std::vector<uint32_t>& list) {
      return std::find(list.begin(), list.end(), h) != list.end();
    };
    const bool is_free = is_in(free_) || is_in(followers_);
    for (const uint32_t d : is_free ? choices_[h] : std::vector<uint32_t>{handler.domain}) {
      const Cost cost = known(handler, d);
      task.us[d] = cost.us;
      task.late_us[d] = cost.late_us;
    }
    const double rate = rate_of(handler.clock);
    task.share = (fastest > 0 && rate > 0 ? rate / fastest : 1) / handler.declared->every;
    prices_.tasks.push_back(std::move(task));
  }

  void add_buffers(uint32_t h) {
    const DraftHandler& handler = draft_.handlers[h];
    for (uint32_t o = 0; o < handler.output_count; ++o) {
      Prices::Buffer buffer;
      buffer.producer = task_of_[h];
      buffer.share = prices_.tasks[task_of_[h]].share;
      buffer.bytes = static_cast<double>(copied_bytes(handler.outputs[o]));
      for (const DraftEdge& edge : draft_.edges)
        if (edge.source == h && edge.source_output == o) buffer.readers.push_back(task_of_[edge.target]);
      if (!buffer.readers.empty()) prices_.buffers.push_back(std::move(buffer));
    }
  }

  const std::string& name(uint32_t domain) const { return draft_.plan.domains[domain].name; }

  // "40 µs here, 400 µs on cpu; there a tick would take 900 µs, not 540 µs": the best of the alternatives.
  std::string reason_of(uint32_t h, const Choice& choice) const {
    const uint32_t t = task_of_[h], here = choice.places[t];
    uint32_t other = kNone;
    Score score;
    for (const uint32_t d : choices_[h]) {
      if (d == here) continue;
      Places places = choice.places;
      places[t] = d;
      const Score with = evaluate(prices_, places);
      if (other == kNone || is_better(prices_, with, score)) other = d, score = with;
    }
    const std::string calls = time_words(prices_.tasks[t].us[here]) + " a call, " +
                              time_words(prices_.tasks[t].us[other]) + " on " + name(other) + "; there ";
    const bool by_load = score.overload > choice.score.overload || prices_.period_us == 0;
    const double with = by_load ? score.load_us : score.latency_us;
    const double without = by_load ? choice.score.load_us : choice.score.latency_us;
    if (with - without < 0.5)
      return calls + fmt::format("it would be no faster, and {:.0f} KiB a tick would be copied, not {:.0f}",
                                 score.bytes / 1024, choice.score.bytes / 1024);
    return calls + (by_load ? "the fullest would be busy for " : "a tick would take ") + time_words(with) + ", not " +
           time_words(without);
  }

  std::string summary(const Choice& choice) const {
    std::string words =
        fmt::format("placed by price: {} of {} handlers, {}: the fullest is busy for {} a tick, which takes {}",
                    free_.size(), draft_.handlers.size(), choice.exact ? "all placements tried" : "by search",
                    time_words(choice.score.load_us), time_words(choice.score.latency_us));
    if (!choice.exact) words += "; none is below " + time_words(choice.bound_us);
    if (choice.score.overload > 0)
      words +=
          fmt::format("; that is {:.0f} % more than may be, and the least that there is", choice.score.overload * 100);
    return words;
  }

  Draft& draft_;
  const std::vector<std::vector<uint32_t>>& choices_;
  std::vector<uint32_t> task_of_; // by handler
  std::vector<uint32_t> free_;    // handlers
  std::vector<uint32_t> followers_;
  Prices prices_;
};

} // namespace

bool is_priced(const Draft& draft, uint32_t h, const std::vector<uint32_t>& choices) {
  const auto is_known = [&](uint32_t d) {
    const Cost cost = cost_in(draft, draft.handlers[h], d);
    return cost.sure && cost.us > 0;
  };
  return !is_tied(draft, h) && std::all_of(choices.begin(), choices.end(), is_known);
}

void place_by_price(Draft& draft, const std::vector<std::vector<uint32_t>>& choices) {
  const size_t domains = draft.plan.domains.size();
  if (draft.options.by_price && domains > 1 && domains <= kDomainsMax) Pricing(draft, choices).run();
}

} // namespace millrace::plan
