// Draws a world and its faults from a seed, and looks at how it ends.
#include "tests/net/sim/simulation.h"
#include "tests/chance.h"

#include <algorithm>
#include <iterator>

namespace millrace::net::sim {
namespace {

// After the faults: the longest wait before a dial, a dial that nobody answers, and a link that is found dead are 16 s;
// a data connection in which bytes vanish is found in 11 s.
constexpr int64_t kDrainNs = 120 * kSecond;
constexpr int64_t kLeaveNs = 60 * kSecond;

} // namespace

// ---- a world -------------------------------------------------------------------------------------------------------

World::World(uint64_t seed) : random(seed), network(time, random.fork()), history(time) {}

ProcessSetup World::setup(bool dials) {
  ProcessSetup setup;
  SessionOptions& options = setup.session;
  options.dials = dials;
  options.self.session = random.next() | 1;
  options.self.node[0] = std::byte{dials ? uint8_t{1} : uint8_t{2}};
  options.peer[0] = std::byte{dials ? uint8_t{2} : uint8_t{1}};
  options.seed = random.next();
  for (const CrossingSetup& crossing : crossings) options.data_lanes = std::max(options.data_lanes, crossing.plan.lane);
  setup.address = dials ? kDialler : kListener;
  setup.peer_address = dials ? kListener : kDialler;
  return setup;
}

Process& World::start(const ProcessSetup& setup) {
  processes.push_back(std::make_unique<Process>(time, network, history, random.fork(), setup, crossings));
  processes.back()->start();
  return *processes.back();
}

void World::both_lines(const std::function<void(Line&)>& change) {
  change(network.line(kDialler, kListener));
  change(network.line(kListener, kDialler));
}

void World::cut_all(int64_t learns_ns) {
  for (const uint64_t number : network.connections())
    network.cut(number, random.between(0, learns_ns), random.between(0, learns_ns));
}

void World::run_until(int64_t at_ns) {
  bool is_there = false;
  time.schedule(at_ns, [&] { is_there = true; });
  while (!is_there && time.step() && !history.has_failed()) {
  }
  // The event would speak of what is gone.
  while (!is_there && time.step()) {
  }
}

bool World::run_until(const std::function<bool()>& done, int64_t within_ns) {
  const int64_t limit_ns = time.now_ns() + within_ns;
  while (!history.has_failed() && time.now_ns() <= limit_ns) {
    if (done()) return true;
    if (!time.step()) return done();
  }
  return false;
}

// ---- counts --------------------------------------------------------------------------------------------------------

namespace {

void check_counts_of(World& world, const CrossingSetup& crossing, const Process& from, const Process& to) {
  const uint16_t number = crossing.plan.number;
  const auto fail = [&](const char* sentence) {
    world.history.fail(std::string(sentence) + ": crossing " + std::to_string(number));
  };
  const Outgoing::Counts& sent = from.session().outgoing(number)->counts();
  const Incoming::Counts& got = to.session().incoming(number)->counts();
  const Maker& maker = *from.maker(number);
  const Taker& taker = *to.taker(number);
  const History::Progress progress = world.history.progress({from.session().pairing(), number});
  if (from.session().pairing() != to.session().pairing()) fail("the two sides have not the same pairing");
  if (progress.given != progress.arrived) fail("a parcel that had a place did not arrive");
  if (sent.sent != sent.acknowledged + sent.lost) fail("a sender's counts do not add up");
  // An end is lost with a process too, and is sent again to the next one.
  if (sent.lost < maker.lost() || sent.lost > maker.lost() + from.session().pairings())
    fail("another number of parcels was let go as lost than is counted");
  uint64_t told = got.lost;
  for (size_t cause = 0; cause < kCausesMax; ++cause) {
    told += got.left_out[cause];
    if (maker.left_out()[cause] != sent.left_out[cause] + maker.untold()[cause] + maker.pending()[cause])
      fail("a sender counts other ticks as left out than its run");
    if (from.session().pairings() == 1 && to.session().pairings() == 1 && sent.left_out[cause] != got.left_out[cause])
      fail("the two sides count other ticks as left out");
  }
  if (told != taker.ticks_between()) fail("ticks between two parcels were told twice or not at all");
  if (got.arrived != taker.arrived()) fail("a reader counts other parcels than arrived");
  if (maker.held_max() > crossing.plan.depth + 1) fail("a sender has held more than depth + 1 parcels");
}

} // namespace

void check_counts(World& world, const Process& dialler, const Process& listener) {
  for (const CrossingSetup& crossing : world.crossings)
    check_counts_of(world, crossing, crossing.from_dialler ? dialler : listener,
                    crossing.from_dialler ? listener : dialler);
}

// ---- a seed --------------------------------------------------------------------------------------------------------

namespace {

class Simulation {
 public:
  Simulation(uint64_t seed, Totals& totals)
      : world_(seed), random_(world_.random.fork()), words_(~seed), totals_(totals) {}
  Outcome run();

