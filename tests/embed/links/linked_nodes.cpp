// Joins the runs of several nodes by sessions over a simulated network; see linked_nodes.h.
#include "linked_nodes.h"

#include <algorithm>

#include "cli/count_allocations.h"
#include "exec/run.h"
#include "plan/plan.h"
#include "tests/chance.h"

namespace millrace::test {

using namespace net;

// ---- ends that are watched -----------------------------------------------------------------------------------------

namespace {

// Counts what is allocated while it lives, if the end is warm.
class CountsAllocations {
 public:
  CountsAllocations(uint64_t& sum, bool is_warm) : sum_(sum), is_warm_(is_warm), before_(counter_.counted()) {
    counter_.count(true);
  }
  ~CountsAllocations() {
    if (is_warm_) sum_ += counter_.counted() - before_;
  }
  // A parcel with live changes, which are rare, may allocate for their names and values.
  void leave_out(const Parcel& parcel) { is_warm_ = is_warm_ && parcel.changes.empty(); }

 private:
  const testing::AllocationCounter counter_ = cli::allocation_counter();
  uint64_t& sum_;
  bool is_warm_;
  uint64_t before_;
};

} // namespace

class LinkedNodes::Departs final : public net::Departure {
 public:
  Departs(embed::LinkEnd& end, sim::History& history, const sim::Process& process)
      : end_(end), history_(history), process_(process) {}

  bool next(Parcel& parcel) override {
    {
      CountsAllocations counts(allocations, given_ >= kWarm);
      if (!end_.departure->next(parcel)) return false;
      counts.leave_out(parcel);
    }
    ++given_;
    parcel.token = history_.given({process_.session().pairing(), end_.plan.number}, end_.plan.depth, parcel);
    return true;
  }
  void let_go(const Parcel& parcel, bool acknowledged) override {
    history_.let_go(parcel.token, acknowledged);
    const CountsAllocations counts(allocations, given_ >= kWarm);
    end_.departure->let_go(parcel, acknowledged);
  }
  int64_t passed_ns() const override { return end_.departure->passed_ns(); }
  // True if it has grown since it was asked last.
  bool has_more() {
    const bool has_made = std::exchange(made_, end_.departure->made()) != made_;
    return std::exchange(passed_ns_, end_.departure->passed_ns()) != passed_ns_ || has_made;
  }

  uint64_t allocations = 0;

 private:
  embed::LinkEnd& end_;
  sim::History& history_;
  const sim::Process& process_;
  uint64_t given_ = 0, made_ = 0;
  int64_t passed_ns_ = INT64_MIN;
};

class LinkedNodes::Arrives final : public net::Arrival {
 public:
  Arrives(embed::LinkEnd& end, sim::History& history, const sim::Process& process)
      : end_(end), history_(history), process_(process) {}

  Room room(uint32_t value) override {
    const CountsAllocations counts(allocations, arrived >= kWarm);
    return end_.arrival->room(value);
  }
  void arrive(const Parcel& parcel) override {
    history_.arrived({process_.session().pairing(), end_.plan.number}, parcel);
    if (!parcel.end) ++arrived;
    CountsAllocations counts(allocations, arrived > kWarm);
    counts.leave_out(parcel);
    end_.arrival->arrive(parcel);
  }
  uint64_t credit() const override {
    const uint64_t credit = end_.arrival->credit();
    if (const uint64_t pairing = process_.session().pairing()) history_.promised({pairing, end_.plan.number}, credit);
    return credit;
  }
  void passed(int64_t media_ns) override { end_.arrival->passed(media_ns); }
  bool has_more() { return std::exchange(credit_, end_.arrival->credit()) != credit_; }

  uint64_t allocations = 0, arrived = 0;

