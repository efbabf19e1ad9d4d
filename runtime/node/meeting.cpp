// Joins the fleet and the links of one node; see meeting.h.
#include "node/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <span>
#include <thread>

#include "exec/run.h"
#include "net/system/digest.h"
#include "node/link_prices.h"
#include "observe/error_codes.h"
#include "plan/plan.h"

namespace millrace::node {

namespace {

constexpr fleet::Link kOwnLink = 1; // from the coordinator to the member in its own process
constexpr int64_t kResumeNs =
    30'000'000'000; // so long at most the ticks of a `reliable` crossing wait for a peer (7.9)
constexpr int64_t kSecondProcessNs =
    6'000'000'000;                              // a process that is refused for so long is told that it is a second one
constexpr int64_t kOtherPeerNs = 6'000'000'000; // so long another node may answer before this one gives up
constexpr int64_t kMeasureWithinNs = 2'000'000'000;
constexpr int64_t kWarnOfMissingEveryNs = 60'000'000'000;
constexpr int64_t kLinksWithinNs = 5'000'000'000;
constexpr std::chrono::milliseconds kPartWithin{3000}, kLeaveAtOnceWithin{50}, kLookAtTimeEvery{50};

uint64_t draw() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

double us_of(int64_t ns) { return static_cast<double>(ns) / 1e3; }

std::string list_of(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

std::string seconds_of(int64_t ns) { return fmt::format("{:.3g} s", static_cast<double>(ns) / 1e9); }

} // namespace

// ---- beginning -----------------------------------------------------------------------------------------------------

Meeting::Meeting(MeetingOptions options, const device::Timeline& machine_time, RunTime& time)
    : options_(std::move(options)),
      name_(options_.nodes.at(options_.number)),
      process_(draw()),
      identity_(net::Identity::open(options_.folder)),
      tls_(identity_),
      machine_time_(machine_time),
      time_(time),
      member_({name_, process_, options_.program, options_.pipeline, options_.offer, options_.canonical},
              options_.nodes[0], options_.patience_ns),
      requests_(name_, process_),
      links_(kOwnLink) {
  if (coordinates()) {
    fleet::CoordinatorOptions made;
    made.nodes = options_.nodes;
    made.pipeline = options_.pipeline;
    made.canonical = options_.canonical;
    made.process = process_;
    made.patience_ns = options_.patience_ns;
    coordinator_ = std::make_unique<fleet::Coordinator>(made);
  }
  for (const PeerPlan& peer : options_.peers)
    if (!peer.missing) join(peer);
  if (!options_.listen.empty()) {
    net::ListenOptions listen;
    listen.endpoints = options_.listen;
    listen.tls = &tls_;
    listen.knows = [this](const net::NodeId& id) {
      return std::any_of(options_.peers.begin(), options_.peers.end(),
                         [&](const PeerPlan& peer) { return !peer.missing && peer.id == id; });
    };
    listen.on_unknown = [this](const std::string& why) {
      const std::lock_guard lock(mutex_);
      unknown_ = why;
    };
    listener_.emplace(listen, [this](net::Guest guest) {
      if (const net::NodeId* const id = guest.transport->peer()) {
        const std::lock_guard lock(mutex_);
        came_from_[*id] = net::address_of_peer(guest.transport->descriptor());
      }
      reactor_.give(std::move(guest));
    });
    for (const net::Endpoint& endpoint : listener_->endpoints())
      options_.tell("listening at " + net::to_text(endpoint));
  }
  reactor_.start();
  if (!coordinates()) return;
  then_look([this] {
    coordinator_->back(kOwnLink, now_ns());
    member_.back();
  });
}

Meeting::~Meeting() {
  listener_.reset();
  reactor_.stop();
}

void Meeting::join(const PeerPlan& plan) {
  Peer& peer = peers_.emplace_back();
  peer.plan = plan;
  peer.changed_ns = now_ns();
  net::LinkOptions link;
  link.session.self.node = identity_.id().bytes;
  link.session.self.session = process_;
  link.session.peer = plan.id.bytes;
  link.session.dials = plan.dials();
  link.session.seed = draw();
  link.session.plan_comes_later = true;
  link.session.self.features = net::kFeatureStranded;
  link.peer_name = plan.name;
  link.endpoints = plan.endpoints;
  link.tls = &tls_;
  link.tell = [this, &peer](const net::Event& event, const std::string& why) { hear(peer, event, why); };
  link.on_other = [this, &peer](const std::string& why) {
    peer.other = why;
    peer.other_since_ns = std::min(peer.other_since_ns, now_ns());
  };
  peer.session = &reactor_.add(link);
  if (plan.name == options_.nodes[0]) coordinator_peer_ = &peer;
}

// ---- tasks ---------------------------------------------------------------------------------------------------------

void Meeting::add(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

std::optional<Task> Meeting::take(std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, within, [&] { return !tasks_.empty(); })) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

// ---- the link's thread ----------------------------------------------------------------------------------------------

Meeting::Peer* Meeting::peer_of(fleet::Link link) {
  const auto at = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.link == link; });
  return at == peers_.end() ? nullptr : &*at;
}

