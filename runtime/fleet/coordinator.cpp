// The coordinator's phases; see coordinator.h.
#include "fleet/coordinator.h"

#include <algorithm>
#include <utility>

#include "fleet/pipeline_difference.h"
#include "observe/error_codes.h"

namespace millrace::fleet {

namespace {

std::string seconds(int64_t ns) { return std::to_string(ns / 1'000'000'000) + " s"; }

// A failure of a node that belongs to no tick, and after which nobody waits for what is in flight.
RunFailure hopeless_failure(const std::string& node, int code, std::string what, std::vector<std::string> notes = {}) {
  return {{code, std::move(what), {}, std::move(notes), {}, {}}, node, "", kNoTick, true};
}

} // namespace

Coordinator::Coordinator(const CoordinatorOptions& options) : options_(options) {
  MR_ASSERT(!options_.nodes.empty() && options_.process != 0, "a fleet has nodes, and its coordinator a number");
  for (const std::string& name : options_.nodes) nodes_.emplace_back().name = name;
}

Coordinator::Node* Coordinator::node_of(Link link) {
  for (Node& node : nodes_)
    if (node.link == link) return &node;
  return nullptr;
}

// ---- links ---------------------------------------------------------------------------------------------------------

void Coordinator::back(Link link, int64_t now_ns) {
  Node* const node = node_of(link);
  if (!node) return; // it has not offered yet, or another process has its place: its offer comes again and is refused
  node->is_away = false;
  if (node->given_up && node->is_started && !node->part.needed) node->given_up = false;
  send_all_to(*node);
  if (is_asked(*node)) say(link, *asked_);
  look(now_ns);
}

void Coordinator::away(Link link, int64_t now_ns, const std::string& why) {
  for (Node& node : nodes_)
    if (node.newcomer.link == link) node.newcomer = {}; // it offers again once it is back
  Node* const node = node_of(link);
  if (!node || node->is_away) return;
  node->is_away = true;
  node->away_since_ns = now_ns;
  node->why_away = why;
  take_newcomer(*node, now_ns);
  look(now_ns);
}

void Coordinator::gone(Link link, int64_t now_ns) {
  away(link, now_ns);
  round_trips_.erase(link);
  names_.erase(link);
  Node* const node = node_of(link);
  if (!node) return;
  node->link = 0;
  if (phase_ == Phase::compiling || phase_ == Phase::preparing) gather(now_ns);
  if (is_asked(*node)) end_question("");
}

void Coordinator::left(Link link, int64_t now_ns) {
  Node* const node = node_of(link);
  gone(link, now_ns);
  if (!node || !waits_for(*node)) return; // another process has its place, or the run ends anyway
  give_up(*node, node->name + " has left the run");
  look(now_ns);
}

void Coordinator::introduce(Link link, const std::string& node) { names_[link] = node; }

void Coordinator::round_trip(Link link, int64_t round_trip_ns) { round_trips_[link] = round_trip_ns; }

void Coordinator::received(Link link, std::string_view text, int64_t now_ns) {
  Statement statement;
  std::string why;
  Node* const node = node_of(link);
  if (!read_statement(text, statement, why))
    return refuse_process(link, node ? node->name : "a node", code::other_version,
                          "a statement that cannot be read: " + why);
  if (const auto* offer = std::get_if<Offer>(&statement)) take(link, *offer, now_ns);
  if (const auto* state = std::get_if<State>(&statement); state && node) take(*node, *state, now_ns);
  if (const auto* over = std::get_if<StreamOver>(&statement); over && node) take(*node, *over);
  const auto* answer = std::get_if<Answer>(&statement);
  const bool is_awaited = answer && node && is_asked(*node) && answer->number == asked_->number;
  if (is_awaited) end_question(answer->body);
  if (const auto* request = std::get_if<Request>(&statement); request && node) pass_on(*node, *request);
  if (const auto* reply = std::get_if<Reply>(&statement); reply && node) pass_on(*reply);
}

// ---- between nodes -------------------------------------------------------------------------------------------------

Coordinator::Node* Coordinator::node_named(const std::string& name) {
  const auto at = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.name == name; });
  return at == nodes_.end() ? nullptr : &*at;
}

// A node asks in its own name alone.
void Coordinator::pass_on(const Node& from, const Request& request) {
  if (request.from != from.name || request.process != from.offer.process) return;
  const Node* const to = node_named(request.to);
  if (to && to->is_there())
    say(to->link, request);
  else
    say(from.link, Reply{request.from, request.process, request.number, ""});
}

// A process that is gone hears nothing, and one that has taken its place did not ask.
void Coordinator::pass_on(const Reply& reply) {
  const Node* const to = node_named(reply.to);
  if (to && to->is_there() && to->offer.process == reply.process) say(to->link, reply);
}

// ---- offers --------------------------------------------------------------------------------------------------------

void Coordinator::take(Link link, const Offer& offer, int64_t now_ns) {
  if (const auto known = names_.find(link); known != names_.end() && known->second != offer.node)
    return refuse_process(link, offer.node, code::unknown_peer, known->second + " says that it is " + offer.node,
                          {"start it with --node " + known->second});
  const auto at = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.name == offer.node; });
  if (at == nodes_.end())
    return refuse_process(link, offer.node, code::unknown_node, "the pipeline has no node " + offer.node);
  if (offer.pipeline != options_.pipeline) {
    const std::string& here = options_.nodes[0];
    std::vector<std::string> notes = pipeline_difference({here, options_.canonical}, {offer.node, offer.canonical});
    if (notes.empty()) notes = {here + ": " + options_.pipeline, offer.node + ": " + offer.pipeline};
    return refuse_process(link, offer.node, code::other_pipeline, offer.node + " runs another pipeline", notes);
  }
  if (at->offer.process == offer.process) {
    if (at->link == link && at->is_there()) return; // back() has told it all
    at->link = link;
    return back(link, now_ns);
  }
  if (std::find(at->former.begin(), at->former.end(), offer.process) != at->former.end())
    return refuse_second(link, offer.node);
  if (!at->is_there()) return take_process(*at, link, offer, now_ns);
  Newcomer& newcomer = at->newcomer;
  if (newcomer.link == link) return;
  if (newcomer.link != 0) refuse_second(newcomer.link, offer.node);
  newcomer = {link, offer, now_ns + kNewcomerWaitsNs};
}

