// Makes this node's part of the run, and drives it from the common start to the common end; see node.h.
#include "node/node.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "node/meeting.h"

namespace millrace::node {

namespace {

constexpr std::chrono::milliseconds kLookEvery{50}, kLookAtRunEvery{10}, kLookAtPassedEvery{5};
constexpr std::chrono::milliseconds kTellFailureWithin{100};
constexpr size_t kReportBytesMax = 3 << 20; // a statement has at most 4 MiB

} // namespace

class Node::Work {
 public:
  Work(const graph::Graph& graph, const NodeOptions& options, const NodeHooks& hooks);
  ~Work() { run_.reset(); }

  NodeResult run();
  void stop() { meeting_->stop(); }

 private:
  enum class Stage { waits, ready, runs, finished };

  void carry_out(Task& task);
  void compile();
  void prepare(const fleet::Brief& brief);
  void make_part(const fleet::Brief& brief);
  void drop_part();
  void fail(const fleet::RunFailure& failure);
  void leave();
  void finish_if_over();
  exec::RunOptions run_options(const Decided& decided);
  embed::Preparation& preparation();

  const NodeHooks hooks_;
  const std::vector<std::string> names_;
  const std::string name_;
  const uint32_t number_;
  Decided decided_;
  device::MonotonicTime machine_time_;
  RunTime time_{machine_time_};

  Stage stage_ = Stage::waits;
  std::optional<embed::Preparation> preparation_; // none: the composition has it
  std::unique_ptr<ToldHandlers> told_;            // the preparation's facts refer to it
  std::unique_ptr<embed::Composition> composition_;
  std::shared_ptr<exec::Run> run_; // refers to the composition
  bool is_over_ = false, gives_up_ = false;
  NodeResult result_;
  std::optional<Error> error_;