 private:
  void draw_line(Line& line);
  void draw_crossings();
  ProcessSetup draw_setup(bool dials);
  void draw_faults();
  void fault();
  void cut(bool all);
  void block();
  void hold();
  void vanish();
  void stop();
  void kill();
  void twin();
  void change();
  void heal();
  void drain();
  void leave();
  void draw_messages();
  void say(bool dials, size_t bytes);
  bool has_heard_all();
  Process& main(bool dials) { return *(dials ? dialler_ : listener_); }
  void restart(bool dials);
  void after(int64_t ns, std::function<void()> call) {
    world_.time.schedule(world_.time.now_ns() + ns, std::move(call));
  }

  World world_;
  Random random_;
  Random words_; // draws messages
  Totals& totals_;
  Process* dialler_ = nullptr;
  Process* listener_ = nullptr;
  uint64_t messages_ = 0;       // those that could not be said are counted too
  std::vector<Process*> twins_; // second processes with an identity
  Clock clocks_[2];
  int64_t wake_ns_most_ = 0;
  bool checks_bodies_ = true;
  bool kills_ = false, twins_come_ = false, leaves_early_ = false;
  uint64_t restarts_ = 0;
  int64_t ends_ns_ = 0; // no fault comes after it
  bool is_healed_ = false;
};

void Simulation::draw_line(Line& line) {
  line.latency_ns = random_.spread(20'000, 80 * kMillisecond);
  line.jitter_ns = chance(random_, 500) ? 0 : random_.between(0, 2 * line.latency_ns);
  line.bytes_per_second = chance(random_, 500) ? 0 : static_cast<uint64_t>(random_.spread(200'000, 100'000'000));
  line.buffer_bytes = static_cast<size_t>(random_.spread(2 * kKiB, 256 * kKiB));
  constexpr size_t kSlices[] = {0, 0, 0, 7, 100, 1500, 20'000};
  line.slice_most = kSlices[random_.below(std::size(kSlices))];
}

void Simulation::draw_crossings() {
  const uint64_t count = 1 + random_.below(4);
  const auto lanes = static_cast<uint32_t>(1 + random_.below(3));
  const bool has_large = chance(random_, 40);
  for (uint16_t i = 0; i < count; ++i) {
    CrossingSetup crossing;
    crossing.large_per_mille = has_large && i == 0 ? 30 : 0;
    const uint64_t capacity = crossing.large_per_mille > 0 ? 5 * kMiB / 2 : 2000;
    const auto delivery = chance(random_, 500) ? Delivery::live : Delivery::reliable;
    crossing.plan =
        make_plan(i, 1 + static_cast<uint32_t>(random_.below(lanes)), static_cast<uint32_t>(random_.spread(1, 8)),
                  delivery, static_cast<uint32_t>(random_.below(4)), capacity);
    crossing.from_dialler = chance(random_, 500);
    crossing.clock_waits = chance(random_, 400);
    crossing.period_ns = random_.spread(5 * kMillisecond, 100 * kMillisecond);
    crossing.ticks = static_cast<uint64_t>(std::min<int64_t>(200, ends_ns_ / crossing.period_ns));
    crossing.every = chance(random_, 700) ? 1 : static_cast<uint32_t>(random_.between(2, 4));
    crossing.empty_per_mille = chance(random_, 500) ? 0 : 300;
    crossing.epoch_per_mille = chance(random_, 700) ? 0 : 30;
    crossing.value_bytes_most = static_cast<uint32_t>(random_.spread(8, 2000));
    crossing.taking_most_ns = random_.spread(kMillisecond, 60 * kMillisecond);
    crossing.slow_per_mille = chance(random_, 700) ? 0 : 10;
    world_.crossings.push_back(std::move(crossing));
  }
}

ProcessSetup Simulation::draw_setup(bool dials) {
  ProcessSetup setup = world_.setup(dials);
  setup.clock = clocks_[dials ? 0 : 1];
  setup.wake_ns_most = wake_ns_most_;
  setup.checks_bodies = checks_bodies_;
  if (restarts_ > 0) {
    setup.epoch = chance(random_, 500) ? static_cast<uint32_t>(restarts_) : 0;
    setup.first_index = setup.epoch > 0 ? 0 : random_.below(1000);
  }
  return setup;
}

// ---- faults --------------------------------------------------------------------------------------------------------

void Simulation::draw_faults() {
  kills_ = chance(random_, 500);
  twins_come_ = chance(random_, 150);
  leaves_early_ = !kills_ && !twins_come_ && chance(random_, 150);
  const uint64_t count = chance(random_, 80) ? 0 : 1 + random_.below(12); // a few are quiet
  for (uint64_t i = 0; i < count; ++i) after(random_.between(0, ends_ns_), [this] { fault(); });
  if (chance(random_, 50)) {
    // The first connections wait while the listener sleeps, and are read in any order after that.
    ++totals_.stops;
    listener_->stop(0, random_.between(5 * kSecond, 8 * kSecond));
    after(random_.between(5 * kSecond, 8 * kSecond), [this] {
      if (!is_healed_) hold();
    });
  }
  if (leaves_early_) after(random_.between(0, ends_ns_), [this] { leave(); });
}

void Simulation::fault() {
  if (is_healed_) return;
  switch (random_.below(12)) {
    case 0:
    case 1:
    case 2: return cut(false);
    case 3: return cut(true);
    case 4: return block();
    case 9: return hold();
    case 10: return vanish();
    case 5: return stop();
    case 6: return kills_ ? kill() : stop();
    case 7: return twins_come_ ? twin() : cut(false);
    case 8:
      ++totals_.lost_dials;
      world_.network.lose_dials(500);
      return cut(true);
    default: return change();
  }
}

void Simulation::cut(bool all) {
  std::vector<uint64_t> numbers = world_.network.connections();
  if (numbers.empty()) return;
  if (!all) numbers = {numbers[random_.below(numbers.size())]};
  for (const uint64_t number : numbers) {
    int64_t learns_ns[2] = {random_.spread(1000, 50 * kMillisecond), random_.spread(1000, 50 * kMillisecond)};
    const uint64_t kind = random_.below(4);
    if (kind < 2) learns_ns[kind] = INT64_MAX; // that end does not learn of it
    ++(kind < 2 ? totals_.half_open : totals_.cuts);
    world_.history.note(Step::fault, number, kind, "cut");
    world_.network.cut(number, learns_ns[0], learns_ns[1]);
  }
}

void Simulation::block() {
  ++totals_.blocks;
  const uint64_t directions = 1 + random_.below(3);
  const int64_t for_ns = random_.spread(5 * kMillisecond, 6 * kSecond);
  world_.history.note(Step::fault, directions, static_cast<uint64_t>(for_ns), "blocked");
  const auto set = [this, directions](bool blocked) {
    if (directions & 1) world_.network.block(kDialler, kListener, blocked);
    if (directions & 2) world_.network.block(kListener, kDialler, blocked);
  };
  set(true);
  after(for_ns, [set] { set(false); });
}

void Simulation::hold() {
  const std::vector<uint64_t> numbers = world_.network.connections();
  if (numbers.empty()) return;
  ++totals_.holds;
  const uint64_t number = numbers[random_.below(numbers.size())];
  const int64_t for_ns = random_.spread(kMillisecond, 6 * kSecond);
  world_.history.note(Step::fault, number, static_cast<uint64_t>(for_ns), "held");
  world_.network.hold(number, for_ns);
}

void Simulation::vanish() {
  const std::vector<uint64_t> numbers = world_.network.connections();
  if (numbers.empty()) return;
  ++totals_.vanished;
  const uint64_t number = numbers[random_.below(numbers.size())], sides = 1 + random_.below(3);
  world_.history.note(Step::fault, number, sides, "bytes vanish");
  for (const bool by_dialler : {true, false})
    if (sides & (by_dialler ? 1 : 2)) world_.network.vanish(number, by_dialler);
}

void Simulation::stop() {
  ++totals_.stops;
  main(chance(random_, 500)).stop(random_.below(100), random_.spread(kMillisecond, 8 * kSecond));
}

void Simulation::kill() {
  ++totals_.kills;
  const bool dials = chance(random_, 500);
  world_.history.note(Step::fault, main(dials).setup().session.self.session, 0, "killed");
  main(dials).kill(random_.below(100));
  after(random_.spread(kMillisecond, 3 * kSecond), [this, dials] {
    if (!is_healed_) restart(dials);
  });
}

void Simulation::restart(bool dials) {
  main(dials).kill(0);
  ++restarts_;
  (dials ? dialler_ : listener_) = &world_.start(draw_setup(dials));
}

// A second process with the identity of one that lives. If it listens, it takes the address over.
void Simulation::twin() {
  ++totals_.twins;
  ++restarts_;
  const bool dials = chance(random_, 700);
  Process* const twin = &world_.start(draw_setup(dials));
  world_.history.note(Step::fault, twin->setup().session.self.session, 0, "a twin");
  twins_.push_back(twin);
  after(random_.spread(kMillisecond, 8 * kSecond), [twin] { twin->kill(0); });
}

void Simulation::change() {
  ++totals_.changes;
  world_.both_lines([this](Line& line) {
    const bool blocked = line.blocked;
    draw_line(line);
    line.blocked = blocked;
  });
}

// ---- messages ------------------------------------------------------------------------------------------------------

// Some come in bursts, and a few are long. Slices of a few bytes get short ones, or a history would take too long.
void Simulation::draw_messages() {
  if (chance(words_, 300)) return;
  const bool has_long = chance(words_, 200);
  for (const bool dials : {true, false}) {
    int64_t at_ns = 0;
    for (uint64_t n = words_.below(60); n > 0; --n) {
      if (!chance(words_, 500)) at_ns = words_.between(0, ends_ns_ + kSecond);
      const int64_t most = has_long && chance(words_, 100) ? 300'000 : 2 * int64_t{kMessageChunkBytes};
      const auto bytes = static_cast<size_t>(words_.spread(1, most));
      after(at_ns, [this, dials, bytes] { say(dials, bytes); });
    }
  }
}

void Simulation::say(bool dials, size_t bytes) {
  const auto is_sliced = [](const Line& line) { return line.slice_most > 0 && line.slice_most < 1000; };
  Network& network = world_.network;
  if (is_sliced(network.line(kDialler, kListener)) || is_sliced(network.line(kListener, kDialler))) bytes %= 1000;
  std::string text = std::to_string(++messages_);
  text.resize(std::max(text.size(), bytes), '.');
  main(dials).say(text);
}

// Over the connections that there are now. One that is found dead is replaced, and nothing more is said on that one.
bool Simulation::has_heard_all() {
  const auto is_heard = [this](bool of_dialler) {
    uint64_t connection = 0;
    const Process& process = main(of_dialler);
    return process.session().is_up(0) && process.connection(0, connection) &&
           world_.history.is_heard({connection, of_dialler});
  };
  return is_heard(true) && is_heard(false);
}

// ---- the end -------------------------------------------------------------------------------------------------------

void Simulation::heal() {
  is_healed_ = true;
  world_.history.note(Step::fault, 0, 0, "healed");
  world_.network.lose_dials(0);
  world_.network.block(kDialler, kListener, false);
  world_.network.block(kListener, kDialler, false);
  world_.both_lines([](Line& line) {
    line.bytes_per_second = std::max<uint64_t>(line.bytes_per_second, line.bytes_per_second > 0 ? 2'000'000 : 0);
    line.buffer_bytes = std::max<size_t>(line.buffer_bytes, 256 * kKiB);
    if (line.slice_most > 0 && line.slice_most < 100) line.slice_most = 100;
  });
  for (CrossingSetup& crossing : world_.crossings) {
    crossing.slow_per_mille = 0;
    crossing.taking_most_ns = kMillisecond;
  }
  for (Process* twin : twins_) twin->kill(0);
  for (const bool dials : {true, false}) {
    main(dials).go_on();
    // A process that was to be killed soon, or whose address a twin took, begins anew.
    if (main(dials).is_dead() || (kills_ && chance(random_, 500)) || (!dials && !twins_.empty())) restart(dials);
    main(dials).spare();
  }
}

void Simulation::leave() {
  const uint64_t sides = 1 + random_.below(3);
  if (!is_healed_) ++totals_.leaves_in_faults;
  if (sides & 1) dialler_->leave();
  if (sides & 2) listener_->leave();
}

void Simulation::drain() {
  const auto has_all = [this] {
    return dialler_->has_sent_all() && dialler_->has_got_all() && listener_->has_sent_all() && listener_->has_got_all();
  };
  if (!leaves_early_) {
    if (!world_.run_until(has_all, kDrainNs)) return world_.history.fail("not everything has arrived in time");
    if (!world_.run_until([this] { return has_heard_all(); }, kDrainNs))
      return world_.history.fail("not everything that was said has been heard in time");
    check_counts(world_, *dialler_, *listener_);
    leave();
  }
  const auto both_over = [this] { return dialler_->is_drained() && listener_->is_drained(); };
  if (!world_.run_until(both_over, kLeaveNs)) world_.history.fail("a side that leaves does not come to the end");
}

Outcome Simulation::run() {
  ends_ns_ = random_.spread(kSecond, 20 * kSecond);
  draw_crossings();
  world_.both_lines([this](Line& line) { draw_line(line); });
  clocks_[0] = {random_.between(-1000 * kSecond, 1000 * kSecond), random_.between(-200, 200)};
  // Apart by at most what a link expects of two machines.
  const int64_t drift = clocks_[0].drift_ppm + random_.between(-kDriftPpmMax + 1, kDriftPpmMax - 1);
  clocks_[1] = {random_.between(-1000 * kSecond, 1000 * kSecond), std::clamp<int64_t>(drift, -200, 200)};
  wake_ns_most_ = chance(random_, 500) ? 0 : random_.spread(1000, 3 * kMillisecond);
  checks_bodies_ = chance(random_, 700);
  dialler_ = &world_.start(draw_setup(true));
  listener_ = &world_.start(draw_setup(false));
  draw_faults();
  draw_messages();
  world_.run_until(ends_ns_);
  heal();
  drain();
  ++totals_.histories;
  totals_.virtual_seconds += static_cast<uint64_t>(world_.time.now_ns() / kSecond);
  totals_.pairings += world_.history.pairing_count();
  totals_.given += world_.history.given_count();
  totals_.arrived += world_.history.arrived_count();
  totals_.said += world_.history.said_count();
  totals_.heard += world_.history.heard_count();
  for (const auto& process : world_.processes)
    for (const CrossingSetup& crossing : world_.crossings)
      if (const Maker* const maker = process->maker(crossing.plan.number)) {
        totals_.lost += maker->lost();
        totals_.left_out += maker->left_out()[kCauseLink] + maker->left_out()[kCauseAway];
      }
  return {world_.history.hash(), world_.history.failure()};
}

} // namespace

Outcome simulate(uint64_t seed, Totals& totals) {
  Simulation simulation(seed, totals);
  return simulation.run();
}

std::string describe(const Totals& totals) {
  std::string text;
  const auto add = [&](uint64_t count, const char* words) { text += std::to_string(count) + " " + words; };
  add(totals.histories, "histories, ");
  add(totals.virtual_seconds, "virtual seconds, ");
  add(totals.pairings, "pairings; parcels: ");
  add(totals.given, "given, ");
  add(totals.arrived, "arrived, ");
  add(totals.lost, "lost with a process; ");
  add(totals.left_out, "ticks left out; messages: ");
  add(totals.said, "said, ");
  add(totals.heard, "heard; faults: ");
  add(totals.cuts, "cuts, ");
  add(totals.half_open, "half-open, ");
  add(totals.vanished, "connections in which bytes vanish, ");
  add(totals.holds, "connections held, ");
  add(totals.blocks, "blocks of a direction or both, ");
  add(totals.stops, "stops, ");
  add(totals.kills, "kills, ");
  add(totals.twins, "second processes with one identity, ");
  add(totals.lost_dials, "times of lost dials, ");
  add(totals.changes, "changes of the lines, ");
  add(totals.leaves_in_faults, "leaves among them");
  return text;
}

} // namespace millrace::net::sim
