// Asks nodes to carry bytes, and makes prices from the times; see link_prices.h.
#include "node/link_prices.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "fleet/statement.h"

namespace millrace::node {

namespace {

// A question begins with this and the number of bytes of its answer; the rest of it is there to be carried.
constexpr std::string_view kCarry = "carry ";
constexpr size_t kAnswerBytesMax = 1 << 20;

// Each size is carried so often; the first ones open the way for the others.
constexpr int kSmallCarries = 6, kCarries = 3;
// A larger size is not tried once a smaller one took so long: the times are in proportion then.
constexpr double kSlowUs = 300'000;

double us_between(int64_t begin_ns, int64_t end_ns) { return static_cast<double>(end_ns - begin_ns) / 1000; }

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
  const int64_t end_ns = time_.now_ns();
  // One end writes and the other one reads a statement of so many bytes.
  fleet::Statement read;
  std::string why;
  fleet::read_statement(fleet::to_text(fleet::Question{0, std::string(there + back, '-')}), read, why);
  return std::max(0.0, us_between(begin_ns, end_ns) - us_between(end_ns, time_.now_ns()));
}

LinkPrices::Link LinkPrices::measure(const std::string& node, const AskNodes& ask) const {
  double least_us = plan::HopPrice::kInfeasible, most_us = 0;
  for (int i = 0; i < kSmallCarries; ++i) {
    const double us = carry_us(node, ask, 0, 0);
    least_us = std::min(least_us, us);
    if (i > 0) most_us = std::max(most_us, us);
  }
  const auto one_way = [&](bool back) {
    plan::HopPrice price(least_us / 2, 0);
    double longest_us = 0;
    for (size_t i = 0; i < plan::kHopSizes.size(); ++i) {
      const uint64_t bytes = plan::kHopSizes[i];
      if (bytes > kAnswerBytesMax || longest_us > kSlowUs) {
        price.us_per_byte[i] = price.us_per_byte[i - 1];
      } else {
        double us = plan::HopPrice::kInfeasible;
        for (int carry = 0; carry < kCarries && longest_us <= kSlowUs; ++carry) {
          us = std::min(us, carry_us(node, ask, back ? 0 : bytes, back ? bytes : 0));
          longest_us = std::max(longest_us, us);
        }
        price.us_per_byte[i] = std::max(0.0, us - least_us) / static_cast<double>(bytes);
      }
      price.p99_us[i] = price.latency_us + price.us_per_byte[i] * static_cast<double>(bytes) + (most_us - least_us) / 2;
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
    if (fresh) at->second = measure(nodes[n], ask);
    const std::string there = nodes[n] + "/cpu";
    hops.push_back({coordinator, there, at->second.there, {}, nodes[0] + " to " + nodes[n]});
    hops.push_back({there, coordinator, at->second.back, {}, nodes[n] + " to " + nodes[0]});
  }
  return hops;
}

} // namespace millrace::node
