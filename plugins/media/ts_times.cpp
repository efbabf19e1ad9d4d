// Compares the counters of transport packets; see ts_times.h.
#include "plugins/media/ts_times.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::media {

namespace {

constexpr uint8_t kSync = 0x47;
constexpr uint32_t kFillPid = 0x1fff;        // packets that only keep up a bit rate: their counters mean nothing
constexpr int64_t kEarlierBytes = 1'000'000; // holds a second of a film or more, in which each table comes again
constexpr int64_t kReadMax = 64'000'000;     // no picture is that large
constexpr int64_t kTimeBytes = 4;            // before a packet of 192 bytes; a position may count them
constexpr size_t kSynced = 5;                // packets in a row that begin with kSync

// The size of the packets, and in `at` where the first one begins; 0: there are none. With a time before each packet
// they are 192 bytes, and with a checksum after each 204.
size_t packet_size(const std::vector<uint8_t>& bytes, size_t& at) {
  for (at = 0; at < std::min<size_t>(bytes.size(), 204); ++at)
    for (const size_t size : {size_t{188}, size_t{192}, size_t{204}}) {
      bool is_synced = at + kSynced * size <= bytes.size();
      for (size_t i = 0; is_synced && i < kSynced; ++i) is_synced = bytes[at + i * size] == kSync;
      if (is_synced) return size;
    }
  return 0;
}

// Follows the counters of all streams.
class Counters {
 public:
  // False if the packet does not follow the one before it of its stream.
  bool follows(const uint8_t* packet) {
    const uint32_t pid = (packet[1] & 0x1fu) << 8 | packet[2];
    if (pid == kFillPid) return true;
    const bool has_payload = packet[3] & 0x10, has_field = packet[3] & 0x20;
    const uint8_t counter = packet[3] & 0x0f;
    const auto [known, is_first] = last_.try_emplace(pid, counter);
    const uint8_t before = std::exchange(known->second, counter);
    if (has_field && packet[4] > 0 && (packet[5] & 0x80)) return false; // the discontinuity indicator
    // A packet may come twice, and one without payload does not count.
    return is_first || counter == before || (has_payload && counter == ((before + 1) & 0x0f));
  }

 private:
  std::unordered_map<uint32_t, uint8_t> last_;
};

} // namespace

std::string turn_words(const std::string& path, int64_t before_ns, int64_t after_ns) {
  constexpr const char* kRemedy = "; mkv, mp4 and mov count on, and `segment=1h` begins a new count with each file";
  const auto hours = [](int64_t ns) {
    const int64_t tenths = (ns + 180'000'000'000) / 360'000'000'000;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " hours";
  };
  if (after_ns / kTsTurnNs == before_ns / kTsTurnNs) return "";
  const std::string counts = "a transport stream counts " + hours(kTsTurnNs);
  if (after_ns - before_ns < kTsTurnNs)
    return counts + ", and the times of '" + path + "' begin again after " + hours(before_ns) +
           ": not every player goes on from there" + kRemedy;
  return counts + ", and in '" + path + "' no picture came for " + hours(after_ns - before_ns) + " after " +
         hours(before_ns) + ": this pause is read as " + hours((after_ns - before_ns) % kTsTurnNs) + kRemedy;
}

int64_t TsTurns::continued(int64_t ns) {
  if (ns == kNoTime) return kNoTime;
  const int64_t there = ns + turns_ns_;
  if (last_ns_ != kNoTime && there < last_ns_ - kTsTurnNs / 2) turns_ns_ += kTsTurnNs;
  if (last_ns_ != kNoTime && there > last_ns_ + kTsTurnNs / 2 && turns_ns_ > 0 && ns > kTsTurnNs / 2)
    return there - kTsTurnNs; // a picture of before the turn, shown late
  last_ns_ = ns + turns_ns_;
  return last_ns_;
}

bool is_joined(const std::string& path, int64_t before, int64_t after) {
  if (before < 0 || after <= before || after - before > kReadMax) return true;
  std::ifstream file(path, std::ios::binary);
  const int64_t begin = std::max<int64_t>(0, before - kEarlierBytes);
  std::vector<uint8_t> bytes(static_cast<size_t>(after - begin + 204)); // with the first packet after the jump
  file.seekg(begin);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  size_t at = 0;
  const size_t size = packet_size(bytes, at);
  if (size == 0) return true;
  Counters counters;
  for (; at + 188 <= bytes.size() && begin + static_cast<int64_t>(at) <= after + kTimeBytes; at += size) {
    const bool is_between = begin + static_cast<int64_t>(at) > before + kTimeBytes;
    if (bytes[at] != kSync) return true;
    if (!counters.follows(bytes.data() + at) && is_between) return true;
  }
  return false;
}

} // namespace millrace::media