void Meeting::hear(Peer& peer, const net::Event& event, const std::string& why) {
  using enum net::EventType;
  const bool is_coordinator = &peer == coordinator_peer_;
  switch (event.type) {
    case met:
    case back:
      set_away(peer, false);
      peer.has_left = false;
      peer.why.clear();
      peer.refused_since_ns = peer.other_since_ns = INT64_MAX;
      peer.other_version.reset();
      if (coordinates()) {
        if (event.type == met) {
          if (peer.link != 0) coordinator_->gone(peer.link, now_ns());
          peer.link = ++links_;
          coordinator_->introduce(peer.link, peer.plan.name);
        }
        coordinator_->back(peer.link, now_ns());
      } else if (is_coordinator) {
        member_.back();
      }
      break;
    case away:
    case leaving:
    case drained: {
      // A peer that contradicts itself is away by that; of others nothing more is known.
      const std::string fault = event.type == away ? std::string(event.sentence) : "";
      if (!fault.empty()) peer.why = fault;
      set_away(peer, true);
      if (event.type == drained) record_left(peer);
      if (coordinates() && event.type == away)
        coordinator_->away(peer.link, now_ns(), fault);
      else if (coordinates())
        coordinator_->left(peer.link, now_ns());
      if (is_coordinator) member_.away(now_ns(), fault);
      break;
    }
    case message:
      for (std::string text; peer.session->take_message(text);) {
        if (coordinates()) coordinator_->received(peer.link, text, now_ns());
        if (is_coordinator) member_.received(text);
      }
      break;
    case dial:
      if (event.lane != 0) break;
      if (!why.empty()) peer.why = why;
      look_at_other(peer);
      break;
    case refused:
    case was_refused: hear_refusal(peer, event); break;
    default: break;
  }
  look();
}

void Meeting::hear_refusal(Peer& peer, const net::Event& event) {
  const std::string sentence = event.sentence.empty() ? net::sentence_of(event.fault) : std::string(event.sentence);
  // The other node says more of it only until it ends: then its address refuses connections.
  const bool is_told = event.type == net::EventType::was_refused && net::is_contradiction(event.fault);
  if (is_told && peer.why != sentence)
    options_.warn("warning: " + peer.plan.name + " refuses this node, which contradicts itself: " + sentence);
  if (event.lane != 0) {
    // One side follows the plan before the other does; and a cut is nobody's fault.
    const bool differs = event.fault >= net::Fault::open_name && event.fault <= net::Fault::open_expected;
    if (differs)
      fail_for_good({code::other_version,
                     name_ + " and " + peer.plan.name + " have made different plans of the same pipeline",
                     {},
                     {sentence, "install the same version of millrace and its plugins on both"},
                     "",
                     ""});
    if (net::is_contradiction(event.fault)) peer.why = sentence;
    return;
  }
  peer.why = sentence;
  if (event.fault == net::Fault::version || event.fault == net::Fault::feature) return hear_other_version(peer);
  const bool is_second = event.fault == net::Fault::running_already && event.type == net::EventType::was_refused;
  if (!is_second || &peer != coordinator_peer_) return;
  peer.refused_since_ns = std::min(peer.refused_since_ns, now_ns());
}

// Waiting is of no use to a member, which ends. The coordinator waits on: once the other program is installed, somebody
// starts that node again.
void Meeting::hear_other_version(Peer& peer) {
  Error error{code::other_version,
              name_ + " and " + peer.plan.name + " have versions of millrace that cannot talk to each other",
              {},
              {peer.why, name_ + " is millrace " + options_.program, "install the same version of millrace on both"},
              "",
              ""};
  const bool is_news = !peer.other_version || peer.other_version->notes != error.notes;
  peer.other_version = error;
  if (&peer == coordinator_peer_)
    end_by(std::move(error));
  else if (coordinates() && is_news)
    options_.tell("refused " + peer.plan.name + ": " + format_error(error));
}

