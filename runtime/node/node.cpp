// Makes this node's part of the run, and drives it from the common start to the common end; see node.h.
#include "node/node.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <thread>

#include "exec/run.h"
#include "exec/run_options.h"
#include "node/changes_under_way.h"
#include "node/kept_brief.h"
#include "node/link_prices.h"
#include "node/meeting.h"
#include "node/offers.h"
#include "node/trace.h"
#include "observe/error_codes.h"
#include "plan/pace.h"
#include "plan/plan.h"

namespace millrace::node {

namespace {

constexpr std::chrono::milliseconds kLookEvery{50}, kLookAtRunEvery{10}, kLookAtPassedEvery{5};
constexpr std::chrono::milliseconds kTellFailureWithin{100};
constexpr size_t kReportBytesMax = 3 << 20; // a statement has at most 4 MiB

} // namespace

class Node::Work {
 public:
  Work(const graph::Graph& graph, const NodeOptions& options, const NodeHooks& hooks);
  ~Work() { meeting_->detach(); } // sessions may refer to the run

  NodeResult run();
  void stop() {
    leaves_.store(!meeting_->coordinates());
    meeting_->stop();
  }
  void leave_at_once() { meeting_->leave_at_once(); }
  void set(const std::shared_ptr<exec::Run>& run, const std::vector<exec::ParamChange>& changes,
           const ChangesAnswered& answered);
  std::vector<LinkReport> links() const { return meeting_->links(); }
  FleetLook look_around() const { return meeting_->look_around(); }

 private:
  enum class Stage { waits, ready, runs, finished };

  void carry_out(Task& task);
  void compile(uint64_t number);
  void answer(const Task& task);
  void carry_out(const fleet::Request& request);
  void prepare(const fleet::Brief& brief);
  template <class Refuse>
  void attempt_part(const std::function<void()>& work, Refuse refuse);
  void make_part(const fleet::Brief& brief);
  void keep(const fleet::Brief& brief) const;
  void drop_part();
  void fail(const fleet::RunFailure& failure);
  void fail_stream(const fleet::RunFailure& failure);
  void record_lost_sets();
  void leave();
  void finish_if_over();
  exec::RunOptions run_options(const Decided& decided, uint32_t revision);
  embed::Preparation& preparation();

  const NodeHooks hooks_;
  const std::vector<std::string> names_;
  const std::string name_;
  const uint32_t number_;
  const int64_t patience_ns_;
  const std::filesystem::path folder_;
  std::string pipeline_; // hash
  Decided decided_;
  device::MonotonicTime machine_time_;
  RunTime time_{machine_time_};
  LinkPrices link_prices_{machine_time_}; // on the coordinator

  Stage stage_ = Stage::waits;
  std::optional<embed::Preparation> preparation_; // none: the composition has it
  RecordTypes records_;                           // questions have them, and handlers refer to them
  std::unique_ptr<ToldHandlers> told_;            // the preparation's facts refer to it
  std::shared_ptr<embed::Composition> composition_;
  std::shared_ptr<exec::Run> run_; // holds the composition, since others may hold the run
  bool is_over_ = false, gives_up_ = false;
  bool told_clocks_over_ = false;
  bool sends_trace_ = false;        // the coordinator wants this node's
  std::atomic<bool> leaves_{false}; // this node alone ends
  int64_t finished_ns_ = 0;         // when the run was found finished; 0: not yet
  NodeResult result_;
  std::optional<Error> error_;
  std::map<uint32_t, Error> failed_streams_; // on any node, by clock; not those that may have begun anew since