void Coordinator::take_newcomer(Node& node, int64_t now_ns) {
  if (node.newcomer.link == 0) return;
  const Newcomer newcomer = std::exchange(node.newcomer, {});
  take_process(node, newcomer.link, newcomer.offer, now_ns);
}

void Coordinator::refuse_second(Link link, const std::string& node) {
  refuse_process(link, node, code::running_already, node + " is running already",
                 {"another process of this name takes part; stop one of the two"});
}

// A node has another process than before.
void Coordinator::take_process(Node& node, Link link, const Offer& offer, int64_t now_ns) {
  const bool ran_before = node.was_started && phase_ == Phase::running;
  const bool began_again = ran_before && !node.is_done;
  if (node.offer.process != 0) node.former.push_back(node.offer.process);
  if (node.former.size() > kFormerMax) node.former.pop_front();
  if (is_asked(node)) end_question("");
  node.link = link;
  node.offer = offer;
  node.state = {};
  node.is_away = node.is_started = false;
  node.given_up = ran_before && (node.is_done || node.part.needed || failure_ || stopping_);
  if (phase_ == Phase::compiling || phase_ == Phase::preparing) gather(now_ns);
  if (began_again && node.part.needed)
    fail(hopeless_failure(node.name, code::began_again, node.name + " began again, and its ticks were not kept"));
  send_all_to(node);
  look(now_ns);
}

void Coordinator::refuse_process(Link link, const std::string& node, int code, std::string what,
                                 std::vector<std::string> notes) {
  Error error{code, std::move(what), {}, std::move(notes), {}, {}};
  if (code == code::unknown_node) error.nearest = nearest_name(node, options_.nodes);
  Order order;
  order.step = Order::Step::refused;
  order.process = options_.process;
  order.error = error;
  say(link, order);
  Event& event = events_.add(Event::Type::refused);
  event.link = link;
  event.nodes = {node};
  event.error = std::move(error);
}

// ---- states --------------------------------------------------------------------------------------------------------

