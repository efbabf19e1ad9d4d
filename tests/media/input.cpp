// Opening: what a path is, why it cannot be read, which stream is taken, and what it says of itself.
#include "plugins/media/input.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/file_bytes.h"
#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

class Opened {
 public:
  explicit Opened(const std::string& path, int stream = -1, const std::string& format = "")
      : input({path, format, stream, 0.2}, interrupt, log) {}
  Interrupt interrupt;
  Log log{[](uint32_t, const std::string&) {}};
  Input input;
};

// Why the path cannot be opened; "" where it can.
std::string refusal(const std::string& path, int stream = -1, const std::string& format = "") {
  try {
    const Opened opened(path, stream, format);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::string film(const std::string& name, const std::string& arguments) {
  const std::string path = scratch("input-" + name);
  make_by_ffmpeg("-f lavfi -i testsrc2=size=64x48:rate=30000/1001:duration=1 " + arguments, path);
  return path;
}

// A film and a second one, sound and subtitles.
std::string rich_film() {
  const std::string words = scratch("input.srt");
  put_bytes(words, "1\n00:00:00,000 --> 00:00:01,000\nwords\n");
  const std::string path = scratch("input-rich.mkv");
  make_by_ffmpeg(
      "-f lavfi -i testsrc2=size=64x48:duration=1 -f lavfi -i sine=duration=1 -f lavfi -i "
      "testsrc2=size=32x16:duration=1 -i '" +
          words + "' -map 0 -map 1 -map 2 -map 3 -c:v ffv1 -c:a aac -c:s srt",
      path);
  return path;
}

// The codec of a file's sound, or why there is none.
std::string codec_of_sound(const std::string& path, int stream = -1) {
  Interrupt interrupt;
  Log log{[](uint32_t, const std::string&) {}};
  try {
    const Input input({path, "", stream, 0.2, AVMEDIA_TYPE_AUDIO}, interrupt, log);
    return avcodec_get_name(input.stream().codecpar->codec_id);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Works as a user who may nothing, where the test may everything.
class Nobody {
 public:
  Nobody() {
    if (geteuid() != 0) return;
    is_other_ = seteuid(65534) == 0;
  }
  ~Nobody() {
    if (is_other_ && seteuid(0) != 0) std::abort();
  }

 private:
  bool is_other_ = false;
};

int packets_of(Input& input) {
  const Packet packet(av_packet_alloc());
  int count = 0;
  for (; input.read(packet.get()) == 0; ++count) av_packet_unref(packet.get());
  return count;
}

} // namespace

TEST_CASE("a path is a file, a pipe or an address by what it is, not by its name's ending") {
  const std::string plain = scratch("kind:colon.mp4"), fifo = scratch("kind.mp4");
  put_bytes(plain, "x");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(input_kind_of("-") == InputKind::pipe);
  CHECK(input_kind_of(fifo) == InputKind::pipe);
  CHECK(input_kind_of(plain) == InputKind::file);
  for (const char* address : {"http://host/film.mp4", "rtsp://host", "udp://239.0.0.1:1234"})
    CHECK(input_kind_of(address) == InputKind::address);
}

TEST_CASE("what cannot be opened is refused for the reason that the system or FFmpeg has") {
  CHECK(refusal("no/such.mp4") == "there is no such file");
  const std::string empty = scratch("input-empty.mp4"), text = scratch("input-text.mp4"),
                    folder = scratch("input-folder");
  put_bytes(empty, "");
  put_bytes(text, std::string(5000, 'x'));
  std::filesystem::create_directory(folder);
  CHECK(refusal(empty) == "it is empty");
  CHECK(refusal(text) == "the file is damaged or of a kind that is not known");
  CHECK(refusal(folder) == "it is no file, no folder of files and no pipe");
  CHECK(refusal(text + "/film.mp4") == "Not a directory");
  CHECK(refusal("nosuch://host/film") == "this FFmpeg does not know the protocol of this address");
  CHECK(refusal(text, -1, "nosuch") == "format 'nosuch' is not known to this FFmpeg");
}

TEST_CASE("a film without the right to read it is refused with that, and so is one in a closed folder") {
  const std::string folder = scratch("input-closed");
  std::filesystem::create_directory(folder);
  const std::string path = film("mine.mkv", "-c:v ffv1"), inside = folder + "/film.mkv";
  std::filesystem::copy(path, inside);
  REQUIRE(chmod(path.c_str(), 0) == 0);
  REQUIRE(chmod(folder.c_str(), 0) == 0);
  std::string alone, closed;
  {
    const Nobody nobody;
    alone = refusal(path);
    closed = refusal(inside);
  }
  REQUIRE(chmod(folder.c_str(), 0700) == 0);
  CHECK(alone == "Permission denied");
  CHECK(closed == "Permission denied");
}

TEST_CASE("sound is a stream like another: found, chosen and refused in the same words") {
  const std::string rich = rich_film(), mute = film("mute.mkv", "-c:v ffv1"), colon = scratch("input-a:b.m4a");
  make_by_ffmpeg("-f lavfi -i sine=duration=0.1 -c:a aac -f ipod", colon);
  CHECK(codec_of_sound(rich) == "aac");
  CHECK(codec_of_sound(rich, 1) == "aac");
  CHECK(codec_of_sound(colon) == "aac");
  CHECK(codec_of_sound(rich, 0) == "stream 0 is no sound");
  CHECK(codec_of_sound(mute) == "there is no sound in it, only video");
  CHECK(codec_of_sound("no/such.m4a") == "there is no such file");
}

TEST_CASE("a file with sound alone is refused, and says what it has") {
  const std::string path = scratch("input-sound.wav");
  make_by_ffmpeg("-f lavfi -i sine=duration=0.1", path);
  CHECK(refusal(path) == "there is no video in it, only sound (pcm_s16le)");
}

TEST_CASE("a stream is the best, or the one that is asked for, and the others are named") {
  const std::string path = rich_film();
  const Opened best(path), second(path, 2);
  CHECK(best.input.stream().index == 0);
  CHECK(best.input.stream().codecpar->width == 64);
  CHECK(second.input.stream().codecpar->width == 32);
  CHECK(best.input.others() == "sound (aac), subtitles, another video");
  CHECK(refusal(path, 1) == "stream 1 is no video");
  CHECK(refusal(path, 3) == "stream 3 is no video");
  CHECK(refusal(path, 9) == "stream 9 is not there: it has 4");
  CHECK(Opened(film("alone.mkv", "-c:v ffv1")).input.others().empty());
}

TEST_CASE("only the packets of the stream are read, to the end of the file") {
  const std::string path = rich_film();
  Opened best(path), second(path, 2);
  CHECK(packets_of(best.input) == 25);
  CHECK(packets_of(second.input) == 25);
  const Packet packet(av_packet_alloc());
  CHECK(best.input.read(packet.get()) == AVERROR_EOF);
}

TEST_CASE("the rate, the count and the length are those that the container says") {
  for (const char* name : {"said.mp4", "said.mkv", "said.avi", "said.ts"}) {
    const Opened opened(film(name, std::string(name) == "said.avi" ? "-c:v mpeg4" : "-c:v libx264 -bf 2"));
    INFO(std::string(name));
    const AVRational rate = opened.input.rate();
    CHECK(std::abs(av_q2d(rate) - 30000.0 / 1001) < 0.01);
    bool is_exact = false;
    const int64_t count = opened.input.picture_count(is_exact);
    CHECK(std::abs(count - 30) <= (is_exact ? 0 : 1));
    if (std::string(name) == "said.mp4") {
      CHECK(is_exact);
      CHECK(rate.num == 30000);
      CHECK(rate.den == 1001);
    }
    CHECK(std::abs(static_cast<double>(opened.input.duration_ns()) - 30 * 1001e9 / 30000) < 40e6);
    CHECK(!opened.input.is_live());
    CHECK(opened.input.kind() == InputKind::file);
  }
}

TEST_CASE("a stream that does not say its rate has none, and one that says nonsense has none either") {
  const std::string path = scratch("input-rate.y4m");
  put_bytes(path, "YUV4MPEG2 W2 H2 F5000:1 Ip C420jpeg\nFRAME\nabcdef");
  CHECK(Opened(path).input.rate().num == 0);
  bool is_exact = true;
  CHECK(Opened(path).input.picture_count(is_exact) == 0);
  CHECK(!is_exact);
}

TEST_CASE("pictures that are said to be larger than any film are refused before memory is asked for") {
  const std::string path = scratch("input-large.y4m");
  // The second is more than libavformat itself opens.
  const std::pair<const char*, const char*> sizes[] = {{"W16000 H12000", "16000 × 12000"},
                                                       {"W20000 H20000", "20000 × 20000"}};
  for (const auto& [said, words] : sizes) {
    put_bytes(path, "YUV4MPEG2 " + std::string(said) + " F25:1 Ip C420jpeg\nFRAME\n" + std::string(1000, 'x'));
    CHECK(refusal(path) ==
          "its pictures are said to be " + std::string(words) + ", more than the 134 million pixels that are read");
  }
}

TEST_CASE("the turn that makes pictures upright is that of the file's matrix") {
  constexpr int32_t kOne = 1 << 16, kRoot = 46341; // sin 45°
  struct Case {
    int32_t a, b, c, d; // (x, y) goes to (a·x + c·y, b·x + d·y)
    uint32_t turn;
    bool is_near;
  };
  const Case cases[] = {
      {kOne, 0, 0, kOne, MR_TURN_NONE, false},         {-kOne, 0, 0, kOne, MR_TURN_HORIZONTAL, false},
      {kOne, 0, 0, -kOne, MR_TURN_VERTICAL, false},    {-kOne, 0, 0, -kOne, MR_TURN_BOTH, false},
      {0, kOne, -kOne, 0, MR_TURN_ROTATE90, false}, // what was right is below
      {0, -kOne, kOne, 0, MR_TURN_ROTATE270, false},   {0, kOne, kOne, 0, MR_TURN_TRANSPOSE, false},
      {0, -kOne, -kOne, 0, MR_TURN_TRANSVERSE, false}, {kRoot, kRoot, -kRoot, kRoot, MR_TURN_NONE, true}};
  const std::string whole = bytes_of(film("upright.mp4", "-c:v libx264"));
  const size_t header = whole.find("tkhd");
  REQUIRE(header != std::string::npos);
  for (const Case& c : cases) {
    std::string bytes = whole;
    // From its name on: version and flags, five words of times and lengths, eight bytes reserved, four half words; then
    // the matrix by rows of three.
    const std::array<std::pair<size_t, int32_t>, 4> words = {{{0, c.a}, {1, c.b}, {3, c.c}, {4, c.d}}};
    for (const auto& [word, value] : words)
      for (size_t byte = 0; byte < 4; ++byte)
        bytes[header + 44 + word * 4 + byte] = static_cast<char>(static_cast<uint32_t>(value) >> (24 - 8 * byte));
    const std::string path = scratch("input-turned.mp4");
    put_bytes(path, bytes);
    INFO(c.a, " ", c.b, " ", c.c, " ", c.d);
    bool is_near = !c.is_near;
    CHECK(Opened(path).input.turn(is_near) == c.turn);
    CHECK(is_near == c.is_near);
  }
}

TEST_CASE("a seek goes to the key picture at or before a time, in a file and not in a pipe") {
  const std::string path = film("seek.mp4", "-c:v libx264 -bf 0 -g 10 -sc_threshold 0 -force_key_frames 0.5");
  Opened opened(path);
  const Packet packet(av_packet_alloc());
  REQUIRE(opened.input.seek(900'000'000));
  REQUIRE(opened.input.read(packet.get()) == 0);
  CHECK((packet->flags & AV_PKT_FLAG_KEY) != 0);
  CHECK(opened.input.nanoseconds(packet->pts) <= 900'000'000);
  CHECK(opened.input.nanoseconds(packet->pts) > 500'000'000);
  av_packet_unref(packet.get());
  REQUIRE(opened.input.seek(0));
  CHECK(packets_of(opened.input) == 30);
  CHECK(opened.input.start_ns() == 0);
}

TEST_CASE("an input that cannot be sought is at its beginning after the attempt, and gives every packet") {
  // Packets one after another: FFmpeg makes an index as it reads, and refuses what is before its first entry.
  const std::string path = film("unsought.m4v", "-c:v mpeg4 -f m4v");
  Opened whole(path), opened(path);
  const int all = packets_of(whole.input);
  REQUIRE(all > 10);
  REQUIRE(opened.input.seek(700'000'000));
  CHECK(!opened.input.seek(-10'000'000'000));
  CHECK(packets_of(opened.input) == all);
}

TEST_CASE("an interrupt ends an open of a pipe that nobody writes") {
  const std::string fifo = scratch("input-silent");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  Interrupt interrupt;
  Log log{[](uint32_t, const std::string&) {}};
  interrupt.ask();
  CHECK_THROWS_WITH_AS(Input({fifo, "", -1, 5}, interrupt, log), "it was interrupted", std::runtime_error);
}

} // namespace millrace::media