  std::unique_ptr<Meeting> meeting_; // its thread uses the run
};

Node::Node(const graph::Graph& graph, const NodeOptions& options, const NodeHooks& hooks)
    : work_(std::make_unique<Work>(graph, options, hooks)) {}
Node::~Node() = default;
NodeResult Node::run() { return work_->run(); }
void Node::stop() { work_->stop(); }

namespace {

// Empty if nobody dials this node.
std::vector<net::Endpoint> listening_at(const graph::Graph& graph, const NodeOptions& options,
                                        const std::vector<PeerPlan>& peers) {
  const bool is_dialled = std::any_of(peers.begin(), peers.end(), [](const PeerPlan& peer) { return !peer.dials(); });
  if (!is_dialled || !options.listen.empty()) return options.listen;
  uint16_t port = net::kDefaultPort;
  for (const graph::Node& node : graph.nodes)
    if (node.name == options.name && !node.address.empty()) port = net::parse_endpoint(node.address).port;
  return {{"::", port, ""}};
}

} // namespace

Node::Work::Work(const graph::Graph& graph, const NodeOptions& options, const NodeHooks& hooks)
    : hooks_(hooks),
      names_(graph::node_names(graph)),
      name_(options.name),
      number_(static_cast<uint32_t>(std::find(names_.begin(), names_.end(), name_) - names_.begin())),
      decided_(options.decided) {
  MR_ASSERT(number_ < names_.size(), "the node is one of the pipeline's");
  MeetingOptions meeting;
  meeting.nodes = names_;
  meeting.number = number_;
  meeting.peers = peers_of(graph, name_, options.folder, options.coordinator);
  meeting.listen = listening_at(graph, options, meeting.peers);
  meeting.folder = options.folder;
  meeting.patience_ns = options.patience_ns;
  meeting.pipeline = sha256(graph::to_yaml(graph));
  meeting.program = options.program;
  meeting.offer = write_offer(preparation(), name_); // a mistake of a handler comes before anybody waits
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
  if (meeting_->coordinates()) result_.reports = meeting_->reports();
  if (error_) {
    if (!result_.has_run) throw Failure(*error_);
    result_.result.ok = false;
    result_.result.error = *error_;
  }
  return std::move(result_);
}

void Node::Work::carry_out(Task& task) {
  switch (task.type) {
    case Task::Type::compile: return compile();
    case Task::Type::prepare: return prepare(task.brief);
    case Task::Type::drop: return drop_part();
    case Task::Type::start:
      stage_ = Stage::runs;
      result_.has_run = true;
      return;
    case Task::Type::stop:
      if (run_) run_->stop();
      return;
    case Task::Type::leave: return leave();
    case Task::Type::fail: return fail(*task.failure);
    case Task::Type::over:
      is_over_ = true;
      if (task.error && !error_) error_ = std::move(task.error);
      return;
  }
}

void Node::Work::compile() {
  try {
    decided_.round_trip_ns = meeting_->round_trip_ns();
    if (told_) preparation_.reset(); // a node has gone since: its facts refer to handlers that were told before
    told_ = std::make_unique<ToldHandlers>();
    take_offers(meeting_->offers(), preparation(), *told_);
    plan::Options options = preparation().options_of_node(number_);
    options.round_trip_ns = decided_.round_trip_ns;
    const plan::Plan plan = preparation().compile(options);
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
    meeting_->compiled(std::move(parts));
  } catch (const Failure& failure) {
    meeting_->refuse(failure.error());
  }
}

exec::RunOptions Node::Work::run_options(const Decided& decided) {
  exec::RunOptions options = hooks_.run_options();
  options.ticks_max = decided.ticks_max;
  options.duration_ns = static_cast<int64_t>(decided.duration_s * 1e9);
  options.time = &time_;
  options.begin_ns = 0;
  options.on_crossing = [this] { meeting_->ring(); };
  options.on_failure = [this](const exec::FailureRecord& record) {
    fleet::RunFailure failure{record.error, name_, "", fleet::kNoTick, false};
    failure.error.notes.push_back("on node " + name_);
    if (record.index != UINT64_MAX) {
      failure.clock = composition_->plan().clocks[record.clock].name;
      failure.index = record.index;
    }
    meeting_->failed(failure);
  };
  if (const auto on_hang = options.on_hang)
    options.on_hang = [on_hang](const Error& error) {
      std::this_thread::sleep_for(kTellFailureWithin); // on_failure has told it: the others learn why this node ends
      on_hang(error);
    };
  return options;
}

void Node::Work::prepare(const fleet::Brief& brief) {
  try {
    make_part(brief);
    meeting_->prepared(brief.epoch);
  } catch (const Failure& failure) {
    composition_.reset();
    meeting_->unable(brief.epoch, failure.error());
  }
}

void Node::Work::make_part(const fleet::Brief& brief) {
  Decided decided = decided_;
  if (!meeting_->coordinates()) {
    told_ = std::make_unique<ToldHandlers>();
    decided = read_brief(brief.body, name_, preparation(), *told_);
  }
  plan::Options options = preparation().options_of_node(number_);
  options.clock = decided.clock;
  options.rate = decided.rate;
  options.round_trip_ns = decided.round_trip_ns;
  composition_ = std::make_unique<embed::Composition>(std::move(*preparation_), options);
  preparation_.reset();
  if (hooks_.composed) hooks_.composed(*composition_);
  std::shared_ptr<exec::Run> run = composition_->make_run(run_options(decided));
  run->start();
  run_ = std::move(run);
  stage_ = Stage::ready;
  if (hooks_.running) hooks_.running(run_);
  meeting_->attach(*run_, composition_->plan(), brief);
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
             has_tick ? failure.index : UINT64_MAX);
  if (failure.hopeless) run_->interrupt();
}

// This node alone ends.
void Node::Work::leave() {
  is_over_ = gives_up_ = true;
  if (run_) run_->interrupt();
}

void Node::Work::finish_if_over() {
  // A run that was interrupted finishes nothing: wait() ends it.
  const bool is_whole = run_->finished() && (error_ || is_over_ || meeting_->has_delivered());
  if (!is_whole && !gives_up_) return;
  stage_ = Stage::finished;
  meeting_->detach();
  result_.result = run_->wait();
  if (!result_.result.ok && !error_) error_ = result_.result.error;
  std::string report = to_json(result_.result);
  if (report.size() > kReportBytesMax) report = "{}";
  meeting_->finished(report);
}

} // namespace millrace::node
