// Two sessions under a program of small steps: any interleaving of bytes, time, cuts, damage and new processes.
//
// The first four bytes choose the link; each two after them are a step. Whatever the steps are, what arrives is what
// was given: in order, each once, with its own bytes. A message that is heard is the next one of its connection. After
// the steps the link is left alone, and then everything must be there, and a message of each side.
#pragma once

#include "tests/net/two_nodes.h"

namespace millrace::net {

class SessionProgram {
 public:
  explicit SessionProgram(Bytes input) : reader_(input), nodes_(options()) {
    const auto sizes = reader_.get<uint8_t>(), depths = reader_.get<uint8_t>();
    constexpr uint32_t kBytesMax[] = {0, 40, 300, 1500};
    // More than an inbox reads at once. Filling such blocks takes most of a run's time, so one way alone has them.
    const bool is_large = (sizes & 3) == 3 && (depths & 128) != 0;
    for (uint32_t i = 0; i < 3; ++i) {
      test::Contents contents;
      contents.seed = i + 1;
      contents.values = i < 2 ? 1 + (sizes >> (4 + i) & 1) : 0;
      contents.bytes_max = i == 0 && is_large ? 70'000 : kBytesMax[sizes >> (2 * i) & 3];
      nodes_.add(i & 1, 1 + i % lanes_, i == 0 && is_large ? 1 : 1 + (depths >> (2 * i) & 3), contents);
    }
    nodes_.begin(0);
    nodes_.begin(1);
  }

  // The rule that was broken; null if none was.
  const char* run() {
    nodes_.pass(0);
    while (!reader_.at_end() && !nodes_.broken()) step();
    if (!nodes_.broken()) heal();
    return nodes_.broken() ? nodes_.broken() : broken_;
  }

 private:
  test::TwoNodes::Options options() {
    const auto flags = reader_.get<uint8_t>();
    test::TwoNodes::Options options;
    lanes_ = options.data_lanes = 1 + (flags & 1);
    is_damaging_ = flags & 4;
    options.checks_bodies = is_damaging_ || (flags & 2);
    options.seed = reader_.get<uint8_t>();
    return options;
  }

  void step() {
    const auto what = reader_.get<uint8_t>(), how = reader_.get<uint8_t>();
    const uint32_t side = what >> 4 & 1, lane = (what >> 5) % (1 + lanes_), way = how % 3;
    // Few bytes, or about as many as a head or a body has, or all.
    const size_t bytes = how < 128 ? how : how < 192 ? (how - 127u) * 24 : how < 255 ? (how - 191u) * 1500 : SIZE_MAX;
    switch (what & 15) {
      case 0: nodes_.send(side, lane, bytes); break;
      case 1: nodes_.deliver(side, lane, bytes); break;
      case 2: nodes_.deliver(side, lane, SIZE_MAX, 1 + how); break;
      case 3: nodes_.exchange(); break;
      case 4: nodes_.pass(int64_t{how % 64} * how * kMillisecond); break; // up to 15 s
      case 5: nodes_.pass(how * kMillisecond / 8); break;
      case 6: nodes_.cut(side, lane); break;
      case 7: nodes_.cut_both(lane); break;
      case 8: nodes_.way(way).giver->make(how & 4 ? 1 + how % 5 : 0, how % 2 ? kCauseLink : kCauseAway); break;
      case 9:
        for (uint32_t n = 0; n < how; ++n) nodes_.way(n % 3).giver->make();
        break;
      case 10: nodes_.way(way).taker->take_in(); break;
      case 11: nodes_.take_in_all(); break;
      case 12: damage(side, lane, how); break;
      case 13: listen(how); break;
      case 14:
        nodes_.let_dials_fail(how & 1);
        nodes_.limit_chunks(how & 2 ? how * 16 : kChunkBytesMax);
        break;
      default: rare(side, how); break;
    }
  }

  void rare(uint32_t side, uint8_t how) {
    switch (how & 7) {
      case 0:
      case 1: return nodes_.begin(side);
      case 2: has_left_ = true; return nodes_.session(side).leave();
      case 3: nodes_.way(how % 3).giver->make(0, kCauseLink, true); return;
      case 4: return nodes_.settle(4);
      case 5: return nodes_.listen_to_all();
      case 6: nodes_.say(side, size_t{how} * how / 2); return; // up to two chunks
      default: return nodes_.pass(kGreetingNs);
    }
  }

  void listen(uint8_t how) {
    const size_t count = nodes_.connections().size();
    if (count > 0) nodes_.listen(static_cast<uint32_t>(how % count));
  }

  // A byte changes, or some are lost, among those that the side wrote and that are under way.
  void damage(uint32_t side, uint32_t lane, uint8_t how) {
    auto* const connection = nodes_.connection(side, lane);
    if (!is_damaging_ || !connection || connection->pipes[side].empty()) return;
    std::vector<std::byte>& pipe = connection->pipes[side];
    const auto next = reader_.get<uint8_t>();
    const auto at =
        static_cast<ptrdiff_t>((next & 128 ? pipe.size() - 1 - (next & 127) % pipe.size() : next) % pipe.size());
    if (how == 0)
      pipe.erase(pipe.begin() + at, pipe.begin() + std::min<ptrdiff_t>(at + 1 + next % 40, std::ssize(pipe)));
    else
      pipe[static_cast<size_t>(at)] ^= static_cast<std::byte>(how);
  }

  // The line is well again, and both runs take in what comes.
  void heal() {
    nodes_.let_dials_fail(false);
    nodes_.limit_chunks(kChunkBytesMax);
    for (uint32_t lane = 0; lane <= lanes_; ++lane) nodes_.cut_both(lane);
    if (has_left_) return nodes_.run(3 * kSecond, 500 * kMillisecond);
    // The longest wait to dial again, and one more for each refusal of a connection that is half there.
    const auto has_all = [this] { return nodes_.is_all_there() && nodes_.is_all_heard(); };
    for (int n = 0; n < 60 && !nodes_.broken() && !has_all(); ++n) {
      nodes_.run(20 * kMillisecond, 10 * kMillisecond);
      if (!has_all()) nodes_.pass(kSecond / 2);
    }
    if (!has_all()) broken_ = "after the line is back, everything arrives";
    if (broken_ || nodes_.broken()) return;
    for (const uint32_t side : {0u, 1u})
      if (!nodes_.say(side, 1 + side * 99)) broken_ = "a link that is up takes a message";
    nodes_.settle();
    if (!nodes_.is_all_heard()) broken_ = "what is said over a line that is well is heard";
  }

  ByteReader reader_;
  uint32_t lanes_ = 1;
  bool is_damaging_ = false, has_left_ = false;
  test::TwoNodes nodes_;
  const char* broken_ = nullptr;
};

inline const char* look_at_session_program(Bytes input) {
  constexpr size_t kStepsMax = 512;
  return SessionProgram(input.first(std::min<size_t>(input.size(), 4 + 2 * kStepsMax))).run();
}

} // namespace millrace::net
