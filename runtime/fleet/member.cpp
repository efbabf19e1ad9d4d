// The steps of a member; see member.h.
#include "fleet/member.h"

#include <utility>

#include "observe/error_codes.h"

namespace millrace::fleet {

Member::Member(Offer offer, std::string coordinator, int64_t patience_ns)
    : offer_(std::move(offer)), coordinator_(std::move(coordinator)), patience_ns_(patience_ns) {
  MR_ASSERT(offer_.process != 0, "a member's process has a number");
}

// ---- the link ------------------------------------------------------------------------------------------------------

// The coordinator may not have got what was said before.
void Member::back() {
  is_linked_ = true;
  away_since_ns_ = INT64_MAX;
  say(offer_);
  if (brief_.revision == 0) return;
  send_streams();
  send_state();
}

void Member::away(int64_t now_ns, const std::string& why) {
  is_linked_ = false;
  why_away_ = why;
  if (away_since_ns_ == INT64_MAX) away_since_ns_ = now_ns;
}

void Member::received(std::string_view text) {
  Statement statement;
  std::string why;
  if (is_over_) return;
  if (!read_statement(text, statement, why))
    return end(
        Error{code::other_version, coordinator_ + " made a statement that cannot be read: " + why, {}, {}, {}, {}});
  if (const auto* brief = std::get_if<Brief>(&statement)) take(*brief);
  if (const auto* order = std::get_if<Order>(&statement)) take(*order);
  if (const auto* over = std::get_if<StreamOver>(&statement)) take(*over);
  if (const auto* question = std::get_if<Question>(&statement)) {
    Event& event = events_.add(Event::Type::question);
    event.text = question->body;
    event.number = question->number;
  }
  if (const auto* request = std::get_if<Request>(&statement); request && request->to == offer_.node)
    events_.add(Event::Type::request).request = *request;
  const auto* reply = std::get_if<Reply>(&statement);
  if (reply && reply->to == offer_.node && reply->process == offer_.process) {
    Event& event = events_.add(Event::Type::reply);
    event.text = reply->body;
    event.number = reply->number;
  }
}

void Member::take(const Brief& brief) {
  if (brief.revision > brief_.revision) next_ = brief;
}

void Member::take(const Order& order) {
  const bool is_another = coordinator_process_ != 0 && order.process != coordinator_process_;
  if (is_another && brief_.revision > 0)
    return end(
        Error{code::began_again, coordinator_ + " began again, and this node followed the one before", {}, {}, {}, {}});
  coordinator_process_ = order.process;
  if (order.step == Order::Step::refused || order.step == Order::Step::over) return end(order.error);
  missing_ = order.step == Order::Step::start ? std::vector<std::string>{} : order.waits;
  if (order.step == Order::Step::wait) return;
  if (next_.revision == order.revision && next_.hash == order.brief && next_.revision > brief_.revision)
    begin_to_prepare();
  if (order.step != Order::Step::start || order.revision != brief_.revision || order.brief != brief_.hash) return;
  if (step_ == Step::ready) {
    step_ = Step::runs;
    state_.step = State::Step::runs;
    state_.body.clear();
    Event& start = events_.add(Event::Type::start);
    start.zero_ns = order.zero_ns;
    send_state();
  }
  if (step_ != Step::runs) return;
  if (order.clocks_over && !std::exchange(told_clocks_over_, true)) events_.add(Event::Type::clocks_over);
  if (order.stop && !std::exchange(told_stop_, true)) events_.add(Event::Type::stop);
  if (order.waits != told_waits_) {
    told_waits_ = order.waits;
    events_.add(Event::Type::waits).lines = order.waits;
  }
  const bool is_news = order.failure && (!told_failure_ || told_failure_->index != order.failure->index ||
                                         told_failure_->clock != order.failure->clock ||
                                         told_failure_->hopeless != order.failure->hopeless);
  if (!is_news) return;
  told_failure_ = order.failure;
  Event& fail = events_.add(Event::Type::fail);
  fail.failure = order.failure;
}

void Member::take(const StreamOver& over) {
  const bool is_of_run = over.revision == brief_.revision && over.brief == brief_.hash;
  if (!is_of_run || (step_ != Step::runs && step_ != Step::done)) return; // it is said again at the start
  const auto known = told_streams_.find(over.failure.clock);
  const bool is_news = known == told_streams_.end() ? told_streams_.size() < kStreamFailuresMax
                                                    : supersedes(over.failure, known->second);
  if (!is_news) return;
  told_streams_[over.failure.clock] = over.failure;
  events_.add(Event::Type::fail_stream).failure = over.failure;
}

void Member::begin_to_prepare() {
  if (step_ == Step::runs || step_ == Step::done) return; // a process runs once
  if (step_ != Step::offers) events_.add(Event::Type::drop);
  brief_ = std::exchange(next_, {});
  step_ = Step::prepares;
  state_ = {};
  own_streams_.clear();
  state_.revision = brief_.revision;
  state_.brief = brief_.hash;
  Event& prepare = events_.add(Event::Type::prepare);
  prepare.brief = brief_;
}

void Member::end(std::optional<Error> error) {
  if (is_over_) return;
  if (step_ == Step::runs) {
    const Error cause = error ? *error : Error{code::node_away, coordinator_ + " ended the run", {}, {}, {}, {}};
    Event& fail = events_.add(Event::Type::fail);
    fail.failure = RunFailure{cause, coordinator_, "", kNoTick, true};
  }
  is_over_ = true;
  Event& over = events_.add(Event::Type::over);
  over.error = std::move(error);
}

// ---- its own part and run ------------------------------------------------------------------------------------------

void Member::prepared(uint32_t revision, std::string part) {
  if (step_ != Step::prepares || revision != brief_.revision) return;
  step_ = Step::ready;
  state_.step = State::Step::ready;
  state_.body = std::move(part);
  send_streams();
  send_state();
}

void Member::unable(uint32_t revision, const Error& error) {
  if (step_ != Step::prepares || revision != brief_.revision) return;
  step_ = Step::unable;
  state_.step = State::Step::unable;
  state_.error = error;
  send_state();
}

void Member::failed(const RunFailure& failure) {
  if (step_ != Step::prepares && step_ != Step::ready && step_ != Step::runs) return;
  state_.failure = failure;
  state_.failure->node = offer_.node;
  if (step_ != Step::prepares) send_state();
}

void Member::stream_failed(const RunFailure& failure) {
  if (step_ != Step::prepares && step_ != Step::ready && step_ != Step::runs) return;
  // Threads that fail tell it in any order, and what counts is said again whenever the link is back.
  const auto known = own_streams_.find(failure.clock);
  if (known != own_streams_.end() && !supersedes(failure, known->second)) return;
  RunFailure& own = own_streams_[failure.clock] = failure;
  own.node = offer_.node;
  if (step_ != Step::prepares) say(StreamOver{brief_.revision, brief_.hash, own});
}

void Member::finished(std::string report, std::string trace, std::optional<Error> error) {
  if (step_ != Step::runs) return;
  step_ = Step::done;
  state_.step = State::Step::done;
  state_.body = std::move(report);
  state_.trace = std::move(trace);
  state_.error = std::move(error);
  state_.waits.clear();
  send_streams(); // one may have been lost with a link that is about to be found cut
  send_state();
}

void Member::waits(std::vector<std::string> lines) {
  if (step_ != Step::runs) return;
  state_.waits = std::move(lines);
  send_state();
}

void Member::clocks_over() {
  if (step_ != Step::runs || std::exchange(state_.clocks_over, true)) return;
  send_state();
}

// One that is lost here is asked for again once the link is back.
void Member::answered(uint64_t question, std::string body) { say(Answer{question, std::move(body)}); }

// ---- time and words ------------------------------------------------------------------------------------------------

int64_t Member::next_timer() const {
  return is_over_ || away_since_ns_ == INT64_MAX ? INT64_MAX : away_since_ns_ + patience_ns_;
}

void Member::on_time(int64_t now_ns) {
  if (now_ns < next_timer()) return;
  std::vector<std::string> notes = {coordinator_ + " coordinates this run"};
  if (!why_away_.empty()) notes.push_back(why_away_);
  end(Error{code::node_away,
            coordinator_ + " has been away for " + std::to_string(patience_ns_ / 1'000'000'000) + " s",
            {},
            std::move(notes),
            {},
            {}});
}

void Member::say(const Statement& statement) {
  if (!is_linked_ || is_over_) return; // back() says it
  Event& event = events_.add(Event::Type::say);
  event.text = to_text(statement);
}

void Member::send_state() { say(state_); }

void Member::send_streams() {
  for (const auto& [clock, failure] : own_streams_) say(StreamOver{brief_.revision, brief_.hash, failure});
}

} // namespace millrace::fleet
