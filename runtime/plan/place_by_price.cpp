// Makes prices from the graph, and words from the result (semantics.md 5.3 to 5.6); placement.h has the calculation.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/draft.h"
#include "plan/format_text.h"
#include "plan/machine.h"
#include "plan/pace.h"
#include "plan/placement.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// Guesses for a CUDA device that was not measured, from an H200 (docs/performance.md). `slope`: a graph of 8 handlers
// takes 10.8 µs, each of them 0.51. `crossover`, 64×36: a tick with one region between two copies takes 17.9 µs, some 4
// of them in its body.
constexpr double kGuessedRegionUs = 6.7, kGuessedCrossingUs = 3.6;

// A forbidden copy would need an infinite price, so both ends of its edge stay where the order of devices puts them.
bool is_tied(const Draft& draft, uint32_t h) {
  return std::any_of(draft.edges.begin(), draft.edges.end(), [&](const DraftEdge& edge) {
    return (edge.source == h || edge.target == h) && edge.declared->forbid_copy;
  });
}

class PlaceByPrice {
 public:
  PlaceByPrice(Draft& draft, const std::vector<std::vector<uint32_t>>& choices)
      : draft_(draft), choices_(choices), moves_(draft.handlers.size(), Moves::no), task_of_(draft.handlers.size()) {}