// This node ends alone; the others hear only that it has left.
void Meeting::end_by(Error error) {
  if (is_started_)
    add({.type = Task::Type::fail, .failure = fleet::RunFailure{error, name_, "", fleet::kNoTick, true}});
  add({.type = Task::Type::over, .error = std::move(error)});
}

// The process before this one may just have died: it is heard no more within 3 s, and then this one has its place.
void Meeting::look_at_second(int64_t now_ns) {
  if (coordinates() || coordinator_peer_->refused_since_ns == INT64_MAX) return;
  if (now_ns - coordinator_peer_->refused_since_ns < kSecondProcessNs) return;
  coordinator_peer_->refused_since_ns = INT64_MAX;
  end_by({code::running_already,
          name_ + " is running already",
          {},
          {"another process of this name takes part; stop one of the two"},
          "",
          ""});
}

// The attempt before has tried all addresses. If the peer was at one of them, it has been met.
void Meeting::look_at_other(Peer& peer) {
  const std::string other = std::exchange(peer.other, "");
  if (other.empty()) peer.other_since_ns = INT64_MAX;
  const bool is_needed = coordinates() || &peer == coordinator_peer_ || (prepared_ && !peer.ends.empty());
  if (is_started_ || !is_needed || peer.other_since_ns == INT64_MAX) return;
  if (now_ns() - peer.other_since_ns < kOtherPeerNs) return;
  peer.other_since_ns = INT64_MAX;
  Error error{
      code::other_peer,
      "somebody else answers as " + peer.plan.name,
      {},
      {other, peer.plan.name + " has another key than the one that was told here, or the address is another machine's"},
      "",
      "millrace nodes forget " + peer.plan.name + ", then millrace nodes add " + peer.plan.name + " ID ADDRESS"};
  if (peer.plan.is_id_declared) error.edit = "nodes: { " + peer.plan.name + ": { id: ID, address: ADDRESS } }";
  if (coordinates())
    coordinator_->call_off(error);
  else if (&peer == coordinator_peer_)
    add({.type = Task::Type::over, .error = std::move(error)});
  else
    member_.unable(*std::exchange(prepared_, std::nullopt), error);
}

// All nodes end by this, at once.
void Meeting::fail_for_good(Error error) {
  if (std::exchange(has_failed_, true)) return;
  member_.failed({std::move(error), name_, "", fleet::kNoTick, true});
}

void Meeting::log_presence(const Peer& peer, bool away) const {
  if (away)
    options_.tell(peer.plan.name + " is away" + (peer.why.empty() ? "" : " (" + peer.why + ")"));
  else if (peer.away_since_ns != INT64_MAX)
    options_.tell(fmt::format("{} is back after {:.1f} s", peer.plan.name,
                              static_cast<double>(now_ns() - peer.away_since_ns) / 1e9));
}

void Meeting::set_away(Peer& peer, bool away) {
  if (away == peer.is_away) return;
  if (is_started_ && !is_over_) log_presence(peer, away);
  peer.is_away = away;
  peer.changed_ns = now_ns();
  peer.away_since_ns = away ? now_ns() : INT64_MAX;
  for (embed::LinkEnd& end : peer.ends)
    if (!away || end.plan.delivery == net::Delivery::live) end.set_away(away);
}

// All that it had to give has come, and its process comes no more: nobody waits as for one that was cut off (7.9).
void Meeting::record_left(Peer& peer) {
  peer.has_left = true;
  for (embed::LinkEnd& end : peer.ends)
    if (!end.waits) end.set_away(true);
}

void Meeting::look_at_time() {
  then_look([this] {
    const int64_t now = now_ns();
    for (Peer& peer : peers_) {
      const net::Heartbeat::Offset offset = peer.session->offset(now);
      if (offset.known && peer.link != 0) coordinator_->round_trip(peer.link, offset.round_trip_ns);
      if (offset.known && &peer == coordinator_peer_ && !peer.is_away)
        time_.follow({offset.offset_ns, offset.error_ns});
    }
    if (start_ns_) start(*start_ns_);
    look_at_compile(now);
    look_at_patience(now);
    look_at_requests(now);
    look_at_second(now);
    send_prepared();
    look_at_missing(now);
    if (coordinates()) coordinator_->on_time(now);
    member_.on_time(now);
    send_waits(now);
    record_links(now);
  });
}

