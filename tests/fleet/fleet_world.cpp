// The simulated fleet; see fleet_world.h.
#include "tests/fleet/fleet_world.h"
#include "tests/chance.h"

#include <algorithm>
#include <utility>

namespace millrace::fleet {

namespace {

constexpr int64_t kSilence = 3 * kSecond;

std::string name_of_node(uint32_t node) { return "node" + std::to_string(node); }

CoordinatorOptions options_of(const FleetSetup& setup) {
  CoordinatorOptions options;
  for (uint32_t node = 0; node < setup.nodes; ++node) options.nodes.push_back(name_of_node(node));
  options.pipeline = "the pipeline";
  options.process = 1;
  return options;
}

} // namespace

FleetWorld::FleetWorld(uint64_t seed, const FleetSetup& setup)
    : random(seed), coordinator(options_of(setup)), setup_(setup) {
  setup_.needed.resize(setup_.nodes, true);
}

void FleetWorld::require(bool holds, const std::string& sentence) {
  if (!holds && broken.empty()) broken = sentence + " at " + std::to_string(time.now_ns() / kMs) + " ms";
}

uint32_t FleetWorld::begin(uint32_t node) {
  const auto index = static_cast<uint32_t>(processes_.size());
  auto process = std::make_unique<Process>();
  process->node = node;
  process->link = index + 1;
  process->number = 100 + index;
  Offer offer;
  offer.node = name_of_node(node);
  offer.process = process->number;
  offer.pipeline = "the pipeline";
  process->member = std::make_unique<Member>(offer, name_of_node(0), 30 * kSecond);
  processes_.push_back(std::move(process));
  connect(*processes_.back());
  return index;
}

// Runs the call unless the process dies before; if it is paused then, after the pause.
void FleetWorld::later_in(Process& process, int64_t after_ns, std::function<void()> call) {
  later(after_ns, [this, &process, call = std::move(call)] {
    if (process.is_dead) return;
    if (process.paused_until_ns > time.now_ns())
      return later_in(process, process.paused_until_ns - time.now_ns(), call);
    call();
    poll();
  });
}

// ---- links ---------------------------------------------------------------------------------------------------------

void FleetWorld::connect(Process& process) {
  const uint64_t connection = ++process.connection;
  const int64_t way_ns = process.node == 0 ? 0 : random.between(0, setup_.latency_ns_most);
  later_in(process, way_ns, [this, &process, connection] {
    if (process.connection != connection || process.over) return;
    process.hears_coordinator = true;
    process.member->back();
  });
  later(way_ns, [this, &process, connection, way_ns] {
    if (process.connection != connection || process.is_dead || process.over) return;
    process.heard_by_coordinator = true;
    coordinator.round_trip(process.link, 2 * way_ns);
    coordinator.back(process.link, time.now_ns());
    poll();
  });
}

void FleetWorld::send(Process& process, bool to_coordinator, std::string text) {
  const int64_t now = time.now_ns();
  if (process.cut_until_ns > now || process.is_dead) return; // lost
  const int64_t way_ns = process.node == 0 ? 0 : random.between(0, setup_.latency_ns_most);
  int64_t& no_earlier = process.arrives_no_earlier_ns[to_coordinator];
  no_earlier = std::max(no_earlier, now + way_ns);
  const uint64_t connection = process.connection;
  const auto arrive = [this, &process, connection, to_coordinator, text = std::move(text)] {
    if (process.connection != connection || process.over) return;
    if (to_coordinator)
      coordinator.received(process.link, text, time.now_ns());
    else
      process.member->received(text);
  };
  if (!to_coordinator) return later_in(process, no_earlier - now, arrive);
  later(no_earlier - now, [this, arrive] {
    arrive();
    poll();
  });
}

// Both sides notice after 3 s that they hear nothing.
void FleetWorld::look_for_silence(Process& process, uint64_t connection) {
  later(kSilence, [this, &process, connection] {
    const bool still = process.connection == connection &&
                       (process.cut_until_ns > time.now_ns() || process.paused_until_ns > time.now_ns());
    if (!still && !process.is_dead) return;
    if (process.heard_by_coordinator) coordinator.away(process.link, time.now_ns());
    process.heard_by_coordinator = false;
    poll();
  });
  later_in(process, kSilence, [this, &process, connection] {
    if (process.connection != connection || process.cut_until_ns <= time.now_ns()) return;
    process.hears_coordinator = false;
    process.member->away(time.now_ns());
  });
}

void FleetWorld::cut(uint32_t index, int64_t for_ns) {
  Process& process = *processes_[index];
  if (process.is_dead || process.over || process.node == 0) return; // the coordinator's own link is never cut
  const uint64_t connection = ++process.connection;
  process.cut_until_ns = std::max(process.cut_until_ns, time.now_ns() + for_ns);
  look_for_silence(process, connection);
  later(process.cut_until_ns - time.now_ns(), [this, &process, connection] {
    if (process.connection == connection && !process.is_dead) connect(process);
  });
}

void FleetWorld::pause(uint32_t index, int64_t for_ns) {
  Process& process = *processes_[index];
  if (process.is_dead || process.over || process.node == 0) return;
  process.paused_until_ns = std::max(process.paused_until_ns, time.now_ns() + for_ns);
  look_for_silence(process, process.connection);
  // The coordinator hears it again, or it dials again: both are the same to them.
  later_in(process, for_ns, [this, &process] {
    if (process.cut_until_ns <= time.now_ns()) connect(process);
  });
}

void FleetWorld::kill(uint32_t index) {
  Process& process = *processes_[index];
  if (process.is_dead || process.node == 0) return;
  process.is_dead = true;
  ++process.connection;
  look_for_silence(process, process.connection);
}

// ---- the owners' part ----------------------------------------------------------------------------------------------

void FleetWorld::poll() {
  Coordinator::Event event;
  while (coordinator.poll(event)) {
    using Type = Coordinator::Event::Type;
    if (event.type == Type::say) send(*processes_[event.link - 1], false, event.text);
    if (event.type == Type::waits) last_waits = event.nodes;
    if (event.type == Type::refused) ++refusals;
    if (event.type == Type::given_up) ++given_up;
    if (event.type == Type::compile) {
      ++compiles;
      std::vector<Part> parts(setup_.nodes);
      for (uint32_t node = 0; node < setup_.nodes; ++node) {
        parts[node].brief.hash = "plan " + std::to_string(compiles);
        parts[node].brief.body = "{}";
        parts[node].stage = node;
        parts[node].needed = setup_.needed[node];
      }
      coordinator.compiled(std::move(parts), time.now_ns());
    }
    if (event.type == Type::begun) {
      require(!is_begun, "a fleet starts once");
      is_begun = true;
      for (uint32_t node = 0; node < setup_.nodes; ++node)
        require(std::any_of(processes_.begin(), processes_.end(),
                            [&](const auto& process) {
                              return process->node == node && process->prepared_revision == coordinator.revision();
                            }),
                "a start comes after each node was ready");
    }
    if (event.type == Type::over) {
      require(!is_over, "a fleet is over once");
      is_over = true;
      failure = event.failure;
    }
  }
  for (const auto& process : processes_)
    if (!process->is_dead && process->paused_until_ns <= time.now_ns()) poll(*process);
}

void FleetWorld::poll(Process& process) {
  Member::Event event;
  while (process.member->poll(event)) act(process, event);
}

void FleetWorld::act(Process& process, const Member::Event& event) {
  using Type = Member::Event::Type;
  require(!process.over, "nothing comes after over");
  if (event.type == Type::say) send(process, true, event.text);
  if (event.type == Type::prepare) {
    const Brief brief = event.brief;
    const auto [known, is_new] = hash_of_revision_.emplace(brief.revision, brief.hash);
    require(known->second == brief.hash, "a revision has one plan");
    const bool can = !chance(random, setup_.unable_per_mille);
    later_in(process, random.spread(kMs, 2 * kSecond), [this, &process, brief, can] {
      if (process.over) return;
      if (!can) return process.member->unable(brief.revision, {701, "no room", {}, {}, {}, {}});
      if (process.member->revision() == brief.revision) process.prepared_revision = brief.revision;
      process.member->prepared(brief.revision, "{}");
    });
  }
  if (event.type == Type::start) {
    require(process.started_revision == 0, "a process starts once");
    require(process.prepared_revision == process.member->revision(), "a process starts what it has prepared");
    require(is_begun, "a process starts after its fleet");
    process.started_revision = process.member->revision();
    const auto [known, is_new] = zero_of_epoch_.emplace(process.started_revision, event.zero_ns);
    require(known->second == event.zero_ns, "a revision has one zero");
    process.runs = true;
    const bool fails = chance(random, setup_.fails_per_mille);
    const int64_t takes_ns = random.spread(kMs, setup_.run_ns_most);
    fail_streams(process);
    later_in(process, takes_ns, [this, &process, fails] {
      if (!process.runs) return;
      if (!fails) return finish(process);
      process.own_failure = RunFailure{{601, "it failed", {}, {}, {}, {}}, "", "main", random.below(100), false};
      process.member->failed(*process.own_failure);
    });
  }
  if (event.type == Type::stop || event.type == Type::fail) {
    require(process.started_revision != 0, "only a run is stopped or fails");
    if (event.type == Type::fail) process.told_failure = event.failure;
    later_in(process, random.spread(kMs, kSecond), [this, &process] { finish(process); });
  }
  if (event.type == Type::fail_stream) {
    require(process.started_revision != 0, "only a run's streams fail");
    const FailedTick told{event.failure->epoch, event.failure->index};
    const auto [known, is_first] = process.told_streams.emplace(event.failure->clock, told);
    require(is_first || told.counts_before(known->second),
            "a stream's failure is told again if it is earlier, or of a later epoch");
    known->second = told;
  }
  if (event.type == Type::over) {
    process.over = true;
    process.runs = false;
    process.over_error = event.error;
    coordinator.gone(process.link, time.now_ns());
  }
}

// Some streams fail while the process runs, and some of them again at an earlier tick, or after they have begun anew.
void FleetWorld::fail_streams(Process& process) {
  for (uint64_t left = random.between(0, setup_.streams_most); left > 0; --left) {
    const std::string clock = "stream" + std::to_string(random.below(3));
    const uint64_t drawn = random.below(300);
    const FailedTick failed{static_cast<uint32_t>(drawn % 3), drawn / 3};
    later_in(process, random.spread(kMs, setup_.run_ns_most), [this, &process, clock, failed] {
      const auto known = process.own_streams.find(clock);
      const bool is_news =
          known == process.own_streams.end() || failed.counts_before(known->second); // as a run tells it
      if (!process.runs || !is_news) return;
      process.own_streams[clock] = failed;
      process.member->stream_failed({{601, "it failed", {}, {}, {}, {}}, "", clock, failed.index, false, failed.epoch});
    });
  }
}

void FleetWorld::finish(Process& process) {
  if (!std::exchange(process.runs, false)) return;
  process.finished = true;
  process.member->finished("report of " + std::to_string(process.number));
}

void FleetWorld::run_until(int64_t at_ns) {
  time.schedule(at_ns, [] {}); // time goes on although nothing happens
  while (broken.empty()) {
    int64_t timer_ns = coordinator.next_timer();
    for (const auto& process : processes_)
      if (!process->is_dead && process->paused_until_ns <= time.now_ns())
        timer_ns = std::min(timer_ns, process->member->next_timer());
    const int64_t next_ns = std::min(timer_ns, time.next_ns());
    if (next_ns > at_ns) break;
    if (timer_ns < time.next_ns()) {
      time.schedule(timer_ns, [] {});
      time.step();
      coordinator.on_time(time.now_ns());
      for (const auto& process : processes_)
        if (!process->is_dead && process->paused_until_ns <= time.now_ns()) process->member->on_time(time.now_ns());
    } else {
      time.step();
    }
    poll();
  }
}

bool FleetWorld::run_to_the_end(int64_t within_ns) {
  const int64_t until_ns = time.now_ns() + within_ns;
  const auto all_over = [&] {
    return is_over && std::all_of(processes_.begin(), processes_.end(),
                                  [](const auto& process) { return process->is_dead || process->over; });
  };
  while (broken.empty() && !all_over() && time.now_ns() < until_ns) run_until(time.now_ns() + 100 * kMs);
  return all_over();
}

} // namespace millrace::fleet