  void run() {
    find_free();
    if (free_ == 0) return;
    find_tasks();
    make_prices();
    const Choice choice = choose_places(prices_);
    std::vector<std::string> reasons(prices_.tasks.size());
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (moves_[h] == Moves::no) continue;
      draft_.handlers[h].domain = choice.places[task_of_[h]];
      std::string& reason = reasons[task_of_[h]];
      if (reason.empty()) reason = moves_[h] == Moves::freely ? reason_of(h, choice) : "placed with what it reads";
      draft_.handlers[h].reason = reason;
    }
    draft_.plan.notes.push_back(summary(choice));
  }

 private:
  // How the calculation may move a handler.
  enum class Moves : uint8_t { no, freely, follows };

  // The time of a call there if it is more than a guess; else 0.
  Cost known(const DraftHandler& handler, uint32_t domain) const {
    const Cost cost = cost_in(draft_, handler, domain);
    return cost.sure ? cost : Cost{};
  }

  void find_free() {
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (choices_[h].size() < 2 || !is_priced(draft_, h, choices_[h])) continue;
      moves_[h] = Moves::freely;
      ++free_;
    }
    // Handlers that only read are moved with the others, at no price: if they were fixed, they would charge the others
    // for a copy.
    for (uint32_t h = 0; h < draft_.handlers.size() && free_ > 0; ++h)
      if (follows_inputs(draft_, h, choices_[h]) && !is_tied(draft_, h)) moves_[h] = Moves::follows;
  }

  // Numbers the tasks, in the order of their first handlers. Streams of a set are alike if their handlers have the same
  // choices; those of one template are one task then.
  void find_tasks() {
    std::vector<uint32_t> kinds(draft_.handlers.size(), kNone); // by handler of a stream: streams of a kind are alike
    std::map<std::pair<std::string, std::string>, std::vector<uint32_t>> streams; // by set and name: its handlers
    for (const uint32_t h : draft_.order)
      if (!declared(h).stream.empty()) streams[{set_of(h), declared(h).stream}].push_back(h);
    using Kind = std::vector<std::tuple<std::string, Moves, std::vector<uint32_t>>>; // by template, in order
    std::map<std::pair<std::string, Kind>, uint32_t> known;
    for (const auto& [name, handlers] : streams) {
      Kind kind;
      for (const uint32_t h : handlers) {
        const bool moves = moves_[h] != Moves::no;
        kind.emplace_back(declared(h).written_as, moves_[h],
                          moves ? choices_[h] : std::vector<uint32_t>{draft_.handlers[h].domain});
      }
      std::sort(kind.begin(), kind.end());
      const auto at = known.try_emplace({name.first, std::move(kind)}, known.size()).first;
      for (const uint32_t h : handlers) kinds[h] = at->second;
    }
    std::map<std::pair<uint32_t, std::string>, uint32_t> tasks; // by kind of streams and template
    for (const uint32_t h : draft_.order) {
      const auto next = static_cast<uint32_t>(handlers_of_.size());
      task_of_[h] =
          kinds[h] == kNone ? next : tasks.try_emplace({kinds[h], declared(h).written_as}, next).first->second;
      if (task_of_[h] == next) handlers_of_.emplace_back();
      handlers_of_[task_of_[h]].push_back(h);
    }
  }

  const graph::Handler& declared(uint32_t h) const { return *draft_.handlers[h].declared; }
  const std::string& set_of(uint32_t h) const { return draft_.plan.clocks[draft_.handlers[h].clock].set; }

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
    for (const std::vector<uint32_t>& handlers : handlers_of_) add_task(handlers, fastest);
    add_buffers(fastest);
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

  // The share of ticks on which the handler fires.
  double share_of(uint32_t h, double fastest) const {
    const double rate = rate_of(draft_.handlers[h].clock);
    return (fastest > 0 && rate > 0 ? rate / fastest : 1) / declared(h).every;
  }

  // `handlers`: one, or those that a template has in streams that are alike.
  void add_task(const std::vector<uint32_t>& handlers, double fastest) {
    Prices::Task task;
    task.us.assign(prices_.domains, Prices::kInfeasible);
    task.late_us = task.us;
    task.streams = static_cast<uint32_t>(handlers.size());
    task.share = 0;
    for (const uint32_t h : handlers) task.share += share_of(h, fastest);
    const uint32_t first = handlers[0];
    const bool moves = moves_[first] != Moves::no;
    for (const uint32_t d : moves ? choices_[first] : std::vector<uint32_t>{draft_.handlers[first].domain}) {
      task.us[d] = task.late_us[d] = 0;
      for (const uint32_t h : handlers) { // pictures of several sizes: the mean time, and the latest of them
        const Cost cost = known(draft_.handlers[h], d);
        task.us[d] += cost.us * share_of(h, fastest) / task.share;
        task.late_us[d] = std::max(task.late_us[d], cost.late_us);
      }
    }
    prices_.tasks.push_back(std::move(task));
  }

  // True for a lasting value that every reader takes by `latest` and lets go with its tick (semantics.md 3.7).
  bool is_copied_once(uint32_t h, uint32_t o) const {
    const DraftHandler& handler = draft_.handlers[h];
    if (!(handler.info->ports[handler.output_port[o]].raw.flags & MR_PORT_LASTING)) return false;
    return std::none_of(draft_.edges.begin(), draft_.edges.end(), [&](const DraftEdge& edge) {
      if (edge.source != h || edge.source_output != o) return false;
      const DraftHandler& reader = draft_.handlers[edge.target];
      const bool is_kept = reader.info->ports[reader.input_port[edge.target_input]].raw.keeps > 0;
      return !edge.declared || edge.declared->policy != graph::Policy::latest || is_kept;
    });
  }

  // A buffer for each output; one for those of a task's streams that are as large and have the same readers.
  void add_buffers(double fastest) {
    std::vector<std::vector<const DraftEdge*>> edges(draft_.handlers.size()); // by source
    for (const DraftEdge& edge : draft_.edges) edges[edge.source].push_back(&edge);
    for (const std::vector<uint32_t>& handlers : handlers_of_) {
      std::map<std::tuple<uint32_t, double, std::vector<uint32_t>>, size_t> of_task; // by output, bytes and readers
      for (const uint32_t h : handlers) {
        const DraftHandler& handler = draft_.handlers[h];
        for (uint32_t o = 0; o < handler.output_count; ++o) {
          Prices::Buffer buffer;
          buffer.producer = task_of_[h];
          buffer.share = share_of(h, fastest);
          buffer.bytes = is_copied_once(h, o) ? 0 : static_cast<double>(copied_bytes(handler.outputs[o]));
          for (const DraftEdge* edge : edges[h])
            if (edge->source_output == o) buffer.readers.push_back(task_of_[edge->target]);
          if (buffer.readers.empty()) continue;
          const auto [at, fresh] = of_task.try_emplace({o, buffer.bytes, buffer.readers}, prices_.buffers.size());
          if (fresh) {
            prices_.buffers.push_back(std::move(buffer));
            continue;
          }
          prices_.buffers[at->second].share += buffer.share;
          ++prices_.buffers[at->second].streams;
        }
      }
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
        fmt::format("placed by price: {} of {} handlers, {}: the fullest is busy for {} a tick, which takes {}", free_,
                    draft_.handlers.size(), choice.exact ? "all placements tried" : "by search",
                    time_words(choice.score.load_us), time_words(choice.score.latency_us));
    if (!choice.exact) words += "; none is below " + time_words(choice.bound_us);
    if (choice.score.overload > 0)
      words +=
          fmt::format("; that is {:.0f} % more than may be, and the least that there is", choice.score.overload * 100);
    return words;
  }

  Draft& draft_;
  const std::vector<std::vector<uint32_t>>& choices_;
  std::vector<Moves> moves_;                       // by handler
  size_t free_ = 0;                                // handlers that move freely
  std::vector<uint32_t> task_of_;                  // by handler
  std::vector<std::vector<uint32_t>> handlers_of_; // by task: one, or one of each stream
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
  if (draft.options.by_price && domains > 1 && domains <= kDomainsMax) PlaceByPrice(draft, choices).run();
}

} // namespace millrace::plan
