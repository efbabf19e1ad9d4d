// Fleets over real sessions and the simulated network: each member's statements go beside the parcels of its link.
// MILLRACE_LINKED_FLEETS=n says how many, MILLRACE_SEED=n which.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fleet/coordinator.h"
#include "fleet/member.h"
#include "observe/error_codes.h"
#include "tests/chance.h"
#include "tests/fleet/fleet_world.h"
#include "tests/net/sim/simulation.h"
#include "tests/part.h"
#include "tests/seed.h"

namespace millrace::fleet {
namespace {

class LinkedFleet {
 public:
  LinkedFleet(uint64_t seed, uint32_t nodes);

  void begin(uint32_t node);
  void draw_fault();
  void heal();
  void complete(); // starts a process of each node that has none
  void run_for(int64_t ns) { world_.run_for(ns); }
  // False if something is not over in that time.
  bool run_to_the_end(int64_t within_ns);
  // All parcels have arrived, and both ends count the same.
  void check_links();

  std::string broken() const { return broken_.empty() ? world_.history.failure() : broken_; }
  std::string describe() const;
  bool is_begun = false, is_over = false;
  std::optional<RunFailure> failure;
  uint64_t kills = 0, stops = 0, cuts = 0, twins = 0, came_back = 0, statements = 0, pairs_counted = 0;

 private:
  // A link of the coordinator to whoever is a node.
  struct Seat {
    net::sim::Process* listener = nullptr;
    Link link = 0; // of the process that it met last
  };
  struct Process {
    uint32_t node = 0;
    std::unique_ptr<Member> member;
    net::sim::Process* line = nullptr; // null: the coordinator's own node
    int64_t stopped_until_ns = 0;
    bool runs = false, over = false;
    uint32_t followed_revision = 0; // the coordinator's own: by the links of its node
    uint32_t prepared_revision = 0, started_revision = 0;
    std::optional<Error> error;

    bool is_dead() const { return line && line->is_dead(); }
  };

  void require(bool holds, const char* sentence) {
    if (!holds && broken_.empty()) broken_ = sentence;
  }
  net::sim::ProcessSetup setup(bool dials, uint32_t node);
  void look_at_time();
  void later(Process& process, int64_t after_ns, std::function<void()> call);
  void poll_coordinator();
  void accept_parcels(Process& process);
  void poll(Process& process);
  void act(Process& process, const Member::Event& event);
  void hear(Seat& seat, const net::Event& event);
  bool all_over() const;

