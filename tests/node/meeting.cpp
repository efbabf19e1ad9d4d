// A node meets one of another version of the link, which no two programs of this tree have: a bare link plays it.
#include "node/meeting.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "tests/folder.h"

namespace millrace::node {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};

// The two nodes' folders, of the test's own.
class Folders {
 public:
  fs::path of(const std::string& node) const { return folder_.path / node; }
  net::Identity identity(const std::string& node) const { return net::Identity::open(of(node)); }

 private:
  const millrace::test::Folder folder_;
};

// A time that a test may let go on at once.
class ShiftedTime final : public device::Timeline {
 public:
  int64_t now_ns() const override { return time_.now_ns() + shift_ns_.load(); }
  void shift(std::chrono::nanoseconds by) { shift_ns_ += by.count(); }

 private:
  device::MonotonicTime time_;
  std::atomic<int64_t> shift_ns_{0};
};

// The lines that a node tells.
class Told {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  // The lines that begin so.
  std::vector<std::string> of(const std::string& begin) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const std::string& line : lines_)
      if (line.starts_with(begin)) found.push_back(line);
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

// One node of the pipeline with edge and gpu, of which edge coordinates and is dialled.
class Node {
 public:
  Node(const Folders& folders, const std::string& name, const std::optional<net::Endpoint>& edge = std::nullopt,
       int64_t wait_ns = INT64_MAX)
      : meeting_(options(folders, name, edge, wait_ns), machine_time_, run_time_) {}

  // Its next task; none if nothing came.
  std::optional<Task> task() {
    for (const auto end = Clock::now() + kPatience; Clock::now() < end; meeting_.look_at_time())
      if (std::optional<Task> task = meeting_.take(std::chrono::milliseconds(20))) return task;
    return std::nullopt;
  }
  // Lets time pass until it has told such a line; that line.
  std::string line(const std::string& begin) {
    for (const auto end = Clock::now() + kPatience; Clock::now() < end; meeting_.look_at_time()) {
      if (const std::vector<std::string> lines = told.of(begin); !lines.empty()) return lines[0];
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "";
  }
  net::Endpoint endpoint() const {
    const std::string listens = "listening at ";
    return net::parse_endpoint(told.of(listens).at(0).substr(listens.size()));
  }

  Told told, warned;
  // Lets so much time pass at once, and looks at it.
  void pass(std::chrono::nanoseconds time) {
    machine_time_.shift(time);
    meeting_.look_at_time();
    (void)meeting_.links(); // which waits for the link's thread
    (void)meeting_.round_trip_ns();
  }

 private:
  MeetingOptions options(const Folders& folders, const std::string& name, const std::optional<net::Endpoint>& edge,
                         int64_t wait_ns) {
    MeetingOptions made;
    made.nodes = {"edge", "gpu"};
    made.number = name == "edge" ? 0 : 1;
    PeerPlan peer;
    peer.name = name == "edge" ? "gpu" : "edge";
    peer.id = folders.identity(peer.name).id();
    if (edge) peer.endpoints = {*edge};
    made.peers = {peer};
    if (name == "edge") made.listen = {net::parse_endpoint("127.0.0.1:0")};
    made.folder = folders.of(name);
    made.patience_ns = 30'000'000'000;
    made.pipeline = "hash";
    made.canonical = "version: 1\n";
    made.program = "1.5";
    made.offer = "{}";
    made.wait_ns = wait_ns;
    made.tell = [this](const std::string& line) { told.add(line); };
    made.warn = [this](const std::string& line) { warned.add(line); };
    return made;
  }

  ShiftedTime machine_time_;
  RunTime run_time_{machine_time_};
  Meeting meeting_;
};

// A node whose program speaks mrl/7 alone. It dials `edge`, or is edge and listens.
class LaterNode {
 public:
  LaterNode(const Folders& folders, const std::string& name, const std::optional<net::Endpoint>& edge = std::nullopt)
      : identity_(folders.identity(name)), tls_(identity_) {
    net::LinkOptions link;
    link.session.self.node = identity_.id().bytes;
    link.session.self.session = 7;
    link.session.self.version_least = link.session.self.version_most = 7;
    link.session.peer = folders.identity(name == "edge" ? "gpu" : "edge").id().bytes;
    link.session.dials = edge.has_value();
    link.session.plan_comes_later = true;
    if (edge) link.endpoints = {*edge};
    link.tls = &tls_;
    reactor_.add(link);
    if (!edge) {
      net::ListenOptions listen;
      listen.endpoints = {net::parse_endpoint("127.0.0.1:0")};
      listen.tls = &tls_;
      listen.knows = [](const net::NodeId&) { return true; };
      listener_.emplace(listen, [this](net::Guest guest) { reactor_.give(std::move(guest)); });
    }
    reactor_.start();
  }
  ~LaterNode() {
    listener_.reset();
    reactor_.stop();
  }
  net::Endpoint endpoint() const { return listener_->endpoints().at(0); }

