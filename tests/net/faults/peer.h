// A node in a process of its own, which a test may stop, continue and kill.
//
// The process is this test program with the argument --peer. It has one crossing in each direction, and listens. It
// obeys lines on its standard input, and answers each with a line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/net/system/ends.h"

namespace millrace::net::test {

// Both processes have the same two crossings, of this depth. The values to the peer are larger than the kernel takes
// from a sender whose peer is stopped, so a write is under way when the peer is away.
inline constexpr uint32_t kPeerDepth = 8;
inline Contents contents_to_peer() { return packets(900'000, 11); }
inline Contents contents_from_peer() { return packets(70'000, 12); }

// Runs the peer: its arguments are the folder of its key, the port, the other's id, and the first index that it sends.
int run_peer(int count, char** words);

class PeerProcess {
 public:
  // `port` 0: any. Waits until it listens.
  PeerProcess(const std::string& folder, uint16_t port, const NodeId& other, uint64_t first_index);
  ~PeerProcess(); // kills it
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  void signal(int number) const;
  void kill(); // and waits until it is gone

  struct Counts {
    uint64_t arrived = 0, last_index = 0, given = 0, acknowledged = 0, lost = 0, met = 0;
    bool is_right = false; // nothing that arrived was wrong
  };
  Counts counts();
  // Lets it send so many parcels in all.
  void allow(uint64_t parcels);

  const NodeId& id() const { return id_; }
  uint16_t port() const { return port_; }

 private:
  std::string read_line();
  void write_line(const std::string& line);

  int process_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  NodeId id_;
  uint16_t port_ = 0;
};

} // namespace millrace::net::test
