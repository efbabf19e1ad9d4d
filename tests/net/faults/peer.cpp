// Both sides of a peer that is a process: what it does, and how a test speaks with it.
#include "tests/net/faults/peer.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "observe/error.h"

namespace millrace::net::test {

namespace {

NodeId read_id(const std::string& text) {
  NodeId id;
  NodeIdFault fault;
  MR_ASSERT(parse_node_id(text, id, fault), "a test gives a right node id");
  return id;
}

} // namespace

int run_peer(int count, char** words) {
  MR_ASSERT(count == 4, "--peer FOLDER PORT OTHER FIRST");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // not longer than the test
  const Identity identity = Identity::open(words[0]);
  const Credentials own(identity);
  const NodeId other = read_id(words[2]);
  Progress progress;
  Reader reader(contents_to_peer(), kPeerDepth, progress);
  Sender sender(contents_from_peer(), kPeerDepth, progress, std::stoull(words[3]));
  Node node(own, other, progress);
  node.add_link();
  node.session->add(plan_of(0, 1, kPeerDepth, contents_to_peer()), reader);
  node.session->add(plan_of(1, 1, kPeerDepth, contents_from_peer()), sender);
  node.reactor.start();
  ListenOptions options;
  options.endpoints = {parse_endpoint(std::string("127.0.0.1:") + words[1])};
  options.tls = own.tls.get();
  options.knows = [&](const NodeId& id) { return id == other; };
  Listener listener(options, [&](Guest guest) { node.reactor.give(std::move(guest)); });
  std::cout << to_text(own.id) << " " << listener.endpoints()[0].port << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.rfind("allow ", 0) == 0) {
      sender.allowed = std::stoull(line.substr(6));
      node.reactor.ring();
    }
    std::cout << reader.arrived << " " << reader.last_index << " " << sender.given << " " << sender.acknowledged << " "
              << sender.lost << " " << node.events.count(EventType::met) << " "
              << (reader.broken == nullptr && sender.broken == nullptr) << std::endl;
  }
  return 0;
}

PeerProcess::PeerProcess(const std::string& folder, uint16_t port, const NodeId& other, uint64_t first_index) {
  int in[2], out[2];
  REQUIRE(::pipe(in) == 0);
  REQUIRE(::pipe(out) == 0);
  const std::string port_text = std::to_string(port), id = to_text(other), first = std::to_string(first_index);
  const char* const words[] = {"test_net_faults", "--peer",      folder.c_str(), port_text.c_str(),
                               id.c_str(),        first.c_str(), nullptr};
  process_ = ::fork();
  if (process_ == 0) { // the test has threads, so nothing happens here that takes a lock
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    for (int descriptor = 3; descriptor < 1024; ++descriptor) ::close(descriptor);
    ::execv("/proc/self/exe", const_cast<char* const*>(words));
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  to_ = ::fdopen(in[1], "w");
  from_ = ::fdopen(out[0], "r");
  std::istringstream words_read(read_line());
  std::string id_text;
  words_read >> id_text >> port_;
  id_ = read_id(id_text);
}

PeerProcess::~PeerProcess() {
  kill();
  ::fclose(to_);
  ::fclose(from_);
}

void PeerProcess::signal(int number) const { REQUIRE(::kill(process_, number) == 0); }

void PeerProcess::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

std::string PeerProcess::read_line() {
  std::array<char, 512> line{};
  REQUIRE_MESSAGE(::fgets(line.data(), line.size(), from_) != nullptr, "the peer's process has ended");
  return line.data();
}

void PeerProcess::write_line(const std::string& line) {
  REQUIRE(::fputs((line + "\n").c_str(), to_) >= 0);
  REQUIRE(::fflush(to_) == 0);
}

PeerProcess::Counts PeerProcess::counts() {
  write_line("counts");
  std::istringstream words(read_line());
  Counts counts;
  words >> counts.arrived >> counts.last_index >> counts.given >> counts.acknowledged >> counts.lost >> counts.met >>
      counts.is_right;
  return counts;
}

void PeerProcess::allow(uint64_t parcels) {
  write_line("allow " + std::to_string(parcels));
  read_line();
}

} // namespace millrace::net::test