 private:
  net::Identity identity_;
  net::TlsContext tls_;
  net::Reactor reactor_;
  std::optional<net::Listener> listener_;
};

const std::string kBoth = "the two nodes have no protocol version in common: the one that dials speaks ";

TEST_CASE("MR0805: a node ends if its coordinator has no version of the link in common with it") {
  const Folders folders;
  const LaterNode edge(folders, "edge");
  Node gpu(folders, "gpu", edge.endpoint());
  const std::optional<Task> task = gpu.task();
  REQUIRE(task);
  CHECK(task->type == Task::Type::over);
  REQUIRE(task->error);
  CHECK(task->error->code == code::other_version);
  CHECK(task->error->notes == std::vector<std::string>{kBoth + "mrl/1, the other one mrl/7", "gpu is millrace 1.5",
                                                       "install the same version of millrace on both"});
}

TEST_CASE("MR0805: a coordinator tells once that a node has another version, and waits until one of its own comes") {
  const Folders folders;
  Node edge(folders, "edge");
  {
    const LaterNode gpu(folders, "gpu", edge.endpoint());
    const std::string refused = edge.line("refused gpu: error MR0805: ");
    CHECK(refused.find(kBoth + "mrl/7, the other one mrl/1") != std::string::npos);
    const std::string waits = edge.line("waiting for gpu (" + kBoth); // it has been dialled again by then
    CHECK(!waits.empty());
  }
  Node gpu(folders, "gpu", edge.endpoint());
  const std::optional<Task> task = edge.task();
  REQUIRE(task);
  CHECK(task->type == Task::Type::compile);
  CHECK(edge.told.of("refused").size() == 1);
}

TEST_CASE("a node that waits says for whom every 2 s, and from a minute on warns once a minute") {
  const Folders folders;
  Node edge(folders, "edge");
  REQUIRE(!edge.line("waiting for gpu").empty());
  CHECK(edge.warned.of("").empty());
  edge.pass(std::chrono::seconds(61));
  const std::vector<std::string> warned = edge.warned.of("warning MR0820: gpu has not come for ");
  REQUIRE(warned.size() == 1);
  CHECK(warned[0].find("waiting for gpu (it has not dialled this node yet)") != std::string::npos);
  const size_t told = edge.told.of("waiting for").size();
  for (int times = 0; times < 14; ++times) edge.pass(std::chrono::seconds(4));
  CHECK(edge.told.of("waiting for").size() == told);
  CHECK(edge.warned.of("").size() == 1);
  edge.pass(std::chrono::seconds(5));
  CHECK(edge.warned.of("").size() == 2);
}

TEST_CASE(
    "MR0820: a node that is to wait for a bounded time ends when that is over, and names those that are missing") {
  const Folders folders;
  for (const bool coordinates : {true, false}) {
    CAPTURE(coordinates);
    const std::optional<net::Endpoint> nobody = net::parse_endpoint("127.0.0.1:9");
    Node node(folders, coordinates ? "edge" : "gpu", coordinates ? std::nullopt : nobody, 90'000'000'000);
    const std::string other = coordinates ? "gpu" : "edge";
    REQUIRE(!node.line("waiting for " + other).empty());
    node.pass(std::chrono::seconds(80));
    CHECK(!node.warned.of("warning MR0820: " + other).empty());
    node.pass(std::chrono::seconds(11));
    const std::optional<Task> task = node.task();
    REQUIRE(task);
    CHECK(task->type == Task::Type::over);
    REQUIRE(task->error);
    CHECK(task->error->code == code::not_met);
    CHECK(task->error->what == other + " has not come within 90 s");
  }
}

} // namespace
} // namespace millrace::node
