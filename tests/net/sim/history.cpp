// Compares both ends of each crossing, step by step.
#include "tests/net/sim/history.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace millrace::net::sim {
namespace {

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9FB21C651E98DF25u;
  return hash ^ (hash >> 32);
}

const char* name_of(Step step) {
  constexpr const char* kNames[] = {"given", "let go", "arrived", "passed", "met", "said", "heard", "event", "fault"};
  static_assert(std::size(kNames) == static_cast<size_t>(Step::count));
  return kNames[static_cast<size_t>(step)];
}

} // namespace

uint64_t hash_of(const uint8_t* bytes, size_t count) {
  uint64_t hash = count;
  size_t at = 0;
  for (; at + 8 <= count; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    hash = mix(hash, word);
  }
  for (; at < count; ++at) hash = mix(hash, bytes[at]);
  return hash;
}

uint64_t hash_of(const Parcel& parcel) {
  const mr_tick_info& tick = parcel.tick;
  uint64_t hash = parcel.end ? 1 : 0;
  for (const uint64_t word :
       {uint64_t{tick.clock}, uint64_t{tick.epoch}, tick.index, static_cast<uint64_t>(tick.media_time_ns),
        static_cast<uint64_t>(tick.deadline_ns), tick.trace_id, static_cast<uint64_t>(parcel.begun_ns),
        uint64_t{parcel.begun_error_us}, parcel.previous, uint64_t{parcel.gap_count}, uint64_t{parcel.value_count}})
    hash = mix(hash, word);
  for (uint8_t i = 0; i < parcel.gap_count; ++i) hash = mix(mix(hash, parcel.gaps[i].cause), parcel.gaps[i].ticks);
  for (uint8_t i = 0; i < parcel.value_count; ++i) {
    const Value& value = parcel.values[i];
    hash = mix(hash, value.value ? 1 : 2);
    if (!value.value) {
      hash = mix(hash, value.cause);
      continue;
    }
    const mr_header& header = value.value->header;
    hash = mix(mix(hash, static_cast<uint64_t>(header.pts_ns)), header.extent_bytes);
    hash = mix(hash, hash_of(value.data, static_cast<size_t>(header.extent_bytes)));
  }
  return hash;
}

// ---- steps ---------------------------------------------------------------------------------------------------------

uint64_t History::keep(Stream stream, const Parcel& parcel) {
  Lists& lists = streams_[stream];
  const uint64_t token = parcels_.size(), number = lists.tokens.size();
  parcels_.push_back({stream, number, hash_of(parcel), State::held});
  lists.tokens.push_back(token);
  add(Step::given, stream.crossing, number, parcel.tick.index, parcel.end ? "end" : "");
  return token;
}

void History::given_again(Stream stream, const Parcel& end) { keep(stream, end); }

uint64_t History::given(Stream stream, uint32_t depth, const Parcel& parcel) {
  const uint64_t token = keep(stream, parcel);
  Lists& lists = streams_[stream];
  const uint64_t number = lists.tokens.size() - 1;
  if (number >= lists.credit) fail_at("a parcel was taken without credit", stream, number);
  if (number - lists.released >= depth) fail_at("more parcels are held than the depth", stream, number);
  if (parcel.tick.media_time_ns <= lists.last_media_ns) fail_at("the run gave ticks out of order", stream, number);
  lists.last_media_ns = parcel.tick.media_time_ns;
  return token;
}

void History::let_go(uint64_t token, bool acknowledged) {
  if (token >= parcels_.size()) return fail("a parcel was let go that was never given");
  Given& parcel = parcels_[token];
  Lists& lists = streams_[parcel.stream];
  add(Step::let_go, parcel.stream.crossing, parcel.number, token, acknowledged ? "acknowledged" : "lost");
  if (parcel.state != State::held) fail_at("a parcel was let go twice", parcel.stream, parcel.number);
  if (parcel.number != lists.released) fail_at("parcels were let go out of order", parcel.stream, parcel.number);
  if (acknowledged && parcel.number >= lists.arrived)
    fail_at("a parcel was acknowledged that has not arrived", parcel.stream, parcel.number);
  parcel.state = acknowledged ? State::acknowledged : State::lost;
  ++lists.released;
  if (!acknowledged) ++lists.lost;
}

void History::arrived(Stream stream, const Parcel& parcel) {
  Lists& lists = streams_[stream];
  const uint64_t number = lists.arrived++;
  ++arrived_;
  add(Step::arrived, stream.crossing, number, parcel.tick.index, parcel.end ? "end" : "");
  if (number >= lists.tokens.size()) return fail_at("a parcel arrived that was not given", stream, number);
  const Given& given = parcels_[lists.tokens[number]];
  if (given.hash != hash_of(parcel)) fail_at("a parcel arrived that is not the next one", stream, number);
  if (number >= lists.credit) fail_at("a parcel arrived beyond the credit", stream, number);
  if (parcel.tick.media_time_ns <= lists.passed_ns)
    fail_at("a parcel arrived after its media time had passed", stream, number);
}

