// Keeps requests until they have their replies; see requests.h.
#include "node/requests.h"

#include <utility>

namespace millrace::node {

fleet::Request Requests::ask(const std::string& to, std::string body, Done done, int64_t now_ns) {
  const uint64_t number = ++last_;
  Asked& asked = asked_[number];
  asked = {{node_, to, process_, number, std::move(body)}, std::move(done), now_ns};
  return asked.request;
}

std::vector<fleet::Request> Requests::due(int64_t now_ns) {
  std::vector<fleet::Request> due;
  for (auto& [number, asked] : asked_) {
    if (now_ns - asked.said_ns < kSayAgainNs) continue;
    asked.said_ns = now_ns;
    due.push_back(asked.request);
  }
  return due;
}

void Requests::replied(uint64_t number, const std::string& body) {
  const auto found = asked_.find(number);
  if (found == asked_.end()) return; // it was replied before
  const Done done = std::move(found->second.done);
  asked_.erase(found);
  done(body);
}

void Requests::give_up() {
  for (const auto& [number, asked] : std::exchange(asked_, {})) asked.done("");
}

Requests::Taken Requests::take(const fleet::Request& request) {
  const Key key(request.process, request.number);
  if (const auto known = others_.find(key); known != others_.end())
    return known->second.is_replied ? Taken::replied : Taken::under_way;
  if (others_.size() - replied_.size() >= kRequestsMax) return Taken::too_many;
  others_[key] = {};
  return Taken::anew;
}

fleet::Reply Requests::reply_to(const fleet::Request& request) const {
  const auto known = others_.find({request.process, request.number});
  return {request.from, request.process, request.number, known == others_.end() ? "" : known->second.body};
}

void Requests::reply(const fleet::Reply& reply) {
  const Key key(reply.process, reply.number);
  const auto known = others_.find(key);
  if (known == others_.end() || known->second.is_replied) return;
  known->second = {true, reply.body};
  replied_.push_back(key);
  if (replied_.size() <= kRepliesKept) return;
  others_.erase(replied_.front());
  replied_.pop_front();
}

} // namespace millrace::node
