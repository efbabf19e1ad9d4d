// Drives a session in rounds of calls, any of which may be the last for a while.
#include "tests/net/sim/process.h"

#include <algorithm>
#include <utility>

#include "observe/error.h"

namespace millrace::net::sim {
namespace {

// A round goes on to the next connection after so many reads, as a fair reactor does.
constexpr uint32_t kReadsMax = 64;
// A process that does so many rounds at one time does not wait for anything.
constexpr uint64_t kRoundsAtOnceMax = 20'000;
constexpr int64_t kFarewellNs = 2 * kSecond;

int64_t drifted(int64_t ns, int64_t ppm) { return ns / 1'000'000 * ppm + ns % 1'000'000 * ppm / 1'000'000; }

} // namespace

int64_t Clock::at(int64_t virtual_ns) const { return offset_ns + virtual_ns + drifted(virtual_ns, drift_ppm); }

int64_t Clock::when(int64_t own_ns) const {
  if (own_ns == INT64_MAX) return INT64_MAX;
  int64_t guess = own_ns - offset_ns;
  for (int i = 0; i < 6; ++i) guess += own_ns - at(guess);
  while (at(guess) < own_ns) ++guess;
  while (at(guess - 1) >= own_ns) --guess;
  return guess;
}

Process::Process(device::VirtualTime& time, Network& network, History& history, Random random,
                 const ProcessSetup& setup, const std::vector<CrossingSetup>& crossings)
    : time_(time),
      network_(network),
      history_(history),
      random_(random),
      setup_(setup),
      crossings_(crossings),
      ends_(crossings.size()),
      session_(setup.session),
      lanes_(1 + setup.session.data_lanes) {
  history.has_clock(setup.session.self.session, [&time, clock = setup.clock] { return clock.at(time.now_ns()); });
  for (size_t i = 0; i < crossings.size(); ++i) {
    const CrossingSetup& crossing = crossings[i];
    Ends& ends = ends_[i];
    if (crossing.from_dialler == setup.session.dials) {
      ends.maker = std::make_unique<Maker>(crossing, history, random_.fork(), setup.epoch, setup.first_index);
    } else {
      ends.taker = std::make_unique<Taker>(
          crossing, history, random_.fork(),
          [this](int64_t after_ns, std::function<void()> call) { later(after_ns, std::move(call)); });
      ends.taker->on_credit = [this] { wake(); };
    }
  }
  if (!setup.session.plan_comes_later) add_ends();
}

void Process::add_ends() {
  for (size_t i = 0; i < ends_.size(); ++i)
    if (ends_[i].maker)
      session_.add(crossings_[i].plan, *ends_[i].maker);
    else
      session_.add(crossings_[i].plan, *ends_[i].taker);
}

void Process::follow(uint32_t revision, const std::array<std::byte, 32>& brief) {
  if (dead_ || stopped_) return;
  add_ends();
  session_.follow(0, revision, brief, now_ns());
  wake();
}

void Process::forget_plan() {
  if (dead_ || stopped_) return;
  session_.forget_plan();
  wake();
}

Process::~Process() { die(); }

void Process::start() {
  if (!setup_.session.dials)
    network_.listen(setup_.address, this, [this](std::unique_ptr<End> end) {
      end->on_ready([this] { wake(); });
      backlog_.push_back(std::move(end));
      wake();
    });
  for (uint16_t i = 0; i < ends_.size(); ++i)
    if (ends_[i].maker) schedule_tick(i);
  wake();
}

// ---- stopped and killed --------------------------------------------------------------------------------------------

void Process::stop(uint64_t calls, int64_t for_ns) {
  if (dead_ || stopped_ || calls_until_ > 0) return;
  calls_until_ = calls + 1;
  then_dies_ = false;
  stops_for_ns_ = for_ns;
  if (calls == 0) is_interrupted();
}

void Process::kill(uint64_t calls) {
  if (dead_) return;
  calls_until_ = calls + 1;
  then_dies_ = true;
  if (calls == 0 || stopped_) {
    calls_until_ = 1;
    is_interrupted();
  }
}

bool Process::is_interrupted() {
  if (calls_until_ == 0 || --calls_until_ > 0) return false;
  if (then_dies_) {
    die();
    return true;
  }
  stopped_ = true;
  history_.note(Step::fault, setup_.session.self.session, static_cast<uint64_t>(stops_for_ns_), "stopped");
  time_.schedule(time_.now_ns() + stops_for_ns_, [this, alive = std::weak_ptr(alive_)] {
    if (alive.lock()) go_on();
  });
  return true;
}

void Process::go_on() {
  if (!stopped_ || dead_) return;
  stopped_ = false;
  history_.note(Step::fault, setup_.session.self.session, 0, "goes on");
  for (auto& call : std::exchange(missed_, {})) time_.schedule(time_.now_ns(), std::move(call));
  again_ = true; // the round goes on where it was stopped, and may have passed what came since
  wake();
}

void Process::die() {
  if (dead_) return;
  dead_ = true;
  alive_.reset();
  network_.unlisten(setup_.address, this);
  lanes_.clear();
  strangers_.clear();
  farewells_.clear();
  dialled_.clear();
  backlog_.clear();
  missed_.clear();
}

// A call of this process's run; it waits while the process is stopped.
void Process::later(int64_t after_ns, std::function<void()> call) {
  std::function<void()> guarded = [this, alive = std::weak_ptr(alive_), call = std::move(call)]() mutable {
    if (!alive.lock()) return;
    if (stopped_) {
      missed_.push_back([weak = std::weak_ptr(alive_), call = std::move(call)] {
        if (weak.lock()) call();
      });
      return;
    }
    call();
  };
  time_.schedule(time_.now_ns() + after_ns, std::move(guarded));
}

// ---- rounds --------------------------------------------------------------------------------------------------------

void Process::wake() {
  if (dead_ || is_scheduled_) return;
  if (in_round_) {
    again_ = true;
    return;
  }
  is_scheduled_ = true;
  const int64_t after_ns = random_.between(0, setup_.wake_ns_most);
  time_.schedule(time_.now_ns() + after_ns, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.lock()) return;
    is_scheduled_ = false;
    round();
  });
}