  std::unique_ptr<Meeting> meeting_; // its thread uses the run
};

Node::Node(const graph::Graph& graph, const NodeOptions& options, const NodeHooks& hooks)
    : work_(std::make_unique<Work>(graph, options, hooks)) {}
Node::~Node() = default;
NodeResult Node::run() { return work_->run(); }
void Node::set(const std::shared_ptr<exec::Run>& run, const std::vector<exec::ParamChange>& changes,
               const ChangesAnswered& answered) {
  work_->set(run, changes, answered);
}
void Node::stop() { work_->stop(); }
void Node::leave_at_once() { work_->leave_at_once(); }
std::vector<LinkReport> Node::links() const { return work_->links(); }
FleetLook Node::look_around() const { return work_->look_around(); }

namespace {

// The share of the looks at which ticks of a crossing were held up, by what they waited for.
void add_waits(const std::vector<CrossingLook>& seen, Report& report) {
  for (CrossingReport& crossing : report.crossings)
    for (const CrossingLook& look : seen) {
      if (look.name != crossing.name || !crossing.departs || !look.departs || look.looks == 0) continue;
      const auto share = [&](uint64_t waits) { return static_cast<double>(waits) / static_cast<double>(look.looks); };
      crossing.waited = {{"reader", share(look.waits_for_reader)},
                         {"wire", share(look.waits_for_wire)},
                         {"node", share(look.waits_for_node)}};
    }
}

// Empty if nobody dials this node.
std::vector<net::Endpoint> listening_at(const graph::Graph& graph, const NodeOptions& options,
                                        const std::vector<PeerPlan>& peers) {
  const bool is_dialled =
      std::any_of(peers.begin(), peers.end(), [](const PeerPlan& peer) { return !peer.missing && !peer.dials(); });
  if (!is_dialled || !options.listen.empty()) return options.listen;
  uint16_t port = net::kDefaultPort;
  for (const graph::Node& node : graph.nodes)
    if (node.name == options.name && !node.address.empty()) port = net::parse_endpoint(node.address).port;
  std::vector<net::Endpoint> all = {{"0.0.0.0", port, ""}};
  if (std::filesystem::exists("/proc/net/if_inet6")) all.push_back({"::", port, ""});
  return all;
}

} // namespace

Node::Work::Work(const graph::Graph& graph, const NodeOptions& options, const NodeHooks& hooks)
    : hooks_(hooks),
      names_(graph::node_names(graph)),
      name_(options.name),
      number_(static_cast<uint32_t>(std::find(names_.begin(), names_.end(), name_) - names_.begin())),
      patience_ns_(options.patience_ns),
      folder_(options.folder),
      decided_(options.decided) {
  MR_ASSERT(number_ < names_.size(), "the node is one of the pipeline's");
  MeetingOptions meeting;
  meeting.nodes = names_;
  meeting.number = number_;
  meeting.peers = peers_of(graph, name_, options.folder, options.coordinator);
  meeting.listen = listening_at(graph, options, meeting.peers);
  meeting.folder = options.folder;
  meeting.patience_ns = options.patience_ns;
  meeting.canonical = graph::to_yaml(graph);
  meeting.pipeline = pipeline_ = sha256(meeting.canonical);
  meeting.program = options.program;
  meeting.offer = write_offer(preparation(), name_); // a mistake of a handler comes before anybody waits
  meeting.wait_ns = options.wait_ns;
  meeting.warn = hooks_.warn ? hooks_.warn : [](const std::string&) {};
  meeting.tell = hooks_.tell ? hooks_.tell : [](const std::string&) {};
  meeting_ = std::make_unique<Meeting>(std::move(meeting), machine_time_, time_);
}

embed::Preparation& Node::Work::preparation() {
  if (!preparation_) preparation_.emplace(hooks_.prepare());
  return *preparation_;
}

NodeResult Node::Work::run() {
  auto next_look = std::chrono::steady_clock::now();
  while (!is_over_ || stage_ == Stage::runs) {
    const bool runs = stage_ == Stage::runs;
    const bool tells_passed = runs && composition_->plan().clocks.size() > 1; // a clock tells what it has passed (8.1)
    const auto within = tells_passed ? kLookAtPassedEvery : runs ? kLookAtRunEvery : kLookEvery;
    if (std::optional<Task> task = meeting_->take(within)) carry_out(*task);
    if (tells_passed) meeting_->ring();
    if (stage_ == Stage::runs) finish_if_over();
    if (std::chrono::steady_clock::now() < next_look) continue;
    next_look = std::chrono::steady_clock::now() + kLookEvery;
    meeting_->look_at_time();
  }
  if (stage_ == Stage::ready) drop_part();
  meeting_->part();
  if (meeting_->coordinates()) {
    result_.reports = meeting_->reports();
    result_.traces = meeting_->traces();
  }
  if (!error_ && !result_.has_run && !leaves_.load() && !meeting_->coordinates())
    error_ = Error{code::node_away, names_[0] + " ended the run before it had begun", {}, {}, "", ""};
  if (error_) {
    if (!result_.has_run) throw Failure(*error_);
    result_.result.ok = false;
    result_.result.error = *error_;
  }
  return std::move(result_);
}

void Node::Work::carry_out(Task& task) {
  switch (task.type) {
    case Task::Type::compile: return compile(task.number);
    case Task::Type::prepare: return prepare(task.brief);
    case Task::Type::answer: return answer(task);
    case Task::Type::request: return carry_out(task.request);
    case Task::Type::drop:
      if (composition_) drop_part(); // else the coordinator has compiled anew meanwhile
      return;
    case Task::Type::start:
      run_->time_goes_on();
      stage_ = Stage::runs;
      result_.has_run = true;
      return;
    case Task::Type::stop:
      if (run_) run_->stop();
      return;
    case Task::Type::clocks_over:
      if (run_) run_->clocks_are_over();
      return;
    case Task::Type::leave: return leave();
    case Task::Type::fail: return fail(*task.failure);
    case Task::Type::fail_stream: return fail_stream(*task.failure);
    case Task::Type::over:
      is_over_ = true;
      if (task.error && !error_) error_ = std::move(task.error);
      return record_lost_sets();
  }
}

// The exceptions of a library end a preparation as a Failure does: the other nodes have to hear of it.
template <class Refuse>
void Node::Work::attempt_part(const std::function<void()>& work, Refuse refuse) {
  Error error;
  try {
    return work();
  } catch (const Failure& failure) {
    error = failure.error();
  } catch (const std::exception& other) {
    error = {code::unable_node, std::string("this node cannot do its part: ") + other.what(), {}, {}, "", ""};
  }
  refuse(error);
}

void Node::Work::compile(uint64_t number) {
  const auto compile_parts = [&] {
    if (told_) drop_part(); // the handlers of another plan let go of what they hold
    decided_.round_trip_ns = meeting_->round_trip_ns();
    told_ = std::make_unique<ToldHandlers>();
    const auto ask = [this](const std::string& node, const std::string& question) {
      return meeting_->ask(node, question);
    };
    Offers offers(meeting_->offers(), ask, preparation(), *told_);
    decided_.placed = {}; // by an earlier plan
    const std::vector<plan::Hop> links =
        offers.leave_choice() ? link_prices_.all(names_, ask) : std::vector<plan::Hop>{};
    decided_.placed = offers.place(links, options_by(decided_, preparation(), name_));
    decided_.machines = offers.machines();
    const plan::Plan plan = preparation().compile(options_by(decided_, preparation(), name_));
    fleet::Brief brief;
    brief.body = write_brief(preparation(), decided_);
    brief.hash = sha256(brief.body);
    std::vector<fleet::Part> parts(names_.size());
    for (fleet::Part& part : parts) part.brief = brief;
    for (const plan::Pace& pace : plan.paces) {
      fleet::Part& part = parts[pace.node];
      part.stage = std::max(part.stage, pace.stage);
      const bool is_home = pace.kind == plan::PaceKind::clock;
      part.needed = part.needed || is_home || !plan.clocks[pace.clock].realtime();
    }
    meeting_->compiled(std::move(parts), number);
  };
  attempt_part(compile_parts, [&](const Error& error) { meeting_->refuse(error, number); });
}

exec::RunOptions Node::Work::run_options(const Decided& decided, uint32_t revision) {
  exec::RunOptions options = hooks_.run_options();
  options.ticks_max = decided.ticks_max;
  options.duration_ns = static_cast<int64_t>(decided.duration_s * 1e9);
  options.trace_all = options.trace_all || decided.trace;
  options.revision = revision;
  options.time = &time_;
  options.begin_ns = 0;
  options.on_crossing = [this] { meeting_->ring(); };
  options.on_waiting = [this](const std::vector<std::string>& lines) { meeting_->waits(lines); };
  options.waiting_elsewhere = [this] { return meeting_->waiting_elsewhere(); };
  options.on_failure = [this](const exec::FailureRecord& record) {
    if (record.of_stream && composition_->plan().clocks[record.clock].has_room)
      return; // no other node has to do with it
    fleet::RunFailure failure{record.error, name_, "", fleet::kNoTick, false};
    failure.error.notes.push_back("on node " + name_);
    if (record.index != exec::kWholeRun) {
      failure.clock = composition_->plan().clocks[record.clock].name;
      failure.index = record.index;
      failure.epoch = record.epoch;
    }
    record.of_stream ? meeting_->stream_failed(failure) : meeting_->failed(failure);
  };
  if (const auto on_hang = options.on_hang)
    options.on_hang = [on_hang](const Error& error) {
      std::this_thread::sleep_for(kTellFailureWithin); // on_failure has told it: the others learn why this node ends
      on_hang(error);
    };
  return options;
}

// Each question has an answer, because another node waits for it.
void Node::Work::answer(const Task& task) {
  if (composition_) drop_part(); // it was made for an earlier plan
  try {
    meeting_->answered(task.number, answer_question(task.text, preparation(), records_));
  } catch (const Failure& failure) {
    meeting_->answered(task.number, write_refusal(failure.error()));
  }
}

// ---- live changes --------------------------------------------------------------------------------------------------

namespace {

// The nodes with a handler of the changes and without the begin of its clock's ticks, then the homes of the clocks.
std::vector<ChangesUnderWay::Question> questions_of(const exec::Run& run, const std::vector<std::string>& nodes,
                                                    const std::vector<exec::ParamChange>& changes) {
  std::vector<ChangesUnderWay::Question> checks, homes;
  for (const exec::HomeChanges& home : run.by_home(changes))
    homes.push_back({nodes[home.node], {home.changes, true}, home.clocks});
  for (const exec::ParamChange& change : changes)
    for (const std::string& node : run.nodes_of({change})) {
      if (homes.size() == 1 && homes[0].node == node) continue; // it checks all of them before it makes them
      auto at = std::find_if(checks.begin(), checks.end(), [&](const auto& check) { return check.node == node; });
      if (at == checks.end()) at = checks.insert(at, {node, {{}, false}, {}});
      at->request.changes.push_back(change);
    }
  std::move(homes.begin(), homes.end(), std::back_inserter(checks));
  return checks;
}

[[noreturn]] void throw_not_running(const std::string& node) {
  throw Failure(code::parameter_not_live, "the run on " + node + " has not begun, or is over");
}

// Throws Failure for changes that cannot be made.
void make_changes(exec::Run& run, Meeting& meeting, const std::vector<exec::ParamChange>& changes,
                  const Node::ChangesAnswered& answered) {
  run.set(changes, [meeting = &meeting, nodes = run.nodes_of(changes), answered](const auto& ticks) {
    answered({ticks, meeting->away_of(nodes), std::nullopt});
  });
}

} // namespace

void Node::Work::set(const std::shared_ptr<exec::Run>& run, const std::vector<exec::ParamChange>& changes,
                     const ChangesAnswered& answered) {
  std::vector<ChangesUnderWay::Question> questions = questions_of(*run, names_, changes);
  if (questions.size() == 1 && questions[0].node == name_) return make_changes(*run, *meeting_, changes, answered);
  const auto ask = [this, of = std::weak_ptr(run)](const auto& question, const ChangesUnderWay::Done& done) {
    if (question.node == name_) {
      try {
        const std::shared_ptr<exec::Run> run_now = of.lock(); // the answer of another node may come late
        if (!run_now) throw_not_running(name_);
        return make_changes(*run_now, *meeting_, question.request.changes, done);
      } catch (const Failure& failure) {
        return done(ChangesAnswer{{}, {}, failure.error()});
      }
    }
    meeting_->request(question.node, write_changes(question.request), [node = question.node, done](const auto& reply) {
      if (reply.empty()) return done(std::nullopt);
      try {
        done(read_answer(reply, "the answer of " + node));
      } catch (const Failure& failure) {
        done(ChangesAnswer{{}, {}, failure.error()});
      }
    });
  };
  std::make_shared<ChangesUnderWay>(names_[0], std::move(questions), ask, answered)->ask_next();
}

// Another node asks for changes of clocks whose home is this one, or for changes of handlers here.
void Node::Work::carry_out(const fleet::Request& request) {
  const auto reply = [meeting = meeting_.get(), request](const ChangesAnswer& answer) {
    meeting->reply({request.from, request.process, request.number, write_answer(answer)});
  };
  try {
    const ChangesRequest asked = read_changes(request.body, "the request of " + request.from);
    const bool runs = run_ && stage_ == Stage::runs;
    if (!asked.make) {
      if (runs) (void)run_->by_home(asked.changes); // checks them; without a run their home has the last word
      return reply({});
    }
    if (!runs) throw_not_running(name_);
    make_changes(*run_, *meeting_, asked.changes, reply);
  } catch (const Failure& failure) {
    reply({{}, {}, failure.error()});
  }
}

// ---- its part ------------------------------------------------------------------------------------------------------

void Node::Work::prepare(const fleet::Brief& brief) {
  const auto make = [&] {
    make_part(brief);
    meeting_->prepared(brief.revision);
  };
  attempt_part(make, [&](const Error& error) {
    drop_part();
    if (!leaves_.load()) meeting_->unable(brief.revision, error);
  });
}

void Node::Work::make_part(const fleet::Brief& brief) {
  if (brief.hash != sha256(brief.body)) throw Failure(code::other_version, "the brief is not what its hash says");
  Decided decided = decided_;
  if (!meeting_->coordinates()) {
    told_ = std::make_unique<ToldHandlers>();
    decided = read_brief(brief.body, name_, preparation(), *told_);
  }
  sends_trace_ = decided.trace && !meeting_->coordinates();
  const plan::Options options = options_by(decided, preparation(), name_);
  composition_ = std::make_shared<embed::Composition>(std::move(*preparation_), options);
  preparation_.reset();
  if (hooks_.composed) hooks_.composed(*composition_);
  keep(brief);
  exec::Run* const run = composition_->make_run(run_options(decided, brief.revision)).release();
  run_ = std::shared_ptr<exec::Run>(run, [composition = composition_](exec::Run* over) { delete over; });
  run_->start();
  stage_ = Stage::ready;
  if (hooks_.running) hooks_.running(run_);
  meeting_->attach(*run_, composition_->plan(), brief);
}

// It is for `millrace plan` alone: a run does not end for a full disk.
void Node::Work::keep(const fleet::Brief& brief) const {
  try {
    keep_brief(folder_, pipeline_, brief.body);
  } catch (const Failure& failure) {
    if (hooks_.tell) hooks_.tell("the plan is not kept: " + failure.error().what);
  }
}

// The part is not wanted: its handlers are stopped, and a later one begins with new ones.
void Node::Work::drop_part() {
  meeting_->detach();
  stage_ = Stage::waits;
  if (run_ && hooks_.running) hooks_.running(nullptr);
  run_.reset();
  composition_.reset();
  told_.reset();
  preparation_.reset();
}

void Node::Work::fail(const fleet::RunFailure& failure) {
  gives_up_ = gives_up_ || failure.hopeless;
  if (!error_) error_ = failure.error;
  if (!run_) return;
  const std::vector<plan::Clock>& clocks = composition_->plan().clocks;
  const auto clock =
      std::find_if(clocks.begin(), clocks.end(), [&](const plan::Clock& one) { return one.name == failure.clock; });
  const bool has_tick = failure.index != fleet::kNoTick && clock != clocks.end();
  run_->fail(failure.error, has_tick ? static_cast<uint32_t>(clock - clocks.begin()) : 0,
             has_tick ? failure.index : exec::kWholeRun);
  if (failure.hopeless) run_->interrupt();
}

// The run may be over here, and its report written: that of the node on which it failed has the failure too.
void Node::Work::fail_stream(const fleet::RunFailure& failure) {
  if (!run_) return;
  const std::vector<plan::Clock>& clocks = composition_->plan().clocks;
  const auto at = std::find_if(clocks.begin(), clocks.end(),
                               [&](const plan::Clock& one) { return one.name == failure.clock && one.fails_alone; });
  if (at == clocks.end()) return;
  const auto clock = static_cast<uint32_t>(at - clocks.begin());
  if (!at->restarts) failed_streams_[clock] = failure.error;
  run_->fail_stream({failure.error, clock, failure.index, true, failure.node, failure.epoch});
}

// All streams of a set have failed: the run has too. This node's own run may have ended before it heard of the last.
void Node::Work::record_lost_sets() {
  if (error_ || !composition_) return;
  std::map<std::string, const Error*> errors; // by set: the first stream's; null: one has none
  const std::vector<plan::Clock>& clocks = composition_->plan().clocks;
  for (uint32_t clock = 0; clock < clocks.size(); ++clock) {
    if (clocks[clock].set.empty() || clocks[clock].is_group) continue;
    const auto failed = failed_streams_.find(clock);
    const Error* const error = failed == failed_streams_.end() ? nullptr : &failed->second;
    const Error*& first = errors.try_emplace(clocks[clock].set, error).first->second;
    if (!error) first = nullptr;
  }
  for (const auto& [set, error] : errors) {
    if (!error || error_) continue;
    error_ = *error;
    error_->notes.push_back("every stream of its set has failed");
  }
}

// This node alone ends.
void Node::Work::leave() {
  is_over_ = gives_up_ = true;
  if (run_) run_->interrupt();
}

void Node::Work::finish_if_over() {
  const int64_t now = machine_time_.now_ns();
  if (!told_clocks_over_ && run_->have_clocks_ended()) {
    told_clocks_over_ = true;
    meeting_->clocks_over();
  }
  if (run_->finished() && finished_ns_ == 0) finished_ns_ = now;
  const int64_t waited_ns = finished_ns_ == 0 ? 0 : now - finished_ns_;
  // After a failure nobody waits for long. A run that was interrupted finishes nothing: wait() ends it.
  const bool is_late = error_ && waited_ns >= patience_ns_;
  const bool is_whole = finished_ns_ != 0 && (is_over_ || is_late || meeting_->has_delivered(waited_ns));
  if (!is_whole && !gives_up_) return;
  stage_ = Stage::finished;
  const FleetLook seen = meeting_->look_around();
  meeting_->detach();
  result_.result = run_->wait();
  result_.result.report.links = meeting_->links();
  add_waits(seen.crossings, result_.result.report);
  std::optional<Error> own_error; // the others have not heard of it
  if (!result_.result.ok && !error_) {
    own_error = error_ = result_.result.error;
    own_error->notes.push_back("on node " + name_);
  }
  std::string report = to_json(result_.result);
  if (report.size() > kReportBytesMax) report = "{}";
  if (leaves_.load()) return; // the others hear that it has left
  const size_t bytes_most = kReportBytesMax - report.size();
  meeting_->finished(report, sends_trace_ ? write_node_trace(run_->trace(), bytes_most) : "", own_error);
}

} // namespace millrace::node
