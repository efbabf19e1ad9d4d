// A node meets one of another version of the link, which no two programs of this tree have: a bare link plays it.
#include "node/meeting.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "observe/error.h"
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
  Node(const Folders& folders, const std::string& name, const std::optional<net::Endpoint>& edge = std::nullopt)
      : meeting_(options(folders, name, edge), machine_time_, run_time_) {}

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

  Told told;

 private:
  MeetingOptions options(const Folders& folders, const std::string& name, const std::optional<net::Endpoint>& edge) {
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
    made.tell = [this](const std::string& line) { told.add(line); };
    return made;
  }

  device::MonotonicTime machine_time_;
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

} // namespace
} // namespace millrace::node