void Process::round() {
  if (stopped_) return; // go_on() wakes
  if (time_.now_ns() != std::exchange(last_round_ns_, time_.now_ns())) rounds_at_once_ = 0;
  if (++rounds_at_once_ > kRoundsAtOnceMax) return history_.fail("a process never waits");
  in_round_ = true;
  const auto alive = alive_;
  do {
    if (is_interrupted()) {
      in_round_ = false;
      return;
    }
  } while (step());
  in_round_ = false;
  end_round();
}

// One call; false after the last of a round.
bool Process::step() {
  switch (stage_) {
    case Stage::welcome:
      again_ = false;
      meet_strangers();
      stage_ = Stage::dialled;
      return true;
    case Stage::dialled:
      if (!dialled_.empty()) {
        take_dialled();
        return true;
      }
      lane_ = 0;
      reads_ = 0;
      stage_ = Stage::read;
      return true;
    case Stage::read: read(); return true;
    case Stage::received:
      stage_ = Stage::read;
      session_.received(lane_, moved_, now_ns());
      poll();
      return true;
    case Stage::time:
      session_.on_time(now_ns());
      poll();
      lane_ = 0;
      stage_ = Stage::write;
      return true;
    case Stage::write: write(); return true;
    case Stage::sent:
      stage_ = Stage::write;
      session_.sent(lane_, moved_, now_ns());
      poll();
      return true;
    case Stage::farewell:
      part();
      stage_ = Stage::welcome;
      return false;
  }
  return false;
}

void Process::next_lane(Stage after) {
  reads_ = 0;
  if (++lane_ < lanes_.size()) return;
  lane_ = 0;
  stage_ = after;
}

void Process::read() {
  End* const end = lanes_[lane_].get();
  if (!end) return next_lane(Stage::time);
  if (++reads_ > kReadsMax) {
    again_ = true;
    return next_lane(Stage::time);
  }
  const Transfer transfer = end->read(session_.room(lane_));
  switch (transfer.moved) {
    case Moved::some:
      moved_ = transfer.bytes;
      stage_ = Stage::received;
      return;
    case Moved::would_block: return next_lane(Stage::time);
    case Moved::closed:
    case Moved::failed:
      lanes_[lane_].reset();
      session_.cut(lane_, now_ns());
      poll();
      return next_lane(Stage::time);
  }
}