void Coordinator::take(Node& node, const State& state, int64_t now_ns) {
  const bool of_this_brief = state.revision == revision_ && state.brief == node.part.brief.hash &&
                             (phase_ == Phase::preparing || phase_ == Phase::running);
  if (!of_this_brief) return; // it has not read the newest brief
  const bool is_news = node.state.waits != state.waits;
  node.state = state;
  if (is_news && phase_ == Phase::running) send_orders();
  if (state.failure && phase_ == Phase::running) fail(*state.failure);
  if (state.step == State::Step::done && !node.is_done) {
    node.is_done = true;
    node.report = state.body;
    node.trace = std::move(node.state.trace);
  }
  if (state.step == State::Step::unable && !node.given_up) {
    const RunFailure failure =
        hopeless_failure(node.name, code::unable_node, node.name + " cannot do its part", {format_error(*state.error)});
    if (phase_ == Phase::preparing) {
      failure_ = failure;
      return end();
    }
    node.given_up = true; // it came back, and what it had done it cannot do again
    if (node.part.needed) fail(failure);
  }
  look(now_ns);
}

// The earliest tick of the latest epoch counts, whichever node says it first.
void Coordinator::take(const Node& node, const StreamOver& over) {
  const bool of_this_brief = over.revision == revision_ && over.brief == node.part.brief.hash &&
                             (phase_ == Phase::preparing || phase_ == Phase::running);
  const auto known = streams_.find(over.failure.clock);
  const bool is_news =
      known == streams_.end() ? streams_.size() < kStreamFailuresMax : supersedes(over.failure, known->second);
  if (!of_this_brief || !is_news) return;
  RunFailure& failure = streams_[over.failure.clock] = over.failure;
  failure.node = node.name;
  for (const Node& other : nodes_)
    if (other.is_started) say(other.link, StreamOver{revision_, other.part.brief.hash, failure});
}

// The first failure counts, but the earliest tick of its clock is its cause.
void Coordinator::fail(const RunFailure& failure) {
  const bool is_first = !failure_;
  const bool is_earlier =
      failure_ && !failure.clock.empty() && failure.clock == failure_->clock && failure.index < failure_->index;
  const bool is_hopeless = failure.hopeless || (failure_ && failure_->hopeless);
  const bool is_news = is_first || is_earlier || is_hopeless != failure_->hopeless;
  if (is_first || is_earlier) failure_ = failure;
  failure_->hopeless = is_hopeless;
  if (is_news) send_orders();
}

// ---- phases --------------------------------------------------------------------------------------------------------

void Coordinator::compiled(std::vector<Part> parts, int64_t now_ns) {
  if (phase_ != Phase::compiling) return; // a node has gone meanwhile, or it was stopped
  MR_ASSERT(parts.size() == nodes_.size(), "each node has a part");
  phase_ = Phase::preparing;
  ++revision_;
  streams_.clear();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].part = std::move(parts[i]);
    nodes_[i].part.brief.revision = revision_;
    nodes_[i].state = {};
    send_all_to(nodes_[i]);
  }
  look(now_ns);
}

void Coordinator::ask(uint32_t node, std::string body) {
  MR_ASSERT(!asked_, "there is one question at a time");
  asked_ = Question{++questions_, std::move(body)};
  asked_node_ = node;
  if (nodes_[node].link == 0) return end_question("");
  say(nodes_[node].link, *asked_);
}

bool Coordinator::is_asked(const Node& node) const { return asked_ && &node == &nodes_[asked_node_]; }

void Coordinator::forget_question() {
  if (asked_) end_question("");
}

void Coordinator::end_question(std::string answer) {
  asked_.reset();
  events_.add(Event::Type::answered).text = std::move(answer);
}

void Coordinator::refuse(const Error& error) {
  if (phase_ == Phase::compiling) call_off(error);
}

void Coordinator::call_off(const Error& error) {
  if (phase_ == Phase::running || phase_ == Phase::ending) return;
  failure_ = hopeless_failure(options_.nodes[0], error.code, "");
  failure_->error = error;
  end();
  forget_question(); // whoever compiles need not go on
}

void Coordinator::stop(int64_t now_ns) {
  if (phase_ == Phase::ending) return;
  stopping_ = true;
  if (phase_ != Phase::running) {
    end();
    return forget_question(); // whoever compiles need not go on
  }
  send_orders();
  look(now_ns);
}

