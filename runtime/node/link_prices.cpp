// Asks nodes to carry bytes, and makes prices from the times; see link_prices.h.
#include "node/link_prices.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace millrace::node {

namespace {

// A question begins with this and the number of bytes of its answer; the rest of it is there to be carried.
constexpr std::string_view kCarry = "carry ";
constexpr size_t kAnswerBytesMax = 1 << 20;

// Each size is carried so often; the first ones open the way for the others.
constexpr int kSmallCarries = 6, kCarries = 3;
// A larger size is not tried once a smaller one took so long: the times are in proportion then.
constexpr double kSlowUs = 300'000;

// The times of some carries of one size.
struct Carries {
  double least_us = plan::HopPrice::kInfeasible, most_us = 0; // the first is not among `most`: it opens the way
};

template <class Carry>
Carries carry_often(int times, Carry carry) {
  Carries all;
  for (int i = 0; i < times; ++i) {
    const double us = carry();
    all.least_us = std::min(all.least_us, us);
    if (i > 0 || times == 1) all.most_us = std::max(all.most_us, us);
    if (us > kSlowUs) break;
  }
  return all;
}

} // namespace

std::optional<std::string> LinkPrices::answer(const std::string& question) {
  if (!question.starts_with(kCarry)) return std::nullopt;
  size_t bytes = 0;
  std::from_chars(question.data() + kCarry.size(), question.data() + question.size(), bytes);
  return std::string(std::clamp(bytes, size_t{1}, kAnswerBytesMax), '-'); // an empty answer means that there is none
}

double LinkPrices::carry_us(const std::string& node, const AskNodes& ask, uint64_t there, uint64_t back) const {
  const std::string question = std::string(kCarry) + std::to_string(back) + " " + std::string(there, '-');
  const int64_t begin_ns = time_.now_ns();
  ask(node, question);
  return static_cast<double>(time_.now_ns() - begin_ns) / 1000;
}

LinkPrices::Link LinkPrices::measure(const std::string& node, const std::string& coordinator,
                                     const AskNodes& ask) const {
  const auto carries = [&](const std::string& to, int times, uint64_t there, uint64_t back) {
    return carry_often(times, [&] { return carry_us(to, ask, there, back); });
  };
  const Carries small = carries(node, kSmallCarries, 0, 0);
  const double own_us = carries(coordinator, kSmallCarries, 0, 0).least_us;
  const double round_trip_us = std::max(0.0, small.least_us - own_us);
  const double jitter_us = std::max(0.0, small.most_us - small.least_us);
  const auto one_way = [&](bool back) {
    plan::HopPrice price(round_trip_us / 2, 0);
    bool is_slow = false;
    for (size_t i = 0; i < plan::kHopSizes.size(); ++i) {
      const uint64_t bytes = plan::kHopSizes[i];
      if (bytes > kAnswerBytesMax || is_slow) {
        price.us_per_byte[i] = price.us_per_byte[i - 1];
      } else {
        const uint64_t there = back ? 0 : bytes, here = back ? bytes : 0;
        const double us = carries(node, kCarries, there, here).least_us;
        const double words_us = carries(coordinator, kCarries, there, here).least_us;
        is_slow = us > kSlowUs;
        price.us_per_byte[i] = std::max(0.0, us - words_us - round_trip_us) / static_cast<double>(bytes);
      }
      price.p99_us[i] = price.latency_us + price.us_per_byte[i] * static_cast<double>(bytes) + jitter_us / 2;
    }
    return price;
  };
  return {one_way(false), one_way(true)};
}

std::vector<plan::Hop> LinkPrices::all(const std::vector<std::string>& nodes, const AskNodes& ask) {
  const std::string coordinator = nodes[0] + "/cpu";
  std::vector<plan::Hop> hops;
  for (size_t n = 1; n < nodes.size(); ++n) {
    const auto [at, fresh] = known_.try_emplace(nodes[n]);
    if (fresh) at->second = measure(nodes[n], nodes[0], ask);
    const std::string there = nodes[n] + "/cpu";
    hops.push_back({coordinator, there, at->second.there, {}, nodes[0] + " to " + nodes[n]});
    hops.push_back({there, coordinator, at->second.back, {}, nodes[n] + " to " + nodes[0]});
  }
  return hops;
}

} // namespace millrace::node