 private:
  embed::LinkEnd& end_;
  sim::History& history_;
  const sim::Process& process_;
  uint64_t credit_ = 0;
};

// ---- links ---------------------------------------------------------------------------------------------------------

LinkedNodes::LinkedNodes(const Pipeline& pipeline, const std::vector<std::string>& names, const Wires& wires,
                         const Setup& setup)
    : names_(names),
      wires_(wires),
      random_(wires.seed),
      network_(time_, random_.fork()),
      history_(time_),
      runs_(pipeline, names, setup, time_) {
  for (size_t dialler = 0; dialler < names.size(); ++dialler)
    for (size_t listener = dialler + 1; listener < names.size(); ++listener) make_link(dialler, listener);
}

// Sessions go before the ends that they know, and ends before the runs.
LinkedNodes::~LinkedNodes() {
  processes_.clear();
  sides_.clear();
}

void LinkedNodes::make_link(size_t dialler, size_t listener) {
  const std::vector<plan::CrossingPlan>& crossings = runs_[dialler].plan().crossings;
  const auto leads_there = [&](const plan::CrossingPlan& one) { return one.node == names_[listener]; };
  if (std::none_of(crossings.begin(), crossings.end(), leads_there)) return;
  lines_.emplace_back(address(dialler, listener), address(listener, dialler));
  lines_.emplace_back(address(listener, dialler), address(dialler, listener));
  make_side(listener, dialler, false);
  make_side(dialler, listener, true);
}

void LinkedNodes::make_side(size_t node, size_t peer, bool dials) {
  sim::ProcessSetup setup;
  SessionOptions& options = setup.session;
  options.self.session = random_.next() | 1;
  options.self.node[0] = static_cast<std::byte>(1 + node);
  options.peer[0] = static_cast<std::byte>(1 + peer);
  options.dials = dials;
  options.data_lanes = wires_.data_lanes;
  options.seed = random_.next();
  setup.address = address(node, peer);
  setup.peer_address = address(peer, node);
  setup.clock = {random_.between(0, 1000 * kSecond), random_.between(-50, 50)};
  setup.checks_bodies = wires_.checks_bodies;
  setup.wake_ns_most = wires_.wake_ns_most;
  processes_.push_back(std::make_unique<sim::Process>(time_, network_, history_, random_.fork(), setup, no_crossings_));
  auto side = std::make_unique<Side>();
  side->process = processes_.back().get();
  side->ends = embed::make_link_ends(runs_[node].live(), runs_[node].plan(), names_[peer], wires_.data_lanes);
  for (embed::LinkEnd& end : side->ends)
    if (end.departure) {
      side->departures.push_back(std::make_unique<Departs>(end, history_, *side->process));
      side->process->add(end.plan, *side->departures.back());
    } else {
      side->arrivals.push_back(std::make_unique<Arrives>(end, history_, *side->process));
      side->process->add(end.plan, *side->arrivals.back());
    }
  sides_.push_back(std::move(side));
}

void LinkedNodes::draw_lines() {
  for (const auto& [from, to] : lines_) {
    sim::Line& line = network_.line(from, to);
    const bool blocked = line.blocked;
    wires_.line(line, random_);
    line.blocked = blocked;
  }
}

// A process looks at its ends when the run has changed something at one of them.
bool LinkedNodes::wake_changed() {
  for (auto& side : sides_) {
    bool changed = false;
    for (auto& departure : side->departures) changed = departure->has_more() || changed;
    for (auto& arrival : side->arrivals) changed = arrival->has_more() || changed;
    if (changed) side->process->wake();
  }
  return false; // it moves by events
}

// ---- faults --------------------------------------------------------------------------------------------------------

void LinkedNodes::plan_faults() {
  for (uint32_t i = 0; i < wires_.faults && !lines_.empty(); ++i)
    after(random_.between(0, wires_.faults_ns), [this] {
      if (!is_over_) fault();
    });
}

void LinkedNodes::fault() {
  const std::vector<uint64_t> numbers = network_.connections();
  const uint64_t number = numbers.empty() ? 0 : numbers[random_.below(numbers.size())];
  switch (random_.below(8)) {
    case 0: return block();
    case 1: return draw_lines();
    case 2: return processes_[random_.below(processes_.size())]->stop(random_.below(50), random_.spread(1000, kSecond));
    case 3:
      if (!numbers.empty()) network_.hold(number, random_.spread(kMillisecond, kSecond));
      return;
    case 4:
      if (!numbers.empty() && chance(random_, 300)) return network_.vanish(number, chance(random_, 500));
      return cut();
    default: return cut();
  }
}

void LinkedNodes::cut() {
  const std::vector<uint64_t> numbers = network_.connections();
  if (numbers.empty()) return;
  int64_t learns_ns[2] = {random_.spread(1000, 50 * kMillisecond), random_.spread(1000, 50 * kMillisecond)};
  if (chance(random_, 200)) learns_ns[random_.below(2)] = INT64_MAX; // that end does not learn of it
  ++cuts_;
  network_.cut(numbers[random_.below(numbers.size())], learns_ns[0], learns_ns[1]);
}

void LinkedNodes::block() {
  const auto [from, to] = lines_[random_.below(lines_.size())];
  network_.block(from, to, true);
  after(random_.spread(kMillisecond, kSecond), [this, from = from, to = to] { network_.block(from, to, false); });
}

// ---- the run -------------------------------------------------------------------------------------------------------

Ran LinkedNodes::run(int64_t limit_ns) {
  exec::VirtualDriver driver(time_);
  runs_.start(driver);
  draw_lines();
  for (auto& process : processes_) process->start();
  plan_faults();
  // No event is scheduled for the limit: the driver would take it for one that may move a run.
  driver.add([this, limit_ns] {
    if (time_.now_ns() > limit_ns) give_up();
    return wake_changed();
  });
  driver.drive();
  took_ns_ = time_.now_ns();
  is_over_ = true;
  if (!is_stuck_) drain();
  const Ran ran = runs_.wait();
  for (auto& side : sides_)
    for (auto& arrival : side->arrivals) parcels_ += arrival->arrived;
  return ran;
}

void LinkedNodes::give_up() {
  is_stuck_ = true;
  for (auto& process : processes_) process->kill(0);
}

// All that was sent is acknowledged, and the links come to their ends.
void LinkedNodes::drain() {
  for (auto& process : processes_) {
    process->go_on();
    process->leave();
  }
  const int64_t most_ns = time_.now_ns() + 120 * kSecond;
  const auto is_drained = [](const auto& process) { return process->is_drained(); };
  while (!std::all_of(processes_.begin(), processes_.end(), is_drained)) {
    if (time_.now_ns() > most_ns || !time_.step()) return history_.fail("a link does not come to its end");
  }
  for (auto& side : sides_)
    for (embed::LinkEnd& end : side->ends) {
      const Session& session = side->process->session();
      if (end.departure && session.outgoing(end.plan.number)->counts().unsound > 0)
        history_.fail("a value of a run was not what its plan says");
      if (session.pairings() != 1) history_.fail("a pairing did not go on");
    }
}

uint64_t LinkedNodes::sessions_came_back() const {
  uint64_t sum = 0;
  for (const auto& process : processes_) sum += process->count(EventType::back);
  return sum;
}

uint64_t LinkedNodes::allocations() const {
  uint64_t sum = 0;
  for (const auto& side : sides_) {
    for (const auto& departure : side->departures) sum += departure->allocations;
    for (const auto& arrival : side->arrivals) sum += arrival->allocations;
  }
  return sum;
}

uint64_t LinkedNodes::bytes_copied() const {
  uint64_t sum = 0;
  for (const auto& process : processes_) sum += process->session().bytes_copied();
  return sum;
}

} // namespace millrace::test
