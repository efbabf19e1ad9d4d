// The places of a control socket: which clients have one, which give way to others, and when. It knows no sockets, and
// is told the time.
//
//                comes                 says something, and there is room
//   (nobody) ---------------> arrival ------------------------------------> client ---> gone
//                                |   a second has passed; or it is the           |  idle, and another one needs the
//                                place |   oldest, and there are too many arrivals     v
//                                +--------------------------------------------> gone
//
// Clients that say nothing hold no place, so that they keep nobody out. An arrival may greet and stop the run without a
// place: `stop` has to come through while others hold all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace millrace::serve {

struct ClientLimits {
  size_t clients = 16;         // programs that watch a run, and the commands of people
  size_t arrivals = 16;        // as many processes may dial at the same moment
  int64_t arrives_ms = 1000;   // a program speaks some microseconds after it has dialled
  int64_t idle_ms = 1000;      // a program that asks twice in a row does so within it
  int64_t answer_ms = 120'000; // the longest that a client of ours waits for an answer, twice
};

class ClientPlaces {
 public:
  explicit ClientPlaces(const ClientLimits& limits) : limits_(limits) {}

  using Number = uint64_t; // a client's; never given twice

  // The client that has to go for it, if there are too many arrivals.
  std::optional<Number> come(Number client, int64_t now_ms);
  // A client that has no place asks for one. `has`: it has one from now on, and `gives_way` has to go for it, if
  // anybody. It is true for a client that has a place.
  struct Place {
    bool has = false;
    std::optional<Number> gives_way;
  };
  Place take(Number client, int64_t now_ms);
  // The client has said a message or has taken in a part of an answer.
  void moved(Number client, int64_t now_ms);
  // How many of its requests are answered later.
  void owe(Number client, size_t answers);
  void leave(Number client);

  // The oldest arrival whose time is over.
  std::optional<Number> overdue(int64_t now_ms) const;
  // Milliseconds until overdue() has one; -1: there are no arrivals.
  int64_t until_overdue_ms(int64_t now_ms) const;

 private:
  struct Client {
    bool has_place = false;
    int64_t moved_ms = 0; // an arrival: when it came
    size_t owed = 0;
  };
  std::optional<Number> oldest_arrival() const;
  std::optional<Number> most_idle(int64_t now_ms) const;
  size_t count(bool with_place) const;

  const ClientLimits limits_;
  std::map<Number, Client> clients_; // in the order in which they came
};

} // namespace millrace::serve