// A plan has places for the ticks of a round trip, so each is measured first: that takes one more.
void Meeting::look_at_compile(int64_t now_ns) {
  if (!compile_since_ns_) return;
  const bool are_measured = std::all_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.is_away || peer.session->offset(now_ns).known;
  });
  if (!are_measured && now_ns - *compile_since_ns_ < kMeasureWithinNs) return;
  compile_since_ns_.reset();
  add({.type = Task::Type::compile, .number = compiles_});
}

// The coordinator minds its own links. No node but these two knows of a link between two others.
void Meeting::look_at_patience(int64_t now_ns) {
  for (Peer& peer : peers_) {
    if (peer.away_since_ns == INT64_MAX || peer.ends.empty()) continue;
    const int64_t away_ns = now_ns - peer.away_since_ns;
    for (embed::LinkEnd& end : peer.ends)
      if (!end.waits && away_ns >= resume_ns()) end.set_away(true);
    const bool is_missed = is_started_ && !coordinates() && &peer != coordinator_peer_ &&
                           std::any_of(peer.ends.begin(), peer.ends.end(), [](const auto& end) { return end.waits; });
    if (!is_missed || away_ns < options_.patience_ns) continue;
    fail_for_good({code::node_away,
                   peer.plan.name + " has been away from " + name_ + " for " +
                       std::to_string(options_.patience_ns / 1'000'000'000) + " s, and a clock waits for it",
                   {},
                   peer.why.empty() ? std::vector<std::string>{} : std::vector<std::string>{peer.why},
                   "",
                   ""});
  }
}

// Nodes that exchange ticks are linked before any of them starts. Under realtime rules they wait a while for that.
void Meeting::send_prepared() {
  if (!prepared_) return;
  const bool is_long = now_ns() - prepared_since_ns_ >= kLinksWithinNs;
  const auto is_missed = [&](const embed::LinkEnd& end) { return end.waits || !is_long; };
  for (const Peer& peer : peers_)
    if (peer.other_version && !peer.ends.empty())
      return member_.unable(*std::exchange(prepared_, std::nullopt), *peer.other_version);
  for (const Peer& peer : peers_)
    if (peer.is_away && std::any_of(peer.ends.begin(), peer.ends.end(), is_missed)) return;
  member_.prepared(*std::exchange(prepared_, std::nullopt), "{}");
}

// The nodes for which the start waits. A member that has no link to one knows it from the coordinator.
std::vector<std::string> Meeting::missing() const {
  if (is_started_ || is_over_) return {};
  if (coordinates()) return coordinator_->missing();
  std::vector<std::string> names;
  for (const Peer& peer : peers_) {
    const bool is_needed = &peer == coordinator_peer_ || (prepared_ && !peer.ends.empty());
    if (is_needed && peer.is_away) names.push_back(peer.plan.name);
  }
  if (coordinator_peer_->is_away) return names;
  for (const std::string& name : member_.missing())
    if (name != name_ && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

void Meeting::look_at_missing(int64_t now_ns) {
  const std::vector<std::string> names = missing();
  if (names.empty()) {
    missing_since_ns_ = warn_ns_ = INT64_MAX;
    return;
  }
  if (missing_since_ns_ == INT64_MAX) {
    missing_since_ns_ = now_ns;
    warn_ns_ = now_ns + kWarnOfMissingEveryNs;
  }
  const int64_t waited_ns = now_ns - missing_since_ns_;
  const bool is_one = names.size() == 1;
  if (waited_ns >= options_.wait_ns) {
    Error error{code::not_met,
                list_of(names) + (is_one ? " has" : " have") + " not come within " + seconds_of(options_.wait_ns),
                {},
                {"this node, " + name_ + ", waits for " + words_of(names)},
                "",
                "a longer --wait, or none: then it waits until all are there"};
    missing_since_ns_ = warn_ns_ = INT64_MAX;
    return coordinates() ? coordinator_->call_off(error) : end_by(std::move(error));
  }
  if (now_ns < warn_ns_) return;
  warn_ns_ = now_ns + kWarnOfMissingEveryNs;
  if (options_.warn)
    options_.warn("warning MR0820: " + list_of(names) + (is_one ? " has" : " have") + " not come for " +
                  seconds_of(waited_ns) + "; waiting for " + words_of(names));
}

void Meeting::send_waits(int64_t now_ns) {
  if (coordinates()) return; // its coordinator says when
  const std::vector<std::string> names = missing();
  if (names.empty() || now_ns < send_waits_ns_) return;
  if (send_waits_ns_ != INT64_MIN) log_waits(names);
  send_waits_ns_ = now_ns + fleet::Coordinator::kSayWaitsEveryNs;
}

// People who have just started the nodes want to know it soon. Later the warnings are enough.
void Meeting::log_waits(const std::vector<std::string>& names) {
  const bool is_early = missing_since_ns_ == INT64_MAX || now_ns() - missing_since_ns_ < kWarnOfMissingEveryNs;
  if (is_early) options_.tell("waiting for " + words_of(names));
}

void Meeting::look_at_ends(Peer& peer, int64_t now_ns) {
  for (size_t e = 0; e < peer.ends.size(); ++e) {
    const embed::LinkEnd& end = peer.ends[e];
    CrossingLook& look = peer.looks[e];
    ++look.looks;
    if (const net::Incoming* const incoming = peer.session->incoming(end.plan.number); incoming && end.arrival)
      look.sent = look.acknowledged = incoming->counts().arrived;
    const net::Outgoing* const outgoing = peer.session->outgoing(end.plan.number);
    if (!outgoing || !end.departure) continue;
    Passage& passage = peer.passages[e];
    if (outgoing->counts().acknowledged != look.acknowledged) passage.still_since_ns = now_ns;
    if (outgoing->is_open()) passage.closed_since_ns = INT64_MAX;
    if (!outgoing->is_open()) passage.closed_since_ns = std::min(passage.closed_since_ns, now_ns);
    look.sent = outgoing->counts().sent;
    look.acknowledged = outgoing->counts().acknowledged;
    if (!end.departure->is_held_up() || outgoing->has_taken_end()) continue;
    ++(!outgoing->is_open()           ? look.waits_for_node
       : outgoing->waits_for_reader() ? look.waits_for_reader
                                      : look.waits_for_wire);
  }
}

void Meeting::record_links(int64_t now_ns) {
  FleetLook all;
  all.revision = member_.revision();
  all.has_started = is_started_;
  all.is_over = is_over_;
  for (Peer& peer : peers_) {
    look_at_ends(peer, now_ns);
    all.crossings.insert(all.crossings.end(), peer.looks.begin(), peer.looks.end());
    const net::Heartbeat::Offset offset = peer.session->offset(now_ns);
    const bool is_suspect = peer.session->presence() == net::Presence::suspect;
    const char* const state = peer.is_away ? "away" : is_suspect ? "suspect" : "there";
    PeerLook& look = all.peers.emplace_back();
    look.link = {peer.plan.name, state, us_of(offset.round_trip_ns), us_of(offset.offset_ns), us_of(offset.error_ns)};
    look.id = net::short_text(peer.plan.id);
    if (peer.plan.dials()) look.address = net::to_text(peer.plan.endpoints[0]);
    look.program = program_of(peer.plan.name);
    look.since_s = static_cast<double>(now_ns - peer.changed_ns) / 1e9;
  }
  const std::lock_guard lock(mutex_);
  for (size_t p = 0; p < peers_.size(); ++p)
    if (const auto from = came_from_.find(peers_[p].plan.id); from != came_from_.end())
      all.peers[p].address = from->second;
  look_around_ = std::move(all);
}

// The coordinator has everybody's offer.
std::string Meeting::program_of(const std::string& node) const {
  if (!coordinates()) return "";
  const auto at = std::find(options_.nodes.begin(), options_.nodes.end(), node);
  return coordinator_->offer(static_cast<uint32_t>(at - options_.nodes.begin())).program;
}

// Does all that the coordinator and the member want, until they want nothing more.
void Meeting::look() {
  for (bool goes_on = true; goes_on;) {
    goes_on = coordinates() && look_at_coordinator();
    goes_on = look_at_member() || goes_on;
  }
}

// A message that is lost here is said again once the link is back.
void Meeting::say(net::Session& session, std::string text) {
  if (session.say(std::move(text))) reactor_.ring();
}

std::string Meeting::words_of(const std::vector<std::string>& names) {
  std::string words;
  for (const std::string& name : names) {
    const auto peer =
        std::find_if(peers_.begin(), peers_.end(), [&](const Peer& one) { return one.plan.name == name; });
    words += (words.empty() ? "" : ", ") + name;
    if (peer == peers_.end()) continue;
    const bool never_came = !peer->plan.dials() && peer->session->pairings() == 0;
    const std::string why = peer->why.empty() && never_came ? "it has not dialled this node yet" : peer->why;
    if (!why.empty()) words += " (" + why + ")";
  }
  const std::lock_guard lock(mutex_);
  if (const std::string unknown = std::exchange(unknown_, ""); !unknown.empty())
    words += "; refused a caller: " + unknown;
  return words;
}

bool Meeting::look_at_coordinator() {
  fleet::Coordinator::Event event;
  if (!coordinator_->poll(event)) return false;
  using Type = fleet::Coordinator::Event::Type;
  switch (event.type) {
    case Type::say:
      if (event.link == kOwnLink)
        member_.received(event.text);
      else if (Peer* const peer = peer_of(event.link))
        say(*peer->session, std::move(event.text));
      break;
    case Type::compile:
      ++compiles_;
      compile_since_ns_ = now_ns();
      break;
    case Type::answered: {
      const std::lock_guard lock(mutex_);
      answer_ = std::move(event.text);
      changed_.notify_all();
      break;
    }
    case Type::waits: log_waits(event.nodes); break;
    case Type::refused: options_.tell("refused " + list_of(event.nodes) + ": " + format_error(*event.error)); break;
    case Type::begun: options_.tell("all nodes are ready: " + list_of(options_.nodes)); break;
    case Type::given_up: options_.tell(event.text); break;
    case Type::over: is_over_ = true; break; // the member hears it too
  }
  return true;
}

bool Meeting::look_at_member() {
  fleet::Member::Event event;
  if (!member_.poll(event)) return false;
  using Type = fleet::Member::Event::Type;
  switch (event.type) {
    case Type::say:
      if (coordinates())
        coordinator_->received(kOwnLink, event.text, now_ns());
      else
        say(*coordinator_peer_->session, std::move(event.text));
      break;
    case Type::prepare: add({.type = Task::Type::prepare, .brief = std::move(event.brief)}); break;
    case Type::question:
      if (const std::optional<std::string> carried = LinkPrices::answer(event.text)) { // at once: its time counts
        member_.answered(event.number, *carried);
        break;
      }
      add({.type = Task::Type::answer, .number = event.number, .text = std::move(event.text)});
      break;
    case Type::request: take(event.request); break;
    case Type::reply: requests_.replied(event.number, event.text); break;
    case Type::drop: add({.type = Task::Type::drop}); break;
    case Type::start: start(event.zero_ns); break;
    case Type::stop:
      is_stopping_ = true;
      add({.type = Task::Type::stop});
      break;
    case Type::clocks_over: add({.type = Task::Type::clocks_over}); break;
    case Type::waits: {
      const std::lock_guard lock(mutex_);
      elsewhere_ = std::move(event.lines);
      break;
    }
    case Type::fail: add({.type = Task::Type::fail, .failure = std::move(event.failure)}); break;
    case Type::fail_stream: add({.type = Task::Type::fail_stream, .failure = std::move(event.failure)}); break;
    case Type::over:
      is_over_ = true;
      add({.type = Task::Type::over, .error = std::move(event.error)});
      if (coordinates()) coordinator_->gone(kOwnLink, now_ns());
      break;
  }
  return true;
}

// Each link begins with a ping, so the coordinator's clock is known at once but for bad luck.
void Meeting::start(int64_t zero_ns) {
  const net::Heartbeat::Offset offset =
      coordinates() ? net::Heartbeat::Offset{} : coordinator_peer_->session->offset(now_ns());
  start_ns_ = zero_ns;
  if (!coordinates() && !offset.known) return;
  start_ns_.reset();
  time_.begin(zero_ns, {offset.offset_ns, offset.error_ns});
  is_started_ = true;
  for (Peer& peer : peers_)
    if (peer.plan.dials()) follow(peer);
  add({.type = Task::Type::start});
}

// The side that is dialled follows once its part is ready, the other one at the start.
void Meeting::follow(Peer& peer) {
  if (peer.ends.empty() || peer.follows || !brief_) return;
  peer.follows = true;
  const std::array<std::byte, 32> hash = net::sha256(std::as_bytes(std::span(brief_->body)));
  uint64_t run = 0;
  for (size_t i = 0; i < 8; ++i) run = run << 8 | static_cast<uint64_t>(hash[i]);
  peer.session->follow(run, brief_->revision, hash, now_ns());
  reactor_.ring();
}

// ---- the interface -------------------------------------------------------------------------------------------------

void Meeting::then_look(std::function<void()> work) {
  reactor_.post([this, work = std::move(work)] {
    work();
    look();
  });
}

void Meeting::compiled(std::vector<fleet::Part> parts, uint64_t number) {
  then_look([this, parts = std::move(parts), number] {
    if (number == compiles_) coordinator_->compiled(parts, now_ns());
  });
}
void Meeting::refuse(const Error& error, uint64_t number) {
  then_look([this, error, number] {
    if (number == compiles_) coordinator_->refuse(error);
  });
}
void Meeting::prepared(uint32_t revision) {
  then_look([this, revision] {
    prepared_ = revision;
    prepared_since_ns_ = now_ns();
    send_prepared();
  });
}
void Meeting::unable(uint32_t revision, const Error& error) {
  then_look([this, revision, error] { member_.unable(revision, error); });
}
void Meeting::failed(const fleet::RunFailure& failure) {
  then_look([this, failure] { member_.failed(failure); });
}
void Meeting::stream_failed(const fleet::RunFailure& failure) {
  then_look([this, failure] { member_.stream_failed(failure); });
}
void Meeting::finished(const std::string& report, const std::string& trace, const std::optional<Error>& error) {
  then_look([this, report, trace, error] { member_.finished(report, trace, error); });
}

// The node has carried it out, is about to, or does so now.
void Meeting::take(const fleet::Request& request) {
  switch (requests_.take(request)) {
    case Requests::Taken::anew: return add({.type = Task::Type::request, .request = request});
    case Requests::Taken::replied: return member_.reply(requests_.reply_to(request));
    case Requests::Taken::under_way:
    case Requests::Taken::too_many: return; // it is said again
  }
}

void Meeting::look_at_requests(int64_t now_ns) {
  if (coordinator_peer_ && coordinator_peer_->is_away) return requests_.give_up();
  for (const fleet::Request& request : requests_.due(now_ns)) member_.ask(request);
}

void Meeting::request(const std::string& to, const std::string& body, const Requests::Done& done) {
  then_look([this, to, body, done] { member_.ask(requests_.ask(to, body, done, now_ns())); });
}

void Meeting::reply(const fleet::Reply& reply) {
  then_look([this, reply] {
    requests_.reply(reply);
    member_.reply(reply);
  });
}

std::vector<std::string> Meeting::away_of(const std::vector<std::string>& nodes) {
  std::vector<std::string> away;
  for (const PeerLook& peer : look_around().peers)
    if (peer.link.state == "away" && std::find(nodes.begin(), nodes.end(), peer.link.node) != nodes.end())
      away.push_back(peer.link.node);
  return away;
}

void Meeting::waits(const std::vector<std::string>& lines) {
  then_look([this, lines] { member_.waits(lines); });
}

void Meeting::clocks_over() {
  then_look([this] { member_.clocks_over(); });
}

void Meeting::stop() {
  if (!coordinates()) return add({.type = Task::Type::leave});
  then_look([this] { coordinator_->stop(now_ns()); });
}

void Meeting::attach(exec::Run& run, const plan::Plan& plan, const fleet::Brief& brief) {
  for (const PeerPlan& peer : options_.peers)
    for (const plan::CrossingPlan& crossing : plan.crossings)
      if (crossing.node == peer.name && peer.missing) throw Failure(*peer.missing);
  on_link([&] {
    brief_ = brief;
    for (Peer& peer : peers_) {
      peer.ends = embed::make_link_ends(run, plan, peer.plan.name);
      peer.looks.clear();
      peer.passages.assign(peer.ends.size(), {now_ns()});
      for (const embed::LinkEnd& end : peer.ends)
        peer.looks.push_back({.name = end.plan.name, .departs = end.departure != nullptr});
      for (embed::LinkEnd& end : peer.ends)
        if (end.departure)
          peer.session->add(end.plan, *end.departure);
        else
          peer.session->add(end.plan, *end.arrival);
      if (!peer.plan.dials()) follow(peer);
      if (!peer.is_away || peer.ends.empty()) continue;
      peer.is_away = false; // the ends learn that it is away
      set_away(peer, true);
    }
  });
}

void Meeting::detach() {
  on_link([&] {
    brief_.reset();
    prepared_.reset();
    for (Peer& peer : peers_) {
      if (!peer.ends.empty()) peer.session->is_shared() ? peer.session->end_plan() : peer.session->forget_plan();
      peer.follows = false;
      peer.ends.clear();
      peer.looks.clear();
      peer.passages.clear();
    }
  });
}

// Nobody waits for a node after the patience, so a `reliable` crossing does not either.
int64_t Meeting::resume_ns() const { return std::min(kResumeNs, options_.patience_ns); }

bool Meeting::has_delivered(const Peer& peer, const embed::LinkEnd& end, int64_t waited_ns) const {
  if (!end.departure) return true;
  const net::Outgoing& outgoing = *peer.session->outgoing(end.plan.number);
  if (outgoing.has_taken_end() && outgoing.is_drained()) return true;
  if (end.waits) return false; // nothing is left out, however long it takes
  const int64_t now = now_ns();
  const Passage& passage = peer.passages[static_cast<size_t>(&end - peer.ends.data())];
  // A reader that takes nothing in may never do so again.
  if (outgoing.is_open()) return waited_ns >= kResumeNs && now - passage.still_since_ns >= kResumeNs;
  const bool is_live = end.plan.delivery == net::Delivery::live;
  const bool is_long_away =
      peer.has_left || (peer.away_since_ns != INT64_MAX && now - peer.away_since_ns >= resume_ns());
  // The peer is there, and has ended its own run.
  const bool is_over_there = is_stopping_ && !peer.is_away && passage.closed_since_ns != INT64_MAX &&
                             now - passage.closed_since_ns >= kLinksWithinNs;
  return is_live || is_long_away || is_over_there || waited_ns >= kResumeNs;
}

bool Meeting::has_delivered(int64_t waited_ns) {
  return on_link([&] {
    return std::all_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
      return std::all_of(peer.ends.begin(), peer.ends.end(),
                         [&](const embed::LinkEnd& end) { return has_delivered(peer, end, waited_ns); });
    });
  });
}

void Meeting::answered(uint64_t question, const std::string& answer) {
  then_look([this, question, answer] { member_.answered(question, answer); });
}

std::string Meeting::ask(const std::string& node, const std::string& question) {
  const auto at = std::find(options_.nodes.begin(), options_.nodes.end(), node);
  const auto number = static_cast<uint32_t>(at - options_.nodes.begin());
  {
    const std::lock_guard lock(mutex_);
    answer_.reset();
  }
  then_look([this, number, question] { coordinator_->ask(number, question); });
  const int64_t until_ns = now_ns() + options_.patience_ns;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLookAtTimeEvery, [&] { return answer_.has_value(); })) {
    lock.unlock();
    look_at_time(); // whoever runs the node waits here
    if (now_ns() > until_ns) then_look([this] { coordinator_->forget_question(); });
    lock.lock();
  }
  if (answer_->empty()) throw Failure(code::node_away, node + " did not answer while the plan was made");
  return *std::exchange(answer_, std::nullopt);
}