void Process::write() {
  End* const end = lanes_[lane_].get();
  if (!end) return next_lane(Stage::farewell);
  const std::span<const Bytes> pieces = session_.gather(lane_, now_ns());
  if (pieces.empty()) {
    poll();
    return next_lane(Stage::farewell);
  }
  const Transfer transfer = end->write(pieces);
  if (transfer.moved == Moved::some) {
    moved_ = transfer.bytes;
    stage_ = Stage::sent;
    return;
  }
  if (transfer.moved == Moved::failed) {
    lanes_[lane_].reset();
    session_.cut(lane_, now_ns());
  }
  poll();
  next_lane(Stage::farewell);
}

void Process::end_round() {
  look_at_offset();
  if (again_) return wake();
  int64_t next_ns = session_.next_timer(now_ns());
  for (const Stranger& stranger : strangers_) next_ns = std::min(next_ns, stranger.give_up_ns);
  for (const Farewell& farewell : farewells_) next_ns = std::min(next_ns, farewell.give_up_ns);
  const int64_t at_ns = setup_.clock.when(next_ns);
  if (at_ns == INT64_MAX || (timer_at_ns_ > time_.now_ns() && timer_at_ns_ <= at_ns)) return;
  timer_at_ns_ = std::max(at_ns, time_.now_ns());
  time_.schedule(timer_at_ns_, [this, alive = std::weak_ptr(alive_)] {
    if (alive.lock()) wake();
  });
}

// ---- connections ---------------------------------------------------------------------------------------------------

void Process::meet_strangers() {
  for (auto& end : std::exchange(backlog_, {})) {
    strangers_.push_back({std::move(end), std::make_unique<Inbox>(), now_ns() + kStrangerNs});
    strangers_.back().inbox->begin(setup_.checks_bodies);
  }
  // Sockets become readable in any order.
  for (size_t i = strangers_.size(); i > 1; --i)
    std::swap(strangers_[i - 1], strangers_[static_cast<size_t>(random_.below(i))]);
  std::erase_if(strangers_, [&](Stranger& stranger) { return !meet(stranger); });
}

// Reads until its HELLO is there. False once the connection is no stranger's any more.
bool Process::meet(Stranger& stranger) {
  if (now_ns() >= stranger.give_up_ns) return false;
  while (true) {
    const Transfer transfer = stranger.end->read(stranger.inbox->room());
    if (transfer.moved == Moved::would_block) return true;
    if (transfer.moved != Moved::some) return false;
    stranger.inbox->received(transfer.bytes);
    const Inbox::Next next = stranger.inbox->next();
    if (next == Inbox::Next::nothing) continue;
    Hello hello;
    Fault fault = next == Inbox::Next::fault ? stranger.inbox->fault()
                  : next != Inbox::Next::record || stranger.inbox->head().type != RecordType::hello
                      ? Fault::unexpected
                      : read_hello(stranger.inbox->body(), hello);
    if (fault == Fault::none) {
      fault = session_.accept(hello, setup_.checks_bodies, now_ns());
      poll();
    }
    history_.note(Step::event, setup_.session.self.session, hello.session,
                  fault == Fault::none ? "accepts" : "refuses");
    if (fault == Fault::none) {
      lanes_[hello.lane] = std::move(stranger.end);
    } else {
      std::array<std::byte, kHeadBytes + 4 + kSentenceBytesMax + kCrcBytes> bytes;
      const size_t size = write_refusal(fault, session_.refusal(fault), setup_.checks_bodies, bytes);
      const Bytes piece = Bytes(bytes).first(size);
      stranger.end->write({&piece, 1});
      part_from(std::move(stranger.end));
    }
    return false;
  }
}

void Process::take_dialled() {
  Dialled dialled = std::move(dialled_.front());
  dialled_.pop_front();
  if (dialled.end) {
    lanes_[dialled.lane] = std::move(dialled.end);
    session_.dialled(dialled.lane, setup_.checks_bodies, now_ns());
  } else {
    session_.cut(dialled.lane, now_ns());
  }
  poll();
}

void Process::part_from(std::unique_ptr<End> end) {
  if (!end) return;
  end->shut();
  farewells_.push_back({std::move(end), now_ns() + kFarewellNs});
}

void Process::part() {
  std::array<std::byte, 4096> bytes;
  std::erase_if(farewells_, [&](Farewell& farewell) {
    Transfer transfer;
    do transfer = farewell.end->read(bytes);
    while (transfer.moved == Moved::some);
    return transfer.moved != Moved::would_block || now_ns() >= farewell.give_up_ns;
  });
}

