// The history of a simulation, and the checker that proves the promises of a link while it grows.
//
// Both ends of every crossing tell it each step. It knows both sides at once, so it compares them on the spot: what
// arrives is the next parcel that was given in that pairing, with the same tick, gaps and values; nothing is given
// without credit or beyond the depth; an acknowledged parcel did arrive; a passed time comes after the parcels that it
// promises; a block is let go once. A message that is heard is the next one that was said on that connection. The first
// step that breaks a promise is kept as the failure.
//
// Single threaded. It grows with the number of parcels.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/timeline.h"
#include "net/crossing.h"

namespace millrace::net::sim {

enum class Step : uint8_t {
  given,   // a sender's session took a parcel from the run
  let_go,  // its blocks are free
  arrived, // a reader's session gave it to the run
  passed,  // a reader was told a media time
  met,     // a process has a new pairing
  said,    // a session took a message
  heard,   // a session gave it to the owner at the other end
  event,   // any other event of a session
  fault,   // the simulation did something
  count,
};

class History {
 public:
  explicit History(const device::VirtualTime& time) : time_(time) {}

  // One crossing in one pairing of two processes.
  struct Stream {
    uint64_t pairing = 0;
    uint16_t crossing = 0;
    auto operator<=>(const Stream&) const = default;
  };

  // ---- told by the ends of crossings ----

  // Returns the parcel's token.
  uint64_t given(Stream stream, uint32_t depth, const Parcel& parcel);
  // An end that is sent to another process too.
  void given_again(Stream stream, const Parcel& end);
  void let_go(uint64_t token, bool acknowledged);
  void arrived(Stream stream, const Parcel& parcel);
  // The reader may get parcels below this number.
  void promised(Stream stream, uint64_t credit);
  void passed(Stream stream, int64_t media_ns);
  // `decides`: the side that accepts, which gives pairings their numbers.
  void met(uint64_t session, uint64_t pairing, bool decides);
  // A process's clock, also after its death; and what a session says of its peer's clock minus its own.
  void has_clock(uint64_t session, std::function<int64_t()> now);
  void offset(uint64_t pairing, uint64_t session, int64_t offset_ns, int64_t error_ns);

  // ---- told by processes of their messages ----

  // One direction of a control connection of the network.
  struct Voice {
    uint64_t connection = 0;
    bool of_dialler = false;
    auto operator<=>(const Voice&) const = default;
  };
  void said(Voice voice, const std::string& text);
  // By the process with this session.
  void heard(uint64_t session, Voice voice, const std::string& text);
  // All that was said there has been heard.
  bool is_heard(Voice voice) const;
  uint64_t said_count() const { return said_; }
  uint64_t heard_count() const { return heard_; }

  // Anything else, for the report and the hash.
  void note(Step step, uint64_t session, uint64_t what, const char* words);

  // ---- what was found ----

  // Keeps the first one, with the steps before it.
  void fail(const std::string& sentence);
  bool has_failed() const { return !failure_.empty(); }
  // The sentence, then the last steps, a line each.
  const std::string& failure() const { return failure_; }
  // Equal histories have equal hashes.
  uint64_t hash() const { return hash_; }

  struct Progress {
    uint64_t given = 0, arrived = 0, acknowledged = 0, lost = 0;
    uint64_t credit = 0;
    int64_t passed_ns = INT64_MIN;
  };
  Progress progress(Stream stream) const;
  uint64_t given_count() const { return parcels_.size(); }
  uint64_t arrived_count() const { return arrived_; }
  uint64_t pairing_count() const { return members_.size(); }

 private:
  enum class State : uint8_t { held, acknowledged, lost };
  struct Given {
    Stream stream;
    uint64_t number = 0;
    uint64_t hash = 0;
    State state = State::held;
  };
  struct Lists {
    std::vector<uint64_t> tokens; // by number
    uint64_t arrived = 0, released = 0, lost = 0;
    uint64_t credit = 0;
    int64_t passed_ns = INT64_MIN, last_media_ns = INT64_MIN;
  };
  struct Talk {
    std::vector<uint64_t> said; // hashes
    uint64_t heard = 0;
    bool is_over = false; // its hearer has heard another connection since
  };
  struct Line {
    int64_t at_ns = 0;
    Step step{};
    uint64_t a = 0, b = 0, c = 0;
    const char* words = "";
  };
  uint64_t keep(Stream stream, const Parcel& parcel);
  void add(Step step, uint64_t a, uint64_t b, uint64_t c, const char* words);
  void fail_at(const char* sentence, Stream stream, uint64_t number);

  const device::VirtualTime& time_;
  std::map<Stream, Lists> streams_;
  std::vector<Given> parcels_;                        // by token
  std::map<uint64_t, std::vector<uint64_t>> members_; // sessions of a pairing
  std::map<uint64_t, uint64_t> decided_;              // the pairing of each process that accepts
  std::map<uint64_t, std::function<int64_t()>> clocks_;
  std::map<Voice, Talk> talks_;
  std::map<uint64_t, Voice> listens_to_; // by the session that hears
  uint64_t said_ = 0, heard_ = 0;
  uint64_t arrived_ = 0;
  uint64_t hash_ = 0x6D727363;
  std::string failure_;
  static constexpr size_t kLinesKept = 120;
  std::array<Line, kLinesKept> lines_{};
  uint64_t line_count_ = 0;
};

// Hashes all of a parcel that travels: its tick, its gaps, and its values with their bytes.
uint64_t hash_of(const Parcel& parcel);
uint64_t hash_of(const uint8_t* bytes, size_t count);

} // namespace millrace::net::sim