std::vector<std::string> Meeting::waiting_elsewhere() {
  const std::lock_guard lock(mutex_);
  return elsewhere_;
}

std::vector<LinkReport> Meeting::links() {
  std::vector<LinkReport> links;
  for (PeerLook& peer : look_around().peers) links.push_back(std::move(peer.link));
  return links;
}

FleetLook Meeting::look_around() {
  const std::lock_guard lock(mutex_);
  return look_around_;
}

std::map<std::string, std::string> Meeting::offers() {
  return on_link([&] {
    std::map<std::string, std::string> offers;
    for (uint32_t node = 1; node < options_.nodes.size(); ++node)
      offers[options_.nodes[node]] = coordinator_->offer(node).body;
    return offers;
  });
}

std::map<std::string, std::string> Meeting::reports() {
  return of_others([this](uint32_t node) { return coordinator_->report(node); });
}
std::map<std::string, std::string> Meeting::traces() {
  return of_others([this](uint32_t node) { return coordinator_->trace(node); });
}

std::map<std::string, std::string> Meeting::of_others(const std::function<std::string(uint32_t)>& text_of) {
  return on_link([&] {
    std::map<std::string, std::string> texts;
    for (uint32_t node = 1; node < options_.nodes.size(); ++node)
      if (std::string text = text_of(node); !text.empty()) texts[options_.nodes[node]] = std::move(text);
    return texts;
  });
}

int64_t Meeting::round_trip_ns() {
  return on_link([&] {
    int64_t longest_ns = 0;
    for (const Peer& peer : peers_) longest_ns = std::max(longest_ns, peer.session->offset(now_ns()).round_trip_ns);
    return longest_ns;
  });
}

void Meeting::leave_at_once() {
  reactor_.post([this] {
    for (Peer& peer : peers_) peer.session->leave();
    reactor_.ring();
  });
  std::this_thread::sleep_for(kLeaveAtOnceWithin);
}

void Meeting::part() {
  const auto until = std::chrono::steady_clock::now() + kPartWithin;
  const auto wait_for = [&](auto is_done) {
    while (!on_link(is_done) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  if (coordinates()) wait_for([&] { return coordinator_->has_parted(); });
  on_link([&] {
    for (Peer& peer : peers_) peer.session->leave();
    reactor_.ring();
  });
  wait_for([&] { return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.is_away; }); });
}

} // namespace millrace::node