  net::sim::World world_;
  uint32_t nodes_;
  std::vector<bool> needed_;
  Coordinator coordinator_;
  std::vector<Seat> seats_; // by node
  std::vector<std::unique_ptr<Process>> processes_;
  Link links_ = 1; // the first is that of the coordinator's own node
  std::map<uint32_t, int64_t> zero_of_epoch_;
  std::map<uint32_t, uint32_t> starts_of_node_;
  std::string broken_;
};

CoordinatorOptions linked_options(uint32_t nodes) {
  CoordinatorOptions options;
  for (uint32_t node = 0; node < nodes; ++node) options.nodes.push_back("node" + std::to_string(node));
  options.pipeline = "the pipeline";
  options.process = 1;
  return options;
}

LinkedFleet::LinkedFleet(uint64_t seed, uint32_t nodes)
    : world_(seed), nodes_(nodes), coordinator_(linked_options(nodes)), seats_(nodes) {
  for (const bool from_dialler : {false, true}) {
    net::sim::CrossingSetup crossing;
    crossing.from_dialler = from_dialler;
    crossing.plan =
        net::sim::make_plan(static_cast<uint16_t>(world_.crossings.size()), 1, 3, net::Delivery::reliable, 1, 2000);
    crossing.period_ns = world_.random.spread(5 * kMs, 100 * kMs);
    world_.crossings.push_back(crossing);
  }
  needed_.push_back(true);
  for (uint32_t node = 1; node < nodes; ++node) {
    needed_.push_back(chance(world_.random, 500));
    net::sim::Process& listener = world_.start(setup(false, node));
    Seat& seat = seats_[node];
    seat.listener = &listener;
    listener.on_event = [this, &seat](const net::Event& event) { hear(seat, event); };
    listener.on_message = [this, &seat](const std::string& text) {
      ++statements;
      if (seat.link != 0) coordinator_.received(seat.link, text, world_.time.now_ns());
      poll_coordinator();
    };
    const int64_t latency_ns = world_.random.spread(kMs / 10, 100 * kMs);
    for (const bool there : {false, true}) {
      net::sim::Line& line =
          there ? world_.network.line(100 + node, 200 + node) : world_.network.line(200 + node, 100 + node);
      line.latency_ns = latency_ns;
      line.jitter_ns = world_.random.between(0, latency_ns);
      if (chance(world_.random, 300)) line.slice_most = static_cast<size_t>(world_.random.between(1, 3000));
    }
  }
  begin(0);
  look_at_time();
}

net::sim::ProcessSetup LinkedFleet::setup(bool dials, uint32_t node) {
  net::sim::ProcessSetup made = world_.setup(dials);
  const std::byte here{1}, there{static_cast<uint8_t>(10 + node)};
  made.session.self.node[0] = dials ? there : here;
  made.session.peer[0] = dials ? here : there;
  made.session.plan_comes_later = true;
  made.address = (dials ? 100 : 200) + node;
  made.peer_address = (dials ? 200 : 100) + node;
  return made;
}

void LinkedFleet::hear(Seat& seat, const net::Event& event) {
  const int64_t now = world_.time.now_ns();
  using enum net::EventType;
  if (event.type == met) {
    if (seat.link != 0) coordinator_.gone(seat.link, now);
    seat.link = ++links_;
    coordinator_.back(seat.link, now);
  }
  if (event.type == back) coordinator_.back(seat.link, now);
  if (event.type == away) coordinator_.away(seat.link, now);
  poll_coordinator();
}

void LinkedFleet::begin(uint32_t node) {
  auto process = std::make_unique<Process>();
  process->node = node;
  Offer offer{"node" + std::to_string(node), 100 + processes_.size(), "", "the pipeline", ""};
  process->member = std::make_unique<Member>(offer, "node0", 30 * kSecond);
  processes_.push_back(std::move(process));
  Process& made = *processes_.back();
  if (node == 0) {
    coordinator_.back(1, 0);
    made.member->back();
    return poll(made);
  }
  made.line = &world_.start(setup(true, node));
  made.line->on_event = [this, &made](const net::Event& event) {
    if (event.type == net::EventType::met || event.type == net::EventType::back) made.member->back();
    if (event.type == net::EventType::away) made.member->away(world_.time.now_ns());
    poll(made);
  };
  made.line->on_message = [this, &made](const std::string& text) {
    made.member->received(text);
    poll(made);
  };
}

// Owners look at their timers now and then.
void LinkedFleet::look_at_time() {
  world_.time.schedule(world_.time.now_ns() + 50 * kMs, [this] {
    coordinator_.on_time(world_.time.now_ns());
    poll_coordinator();
    for (size_t i = 0; i < processes_.size(); ++i) {
      Process& process = *processes_[i];
      if (process.is_dead() || process.stopped_until_ns > world_.time.now_ns()) continue;
      process.member->on_time(world_.time.now_ns());
      poll(process);
    }
    look_at_time();
  });
}

// A call of the process, which waits while it is stopped and is not made once it is dead.
void LinkedFleet::later(Process& process, int64_t after_ns, std::function<void()> call) {
  world_.time.schedule(world_.time.now_ns() + after_ns, [this, &process, call = std::move(call)] {
    if (process.is_dead()) return;
    const int64_t still_ns = process.stopped_until_ns - world_.time.now_ns();
    if (still_ns >= 0) return later(process, still_ns + 1, call);
    call();
    poll(process);
  });
}

void LinkedFleet::poll_coordinator() {
  for (Coordinator::Event event; coordinator_.poll(event);) {
    using Type = Coordinator::Event::Type;
    if (event.type == Type::say && event.link == 1) {
      world_.time.schedule(world_.time.now_ns(), [this, text = event.text] {
        processes_[0]->member->received(text);
        poll(*processes_[0]);
      });
    } else if (event.type == Type::say) {
      for (Seat& seat : seats_)
        if (seat.link == event.link) seat.listener->say(event.text); // what is lost is said again at back or met
    } else if (event.type == Type::compile) {
      std::vector<Part> parts(nodes_);
      for (uint32_t node = 0; node < nodes_; ++node) {
        parts[node].brief.hash = "plan";
        parts[node].brief.body = std::string(static_cast<size_t>(world_.random.spread(1, 200'000)), 'x');
        parts[node].stage = node;
        parts[node].needed = needed_[node];
      }
      coordinator_.compiled(std::move(parts), world_.time.now_ns());
    } else if (event.type == Type::begun) {
      require(!is_begun, "a fleet starts once");
      is_begun = true;
      for (uint32_t node = 0; node < nodes_; ++node)
        require(std::any_of(processes_.begin(), processes_.end(),
                            [&](const auto& process) {
                              return process->node == node && process->prepared_revision == coordinator_.revision();
                            }),
                "a start comes after each node was ready");
    } else if (event.type == Type::over) {
      require(!is_over, "a fleet is over once");
      is_over = true;
      failure = event.failure;
    }
  }
}

// The node that accepts follows its plan once it is ready. Those that dial do so when they start, so by then no other
// plan comes.
void LinkedFleet::accept_parcels(Process& process) {
  const bool is_another = process.followed_revision != 0;
  process.followed_revision = process.prepared_revision;
  for (Seat& seat : seats_) {
    if (!seat.listener) continue;
    if (is_another) seat.listener->forget_plan();
    seat.listener->follow(process.followed_revision, {std::byte{static_cast<uint8_t>(process.followed_revision)}});
  }
}

void LinkedFleet::poll(Process& process) {
  for (Member::Event event; process.member->poll(event);) act(process, event);
}

void LinkedFleet::act(Process& process, const Member::Event& event) {
  using Type = Member::Event::Type;
  require(!process.over, "nothing comes after over");
  switch (event.type) {
    case Type::say:
      if (process.line) {
        process.line->say(event.text);
      } else {
        coordinator_.received(1, event.text, world_.time.now_ns());
        poll_coordinator();
      }
      return;
    case Type::prepare:
      later(process, world_.random.spread(kMs, kSecond), [this, &process, revision = event.brief.revision] {
        if (process.member->revision() == revision) process.prepared_revision = revision;
        if (process.node == 0 && process.member->revision() == revision) accept_parcels(process);
        process.member->prepared(revision, "{}");
      });
      return;
    case Type::start:
      require(process.started_revision == 0, "a process starts once");
      require(process.prepared_revision == process.member->revision(), "a process starts what it has prepared");
      process.started_revision = process.member->revision();
      process.runs = true;
      if (process.line)
        process.line->follow(process.started_revision, {std::byte{static_cast<uint8_t>(process.started_revision)}});
      came_back += ++starts_of_node_[process.node] == 2;
      require(zero_of_epoch_.emplace(process.started_revision, event.zero_ns).first->second == event.zero_ns,
              "a revision has one zero");
      later(process, world_.random.spread(kSecond, 40 * kSecond), [&process] {
        if (std::exchange(process.runs, false)) process.member->finished("report");
      });
      return;
    case Type::stop:
    case Type::fail:
      later(process, world_.random.spread(kMs, kSecond), [&process] {
        if (std::exchange(process.runs, false)) process.member->finished("report");
      });
      return;
    case Type::over:
      process.over = true;
      process.error = event.error;
      return;
    case Type::fail_stream: // none does here
    case Type::question:    // nobody asks here, and no run takes long
    case Type::request:     // nor changes anything
    case Type::reply:
    case Type::waits:
    case Type::clocks_over: // a run is a time
    case Type::drop: return;
  }
}

// ---- faults --------------------------------------------------------------------------------------------------------

void LinkedFleet::draw_fault() {
  Random& random = world_.random;
  const uint64_t kind = random.below(100);
  const std::vector<uint64_t> connections = world_.network.connections();
  Process& process = *processes_[random.below(processes_.size())];
  if (kind < 50 && !connections.empty()) {
    ++cuts;
    const uint64_t number = connections[random.below(connections.size())];
    if (kind < 35)
      world_.network.cut(number, random.spread(1, kSecond), random.spread(1, kSecond));
    else
      world_.network.hold(number, random.spread(kMs, 8 * kSecond));
  } else if (kind < 65 && process.line) {
    ++cuts;
    world_.network.block(100 + process.node, 200 + process.node, true);
    world_.network.block(200 + process.node, 100 + process.node, true);
    world_.time.schedule(world_.time.now_ns() + random.spread(kMs, 40 * kSecond), [this, &process] {
      world_.network.block(100 + process.node, 200 + process.node, false);
      world_.network.block(200 + process.node, 100 + process.node, false);
    });
  } else if (kind < 80 && process.line && !process.is_dead()) {
    ++stops;
    const int64_t for_ns = random.spread(kMs, 10 * kSecond);
    process.stopped_until_ns = std::max(process.stopped_until_ns, world_.time.now_ns() + for_ns);
    process.line->stop(0, for_ns);
  } else if (kind < 92 && process.line && !process.is_dead()) {
    ++kills;
    process.line->kill(0);
  } else if (nodes_ > 1) {
    ++twins;
    begin(static_cast<uint32_t>(random.between(1, nodes_ - 1)));
  }
}

void LinkedFleet::heal() {
  for (uint32_t node = 1; node < nodes_; ++node) {
    world_.network.block(100 + node, 200 + node, false);
    world_.network.block(200 + node, 100 + node, false);
  }
}

void LinkedFleet::complete() {
  for (uint32_t node = 1; node < nodes_; ++node) {
    // A process that was refused ends, and makes room for another one.
    for (const auto& process : processes_)
      if (process->node == node && process->over && process->error && !process->is_dead()) process->line->kill(0);
    if (std::none_of(processes_.begin(), processes_.end(), [&](const auto& process) {
          return process->node == node && !process->is_dead() && !process->over;
        }))
      begin(node);
  }
}

// Processes that were never met have nothing to end.
bool LinkedFleet::all_over() const {
  return is_over && std::all_of(processes_.begin(), processes_.end(), [](const auto& process) {
           return process->is_dead() || process->over || (process->line && process->line->session().pairings() == 0);
         });
}

bool LinkedFleet::run_to_the_end(int64_t within_ns) {
  return world_.run_until([this] { return all_over() || !broken_.empty(); }, within_ns) && broken().empty();
}

void LinkedFleet::check_links() {
  for (uint32_t node = 1; node < nodes_; ++node)
    for (const auto& process : processes_) {
      net::sim::Process* const line = process->line;
      net::sim::Process* const listener = seats_[node].listener;
      const auto is_pair = [&] {
        return line->session().pairing() != 0 && line->session().pairing() == listener->session().pairing();
      };
      if (process->node != node || line->is_dead() || !is_pair() || process->started_revision == 0) continue;
      const bool all = world_.run_until(
          [&] {
            return !is_pair() ||
                   (line->has_sent_all() && line->has_got_all() && listener->has_sent_all() && listener->has_got_all());
          },
          200 * kSecond);
      require(all, "parcels arrive beside statements");
      if (!is_pair()) continue;
      net::sim::check_counts(world_, *line, *listener);
      ++pairs_counted;
    }
}

std::string LinkedFleet::describe() const {
  std::string text = broken() + (is_begun ? " begun" : " not begun") + (is_over ? ", over" : ", not over");
  for (const auto& process : processes_)
    text += "; node" + std::to_string(process->node) + (process->is_dead() ? " dead" : " alive") +
            (process->over ? " over" : "") + (process->runs ? " runs" : "") + " revision " +
            std::to_string(process->member->revision());
  return text;
}

} // namespace

TEST_CASE("statements beside parcels: linked fleets start once and end as one, and both ends count the same parcels") {
  const char* const chosen = std::getenv("MILLRACE_LINKED_FLEETS");
  const uint32_t count = chosen ? static_cast<uint32_t>(std::stoul(chosen)) : static_cast<uint32_t>(test::part_of(500));
  uint64_t begun = 0, failed = 0, kills = 0, stops = 0, cuts = 0, twins = 0, came_back = 0, statements = 0, pairs = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Random draws(random_seed() * 1'000'003ull + i);
    const auto nodes = static_cast<uint32_t>(draws.between(2, 4));
    LinkedFleet fleet(draws.next(), nodes);
    for (uint32_t node = 1; node < nodes; ++node) {
      fleet.run_for(draws.spread(kMs, kSecond));
      fleet.begin(node);
    }
    for (uint64_t faults = draws.below(20); faults > 0 && fleet.broken().empty(); --faults) {
      fleet.run_for(draws.spread(kMs, 5 * kSecond));
      fleet.draw_fault();
      if (chance(draws, 300)) fleet.complete();
    }
    fleet.heal();
    bool ended = false;
    for (int tries = 0; tries < 30 && !ended && fleet.broken().empty(); ++tries) {
      fleet.complete();
      ended = fleet.run_to_the_end(15 * kSecond);
    }
    if (ended) fleet.check_links();
    INFO("fleet ", i, " of MILLRACE_SEED=", random_seed());
    CHECK_MESSAGE((ended && fleet.broken().empty()), fleet.describe());
    begun += fleet.is_begun, failed += fleet.failure.has_value(), kills += fleet.kills, stops += fleet.stops;
    cuts += fleet.cuts, twins += fleet.twins, came_back += fleet.came_back, statements += fleet.statements;
    pairs += fleet.pairs_counted;
  }
  MESSAGE(count, " linked fleets, ", begun, " begun, ", failed, " failed; ", statements, " statements, ", pairs,
          " links counted; ", cuts, " cuts, ", stops, " stops, ", kills, " kills, ", twins, " twins, ", came_back,
          " nodes came back");
  for (const uint64_t met : {begun, kills, stops, cuts, twins, statements, pairs}) CHECK(met > 0);
}

} // namespace millrace::fleet