void Coordinator::gather(int64_t now_ns) {
  phase_ = Phase::gathering;
  send_orders();
  send_waits_ns_ = now_ns + kSayWaitsEveryNs;
}

// True if the process that is there has made its part of this revision.
bool Coordinator::is_ready(const Node& node) const {
  const State& state = node.state;
  return state.revision == revision_ &&
         (state.step == State::Step::ready || state.step == State::Step::runs || state.step == State::Step::done);
}

std::vector<std::string> Coordinator::missing() const {
  std::vector<std::string> names;
  for (const Node& node : nodes_)
    if (!has_begun() && !node.is_there()) names.push_back(node.name);
  return names;
}

void Coordinator::look(int64_t now_ns) {
  if (send_waits_ns_ == INT64_MIN) send_waits_ns_ = now_ns + kSayWaitsEveryNs;
  if (std::vector<std::string> names = missing(); !has_begun() && names != told_missing_) {
    told_missing_ = std::move(names);
    send_orders();
  }
  if (phase_ == Phase::gathering) {
    if (!std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.is_there(); })) return;
    phase_ = Phase::compiling;
    events_.add(Event::Type::compile);
  } else if (phase_ == Phase::preparing) {
    if (std::all_of(nodes_.begin(), nodes_.end(), [&](const Node& node) { return is_ready(node) && node.is_there(); }))
      start(now_ns);
  } else if (phase_ == Phase::running) {
    for (Node& node : nodes_) {
      const bool is_ending = failure_ || stopping_ || have_homes_ended_;
      if (node.is_started || !is_ready(node) || node.given_up || is_ending) continue;
      node.is_started = true; // it came back
      send_start(node);
    }
    // All clocks have ended. A node that waits for the end from one that is away is told that none comes.
    const auto all_needed = [&](auto is_so) {
      return std::all_of(nodes_.begin(), nodes_.end(),
                         [&](const Node& node) { return !node.part.needed || is_so(node); });
    };
    const bool are_clocks_over = all_needed([](const Node& node) { return node.is_done || node.state.clocks_over; });
    if (are_clocks_over && !std::exchange(are_clocks_over_, true)) send_orders();
    const bool have_homes_ended = all_needed([](const Node& node) { return node.is_done; });
    if (have_homes_ended && !std::exchange(have_homes_ended_, true)) send_orders();
    if (std::none_of(nodes_.begin(), nodes_.end(), [&](const Node& node) { return waits_for(node); })) end();
  }
}

void Coordinator::start(int64_t now_ns) {
  int64_t round_trip_ns = 0;
  for (const auto& [link, measured_ns] : round_trips_) round_trip_ns = std::max(round_trip_ns, measured_ns);
  zero_ns_ = now_ns + std::max(3 * round_trip_ns, kLeastLeadNs);
  phase_ = Phase::running;
  for (Node& node : nodes_) node.is_started = node.was_started = true;
  // Readers of ticks are told before those that make them.
  std::vector<const Node*> later_first;
  for (const Node& node : nodes_) later_first.push_back(&node);
  std::stable_sort(later_first.begin(), later_first.end(),
                   [](const Node* a, const Node* b) { return a->part.stage > b->part.stage; });
  for (const Node* node : later_first) send_start(*node);
  Event& begun = events_.add(Event::Type::begun);
  begun.at_ns = zero_ns_;
  for (const Node& node : nodes_)
    if (node.state.failure) fail(*node.state.failure); // once it was ready
}

void Coordinator::end() {
  phase_ = Phase::ending;
  // All streams of a set have failed that only one node has, say: nobody else had to end for it.
  for (const Node& node : nodes_)
    if (!failure_ && node.is_done && node.state.error)
      failure_ = RunFailure{*node.state.error, node.name, "", kNoTick, false};
  for (const Node& node : nodes_) send_all_to(node); // a link may just have lost what was said of streams
  Event& over = events_.add(Event::Type::over);
  over.failure = failure_;
}

// ---- time ----------------------------------------------------------------------------------------------------------

int64_t Coordinator::next_timer() const {
  int64_t next = INT64_MAX;
  if (!has_begun() && !missing().empty() && send_waits_ns_ != INT64_MIN) next = send_waits_ns_;
  for (const Node& node : nodes_) {
    if (node.newcomer.link != 0) next = std::min(next, node.newcomer.refuse_at_ns);
    if (waits_for(node) && node.is_away) next = std::min(next, node.away_since_ns + options_.patience_ns);
  }
  return next;
}

