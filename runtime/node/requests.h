// Requests between nodes, by way of the coordinator: those of this node that wait for a reply, and those of others that
// it has taken. A link loses messages when it is cut, so a request is said again until its reply comes, and is carried
// out once. It does no I/O and keeps no time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fleet/statement.h"

namespace millrace::node {

// More than the control socket lets wait for a tick.
inline constexpr size_t kRequestsMax = 128;

class Requests {
 public:
  // "": the node that was asked, or the coordinator, is not there.
  using Done = std::function<void(const std::string& reply)>;

  Requests(std::string node, uint64_t process) : node_(std::move(node)), process_(process) {}

  // ---- of this node. The first one is to be said at once; due() has it if it cannot be
  fleet::Request ask(const std::string& to, std::string body, Done done, int64_t now_ns);
  // Those without a reply for a second, to be said again.
  std::vector<fleet::Request> due(int64_t now_ns);
  void replied(uint64_t number, const std::string& body);
  // The coordinator is away: nobody says whether they were carried out.
  void give_up();

  // ---- of others
  enum class Taken { anew, under_way, replied, too_many };
  Taken take(const fleet::Request& request);
  // The reply that was given; without a body if there was none.
  fleet::Reply reply_to(const fleet::Request& request) const;
  void reply(const fleet::Reply& reply);

  static constexpr int64_t kSayAgainNs = 1'000'000'000;
  static constexpr size_t kRepliesKept = 256; // a request is said again for as long as the coordinator is there

 private:
  struct Asked {
    fleet::Request request;
    Done done;
    int64_t said_ns = 0;
  };
  struct Other {
    bool is_replied = false;
    std::string body;
  };
  using Key = std::pair<uint64_t, uint64_t>; // process, number

  const std::string node_;
  const uint64_t process_;
  uint64_t last_ = 0;
  std::map<uint64_t, Asked> asked_; // by number
  std::map<Key, Other> others_;
  std::deque<Key> replied_; // the oldest first
};

} // namespace millrace::node
