// Times of transport streams: their turns, and pauses told from joins by the packets.
#include "plugins/media/ts_times.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "tests/contains.h"
#include "tests/file_bytes.h"
#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

constexpr int64_t kTsHour = int64_t{3600} * 1'000'000'000;

// Transport packets of a stream, and of its tables in between.
class PacketMaker {
 public:
  explicit PacketMaker(size_t size = 188) : size_(size) {}
  // Adds packets of the pictures, with a table before every fourth. Returns the position of the first.
  int64_t add(int count) {
    const auto at = static_cast<int64_t>(bytes.size());
    for (int i = 0; i < count; ++i) {
      if (i % 4 == 0) packet(0, tables_++, 0x10);
      packet(0x100, pictures_++, 0x10);
    }
    return at;
  }
  void skip_pictures(int count) { pictures_ += count; }
  void skip_tables(int count) { tables_ += count; }
  void packet(int pid, int counter, int control, int field = 0) {
    std::string bits(size_, '\xff');
    const size_t at = size_ == 192 ? 4 : 0;
    bits[at] = 0x47;
    bits[at + 1] = static_cast<char>(pid >> 8);
    bits[at + 2] = static_cast<char>(pid);
    bits[at + 3] = static_cast<char>(control | (counter & 15));
    bits[at + 4] = 1;
    bits[at + 5] = static_cast<char>(field);
    bytes += bits;
  }
  int pictures() const { return pictures_; }
  std::string bytes;

 private:
  size_t size_;
  int pictures_ = 7, tables_ = 3;
};

bool joined(const PacketMaker& made, int64_t before, int64_t after) {
  const std::string path = scratch("ts-times.ts");
  put_bytes(path, made.bytes);
  return is_joined(path, before, after);
}

} // namespace

TEST_CASE("times go on over their turns, and pictures out of order stay where they are") {
  TsTurns turns;
  CHECK(turns.continued(kNoTime) == kNoTime);
  const int64_t late = kTsTurnNs - 5'000'000'000;
  CHECK(turns.continued(late) == late);
  CHECK(turns.continued(40'000'000) == kTsTurnNs + 40'000'000);
  CHECK(turns.continued(kTsTurnNs - 40'000'000) == kTsTurnNs - 40'000'000); // shown late
  CHECK(turns.continued(80'000'000) == kTsTurnNs + 80'000'000);
  CHECK(turns.continued(10'000'000) == kTsTurnNs + 10'000'000);
  CHECK(turns.continued(12 * kTsHour) == kTsTurnNs + 12 * kTsHour);
  CHECK(turns.continued(25 * kTsHour) == kTsTurnNs + 25 * kTsHour);
  CHECK(turns.continued(kTsHour) == 2 * kTsTurnNs + kTsHour);
}

TEST_CASE("a stream is joined where a counter breaks, and one recording where none does") {
  for (const size_t size : {size_t{188}, size_t{192}}) {
    PacketMaker whole(size);
    whole.add(20);
    const int64_t before = whole.add(9);
    const int64_t after = whole.add(30);
    CHECK_FALSE(joined(whole, before, after));
    for (const int skipped : {1, 8, 15}) {
      PacketMaker pictures(size), tables(size);
      pictures.add(20), tables.add(20);
      const int64_t last = pictures.add(9), other = tables.add(9);
      pictures.skip_pictures(skipped), tables.skip_tables(skipped);
      const int64_t next = pictures.add(30), another = tables.add(30);
      // A counter that stands still is a packet that came twice.
      CHECK(joined(pictures, last, next + static_cast<int64_t>(size)) == (skipped != 15));
      CHECK(joined(tables, other, another) == (skipped != 15));
    }
  }
}

TEST_CASE("the discontinuity indicator is a join, damage before the last picture is none") {
  PacketMaker said;
  said.add(20);
  const int64_t before = said.add(9);
  said.packet(0x100, said.pictures() - 1, 0x20, 0x80);
  const int64_t after = said.add(9);
  CHECK(joined(said, before, after));
  PacketMaker damaged;
  damaged.add(20);
  damaged.skip_pictures(5);
  damaged.add(3);
  const int64_t last = damaged.add(9), next = damaged.add(9);
  CHECK_FALSE(joined(damaged, last, next));
}

TEST_CASE("what is no transport stream, or cannot be read, counts as joined") {
  PacketMaker made;
  made.add(40);
  CHECK(is_joined("no/such/file.ts", 0, 1880));
  CHECK(joined(made, -1, 1880));
  CHECK(joined(made, 1880, 1880));
  made.bytes = std::string(20'000, 'x');
  CHECK(joined(made, 188, 1880));
}

TEST_CASE("the end of a count is told with its place, and a longer pause with what it is read as") {
  CHECK(turn_words("a.ts", 0, 26 * kTsHour) == "");
  CHECK(turn_words("a.ts", 27 * kTsHour, 50 * kTsHour) == "");
  CHECK(contains(turn_words("a.ts", 26 * kTsHour, 27 * kTsHour), "'a.ts' begin again after 26.0 hours"));
  const std::string pause = turn_words("a.ts", kTsHour, 41 * kTsHour);
  CHECK(contains(pause, "no picture came for 40.0 hours after 1.0 hours: this pause is read as 13.5 hours"));
  CHECK(contains(pause, "mkv, mp4 and mov count on"));
}

} // namespace millrace::media
