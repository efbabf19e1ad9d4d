// Fits windows into memory: a plan that does not fit into the memory of a domain is laid out again with fewer ticks in
// flight, as far as its clocks allow, or refused with the sum of what it needs (semantics.md 1.5 and 3.2).
#include <fmt/format.h>

#include <algorithm>

#include "memory/ring.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/draft.h"
#include "plan/format_text.h"
#include "plan/lay_out.h"
#include "plan/memory.h"
#include "plan/step.h"

namespace millrace::plan {

namespace {

// Lays the plan out so that it fits: as asked for, else without room for another cut, else with fewer ticks in flight
// on clocks that allow it.
class FitMemory {
 public:
  explicit FitMemory(Draft& draft) : draft_(draft), plan_(draft.plan), before_(draft.plan) {}

  void run() {
    // Room for another cut is only a convenience.
    if (before_.guessed && fits(before_.clocks, true)) return;
    if (fits(before_.clocks, false)) return;
    const Shortage asked = shortage();
    uint32_t steps = 0;
    for (const Clock& clock : before_.clocks) steps += spare(clock);
    if (!fits(lowered(steps), false)) refuse();
    uint32_t too_few = 0; // steps that are not enough; `steps` are
    while (steps - too_few > 1) {
      const uint32_t middle = too_few + (steps - too_few) / 2;
      (fits(lowered(middle), false) ? steps : too_few) = middle;
    }
    fits(lowered(steps), false);
    for (size_t c = 0; c < plan_.clocks.size(); ++c) note_lowered(plan_.clocks[c], before_.clocks[c], asked);
  }

 private:
  struct Shortage {
    std::string domain; // "": there is none
    uint64_t bytes = 0, limit = 0;
  };

  // By how much a clock's ticks in flight may be lowered.
  static uint32_t spare(const Clock& clock) {
    return clock.in_flight_least == 0 ? 0 : clock.in_flight - clock.in_flight_least;
  }

  // The clocks after this many steps; each step takes one tick from the clock that has the most in flight and allows
  // it.
  std::vector<Clock> lowered(uint32_t steps) const {
    std::vector<Clock> clocks = before_.clocks;
    const auto fewer = [](const Clock& a, const Clock& b) {
      return std::pair(spare(a) > 0, a.in_flight) < std::pair(spare(b) > 0, b.in_flight);
    };
    for (; steps > 0; --steps) --std::max_element(clocks.begin(), clocks.end(), fewer)->in_flight;
    return clocks;
  }

  bool fits(const std::vector<Clock>& clocks, bool roomy) {
    plan_ = before_;
    plan_.clocks = clocks;
    lay_out_once(draft_, roomy);
    return shortage().domain.empty();
  }

  Shortage shortage() const {
    for (const Domain& domain : plan_.domains) {
      const auto needed = plan_.memory.find(domain.name);
      if (needed != plan_.memory.end() && domain.bytes_limit != 0 && needed->second > domain.bytes_limit)
        return {domain.name, needed->second, domain.bytes_limit};
    }
    return {};
  }

  void note_lowered(const Clock& now, const Clock& asked_for, const Shortage& asked) {
    if (now.in_flight == asked_for.in_flight) return;
    plan_.notes.push_back(fmt::format("{}in_flight {} of [{}, {}]: {} would need {} in {}, which has {}",
                                      now.name.empty() ? "" : "clock " + now.name + ": ", now.in_flight,
                                      now.in_flight_least, asked_for.in_flight, asked_for.in_flight,
                                      bytes_words(asked.bytes), asked.domain, bytes_words(asked.limit)));
  }

  [[noreturn]] void refuse() {
    const Shortage missing = shortage();
    Error error{code::memory_exceeded,
                "the plan needs " + std::to_string(missing.bytes) + " bytes in " + missing.domain + ", which has " +
                    std::to_string(missing.limit),
                {},
                {},
                "",
                ""};
    for (const Ring& ring : plan_.rings)
      if (plan_.domains[ring.domain].name == missing.domain)
        error.notes.push_back(
            std::to_string(ring.blocks_counted()) + " × " + std::to_string(memory::block_bytes(ring.capacity)) +
            " for " + plan_.steps[plan_.outputs[ring.output].step].name + "." + plan_.outputs[ring.output].name);
    for (const Step& step : plan_.steps) {
      if (plan_.domains[step.domain].name != missing.domain) continue;
      if (step.scratch_bytes() > 0)
        error.notes.push_back(std::to_string(step.scratch_bytes()) + " for what " + step.name + " works in");
      if (step.taken_bytes() > 0)
        error.notes.push_back(std::to_string(step.taken_bytes()) + " that " + step.name + " takes by itself");
      if (step.state_bytes() > 0)
        error.notes.push_back(std::to_string(step.state_bytes()) + " for the state of " + step.name);
    }
    error.edit = remedy();
    throw Failure(std::move(error));
  }

  // Suggests fewer ticks in flight if a single one would fit.
  std::string remedy() {
    uint32_t most = 1;
    for (const Clock& clock : plan_.clocks) most = std::max(most, clock.in_flight);
    std::vector<Clock> single = before_.clocks;
    for (Clock& clock : single) clock.in_flight = 1;
    if (most == 1 || !fits(single, false)) return "smaller values, or fewer handlers there";
    const std::string fewer = most == 2 ? "in_flight: 1" : "in_flight: [1, " + std::to_string(most - 1) + "]";
    return single[0].name.empty() ? "clock: { " + fewer + " }" : fewer;
  }

  Draft& draft_;
  Plan& plan_;
  const Plan before_;
};

} // namespace

void lay_out(Draft& draft) { FitMemory(draft).run(); }

} // namespace millrace::plan