void History::promised(Stream stream, uint64_t credit) {
  Lists& lists = streams_[stream];
  if (credit < lists.credit) fail_at("a credit has fallen", stream, credit);
  lists.credit = credit;
}

void History::passed(Stream stream, int64_t media_ns) {
  Lists& lists = streams_[stream];
  add(Step::passed, stream.crossing, static_cast<uint64_t>(media_ns), 0, "");
  if (media_ns <= lists.passed_ns) fail_at("a passed time did not rise", stream, lists.arrived);
  lists.passed_ns = media_ns;
}

void History::met(uint64_t session, uint64_t pairing, bool decides) {
  std::vector<uint64_t>& members = members_[pairing];
  add(Step::met, session, pairing, 0, decides ? "decides" : "");
  if (std::find(members.begin(), members.end(), session) == members.end()) members.push_back(session);
  if (members.size() > 2) fail("three processes have one pairing");
  if (!decides) return;
  // The same two processes do not begin anew once a parcel was given: it would be lost between two that live.
  const auto before = decided_.find(session);
  if (before != decided_.end() && before->second != pairing && members_[before->second] == members &&
      members.size() == 2)
    for (const auto& [stream, lists] : streams_)
      if (stream.pairing == before->second && !lists.tokens.empty())
        fail_at("two living processes began anew", stream, lists.tokens.size());
  decided_[session] = pairing;
}

// ---- messages ------------------------------------------------------------------------------------------------------

namespace {

uint64_t hash_of(const std::string& text) {
  return sim::hash_of(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

} // namespace

void History::said(Voice voice, const std::string& text) {
  std::vector<uint64_t>& said = talks_[voice].said;
  ++said_;
  add(Step::said, voice.connection, voice.of_dialler, said.size(), voice.of_dialler ? "by the dialler" : "");
  said.push_back(hash_of(text));
}

void History::heard(uint64_t session, Voice voice, const std::string& text) {
  Talk& talk = talks_[voice];
  const uint64_t number = talk.heard++;
  ++heard_;
  add(Step::heard, voice.connection, voice.of_dialler, number, voice.of_dialler ? "of the dialler" : "");
  const auto fail_with = [&](const char* sentence) {
    fail(std::string(sentence) + ": connection " + std::to_string(voice.connection) + ", number " +
         std::to_string(number));
  };
  if (number >= talk.said.size()) return fail_with("a message was heard that was not said");
  if (talk.said[number] != hash_of(text)) fail_with("a message was heard that is not the next one");
  if (talk.is_over) fail_with("a message was heard after those of another connection");
  const auto [before, is_first] = listens_to_.try_emplace(session, voice);
  if (is_first || before->second == voice) return;
  talks_[before->second].is_over = true;
  before->second = voice;
}

bool History::is_heard(Voice voice) const {
  const auto found = talks_.find(voice);
  return found == talks_.end() || found->second.heard == found->second.said.size();
}

// ---- clocks --------------------------------------------------------------------------------------------------------

void History::has_clock(uint64_t session, std::function<int64_t()> now) { clocks_[session] = std::move(now); }

void History::offset(uint64_t pairing, uint64_t session, int64_t offset_ns, int64_t error_ns) {
  for (const uint64_t peer : members_[pairing]) {
    if (peer == session) continue;
    const int64_t off_ns = offset_ns - (clocks_.at(peer)() - clocks_.at(session)());
    if (off_ns > error_ns || off_ns < -error_ns)
      fail("a clock's offset is further off than its error: by " + std::to_string(off_ns) + " ns of " +
           std::to_string(error_ns));
  }
}

void History::note(Step step, uint64_t session, uint64_t what, const char* words) {
  add(step, session, what, 0, words);
}

History::Progress History::progress(Stream stream) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return {};
  const Lists& lists = found->second;
  return {lists.tokens.size(), lists.arrived, lists.released - lists.lost, lists.lost, lists.credit, lists.passed_ns};
}

// ---- the report ----------------------------------------------------------------------------------------------------

void History::add(Step step, uint64_t a, uint64_t b, uint64_t c, const char* words) {
  lines_[line_count_++ % kLinesKept] = {time_.now_ns(), step, a, b, c, words};
  for (const uint64_t word : {static_cast<uint64_t>(time_.now_ns()), static_cast<uint64_t>(step), a, b, c})
    hash_ = mix(hash_, word);
}

void History::fail_at(const char* sentence, Stream stream, uint64_t number) {
  fail(std::string(sentence) + ": crossing " + std::to_string(stream.crossing) + ", number " + std::to_string(number));
}

void History::fail(const std::string& sentence) {
  if (has_failed()) return;
  failure_ = sentence + "\n";
  for (uint64_t i = line_count_ > kLinesKept ? line_count_ - kLinesKept : 0; i < line_count_; ++i) {
    const Line& line = lines_[i % kLinesKept];
    failure_ += std::to_string(line.at_ns / 1000) + " us  " + name_of(line.step) + " " + std::to_string(line.a) + " " +
                std::to_string(line.b) + " " + std::to_string(line.c) + " " + line.words + "\n";
  }
}

} // namespace millrace::net::sim