// True if the run is not over without the node. If it ends anyway, nobody waits until a node that is not needed is
// back.
bool Coordinator::waits_for(const Node& node) const {
  if (phase_ != Phase::running || !node.is_started || node.is_done || node.given_up) return false;
  return !node.is_away || node.part.needed || (!failure_ && !stopping_);
}

void Coordinator::on_time(int64_t now_ns) {
  if (now_ns < next_timer()) return;
  if (std::vector<std::string> names = missing(); !names.empty() && now_ns >= send_waits_ns_) {
    send_waits_ns_ = now_ns + kSayWaitsEveryNs;
    events_.add(Event::Type::waits).nodes = std::move(names);
  }
  for (Node& node : nodes_) {
    if (node.newcomer.link != 0 && now_ns >= node.newcomer.refuse_at_ns)
      refuse_second(std::exchange(node.newcomer, {}).link, node.name);
    if (waits_for(node) && node.is_away && now_ns >= node.away_since_ns + options_.patience_ns)
      give_up(node, node.name + " has been away for " + seconds(options_.patience_ns));
  }
  look(now_ns);
}

void Coordinator::give_up(Node& node, const std::string& why) {
  node.given_up = true;
  Event& event = events_.add(Event::Type::given_up);
  event.nodes = {node.name};
  event.text = node.part.needed ? why : why + ": nobody waits for it";
  if (!node.part.needed) return;
  const std::vector<std::string> notes =
      node.is_away && !node.why_away.empty() ? std::vector{node.why_away} : std::vector<std::string>{};
  fail(hopeless_failure(node.name, code::node_away, why + ", and others wait for it", notes));
}

bool Coordinator::has_parted() const {
  return phase_ == Phase::ending &&
         std::none_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.is_there(); });
}

// ---- words ---------------------------------------------------------------------------------------------------------

Order Coordinator::order_for(const Node& node) const {
  Order order;
  order.process = options_.process;
  if (phase_ == Phase::ending) {
    order.step = Order::Step::over;
    if (failure_) order.error = failure_->error;
    return order;
  }
  order.waits = missing();
  if (phase_ != Phase::preparing && phase_ != Phase::running) return order;
  if (node.given_up && !node.is_started) return order; // it came too late to take part
  order.step = node.is_started ? Order::Step::start : Order::Step::prepare;
  order.revision = revision_;
  order.brief = node.part.brief.hash;
  if (!node.is_started) return order;
  order.zero_ns = zero_ns_;
  order.stop = stopping_ || have_homes_ended_;
  order.clocks_over = are_clocks_over_;
  order.failure = failure_;
  order.waits = waits_beside(node);
  return order;
}

// The lines of all other nodes that are heard. One that is away says nothing new, and everybody hears that it is away.
std::vector<std::string> Coordinator::waits_beside(const Node& node) const {
  std::vector<std::string> lines;
  for (const Node& other : nodes_)
    if (&other != &node && other.is_there())
      for (const std::string& line : other.state.waits) lines.push_back("on " + other.name + ": " + line);
  return lines;
}

void Coordinator::say(Link link, const Statement& statement) {
  if (link == 0) return;
  Event& event = events_.add(Event::Type::say);
  event.link = link;
  event.text = to_text(statement);
}

// All that the node may not know.
void Coordinator::send_all_to(const Node& node) {
  const Order order = order_for(node);
  if (order.step == Order::Step::start) return send_start(node);
  if (order.step == Order::Step::prepare && !is_ready(node)) say(node.link, node.part.brief);
  if (order.step == Order::Step::over && node.is_started) send_streams(node); // it hears nothing after this order
  say(node.link, order);
}

void Coordinator::send_start(const Node& node) {
  say(node.link, order_for(node));
  send_streams(node); // it hears of no stream before it runs
}

void Coordinator::send_streams(const Node& node) {
  for (const auto& [clock, failure] : streams_) say(node.link, StreamOver{revision_, node.part.brief.hash, failure});
}

void Coordinator::send_orders() {
  for (const Node& node : nodes_) say(node.link, order_for(node));
}

} // namespace millrace::fleet