void Process::dial(uint32_t lane) {
  network_.dial(setup_.address, setup_.peer_address,
                [this, lane, alive = std::weak_ptr(alive_)](std::unique_ptr<End> end) {
                  if (!alive.lock()) return;
                  if (end) end->on_ready([this] { wake(); });
                  dialled_.push_back({lane, std::move(end)});
                  wake();
                });
}

bool Process::connection(uint32_t lane, uint64_t& number) const {
  if (dead_ || lane >= lanes_.size() || !lanes_[lane]) return false;
  number = lanes_[lane]->number();
  return true;
}

// ---- events --------------------------------------------------------------------------------------------------------

void Process::poll() {
  look_at_pairing();
  for (Event event; session_.poll(event);) {
    constexpr const char* kNames[] = {"dial", "close",   "met",         "back",    "there",   "suspect",
                                      "away", "refused", "was refused", "leaving", "drained", "message"};
    history_.note(Step::event, setup_.session.self.session, event.lane * 1000 + static_cast<uint64_t>(event.fault),
                  kNames[static_cast<size_t>(event.type)]);
    act(event);
    events_.push_back({event, time_.now_ns()});
    events_.back().event.sentence = {}; // it does not outlive the next call
    if (on_event) on_event(event);
    if (event.type == EventType::message) take_messages();
  }
}

void Process::act(const Event& event) {
  const auto peer_away = [&](bool away) {
    for (Ends& ends : ends_)
      if (ends.maker) ends.maker->peer_away(away);
  };
  switch (event.type) {
    case EventType::dial: return dial(event.lane);
    case EventType::close: return part_from(std::move(lanes_[event.lane]));
    case EventType::away: return peer_away(true);
    case EventType::met:
    case EventType::back: return peer_away(false);
    case EventType::refused:
      // Nobody damages bytes here, so that two sound sessions never find fault with a record.
      if (event.fault == Fault::version || event.fault == Fault::feature) return; // they are of two programs
      if (event.fault != Fault::slow_greeting && event.fault != Fault::vanished)
        history_.fail(std::string("a sound peer was refused: ") + sentence_of(event.fault));
      return;
    default: return;
  }
}

void Process::take_messages() {
  for (std::string text; session_.take_message(text);) {
    history_.heard(setup_.session.self.session, {lanes_[0]->number(), !setup_.session.dials}, text);
    if (on_message) on_message(text);
  }
}

void Process::look_at_pairing() {
  if (session_.pairing() == pairing_) return;
  pairing_ = session_.pairing();
  history_.met(setup_.session.self.session, pairing_, !setup_.session.dials);
  for (Ends& ends : ends_) {
    if (ends.maker) ends.maker->pair(pairing_);
    if (ends.taker) ends.taker->pair(pairing_);
  }
}

void Process::look_at_offset() {
  const Heartbeat::Offset offset = session_.offset(now_ns());
  if (offset.known) history_.offset(pairing_, setup_.session.self.session, offset.offset_ns, offset.error_ns);
}

uint64_t Process::count(EventType type) const {
  return static_cast<uint64_t>(
      std::count_if(events_.begin(), events_.end(), [&](const Seen& seen) { return seen.event.type == type; }));
}

// ---- the run -------------------------------------------------------------------------------------------------------

void Process::schedule_tick(uint16_t crossing) {
  later(crossings_[crossing].period_ns, [this, crossing] { tick(crossing); });
}

void Process::tick(uint16_t crossing) {
  Maker& maker = *ends_[crossing].maker;
  maker.tick(now_ns());
  wake();
  if (!maker.has_ended()) schedule_tick(crossing); // a clock that waits tries again
}

void Process::leave() {
  if (dead_ || std::exchange(leaving_, true)) return;
  history_.note(Step::event, setup_.session.self.session, 0, "leaves");
  session_.leave();
  wake();
}

bool Process::say(const std::string& text) {
  if (dead_ || stopped_ || !session_.say(text)) return false;
  history_.said({lanes_[0]->number(), setup_.session.dials}, text);
  wake();
  return true;
}

bool Process::has_sent_all() const {
  for (size_t i = 0; i < ends_.size(); ++i) {
    const Maker* const maker = ends_[i].maker.get();
    const uint16_t number = crossings_[i].plan.number;
    if (maker && !(maker->has_ended() && maker->is_empty() && session_.outgoing(number)->is_drained())) return false;
  }
  return true;
}

bool Process::has_got_all() const {
  for (const Ends& ends : ends_)
    if (ends.taker && !ends.taker->has_ended()) return false;
  return true;
}

} // namespace millrace::net::sim
