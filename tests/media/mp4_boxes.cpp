// Films that were cut off: what the boxes of an MP4 say of it, and what video.file says.
#include "plugins/media/mp4_boxes.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/file_bytes.h"
#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

using testing::TableTest;

std::string box(const std::string& type, size_t content) {
  const auto bytes = static_cast<uint32_t>(8 + content);
  std::string head;
  for (int shift = 24; shift >= 0; shift -= 8) head += static_cast<char>(bytes >> shift);
  return head + type + std::string(content, 'x');
}

bool breaks_off(const std::string& bytes) {
  const std::string path = scratch("boxes.mp4");
  put_bytes(path, bytes);
  return breaks_off_in_a_box(path);
}

// A film of five fragments.
std::string fragmented() {
  const std::string path = scratch("boxes-film.mp4");
  make_by_ffmpeg(
      "-f lavfi -i testsrc2=size=64x48:rate=25:duration=2 -c:v libx264 -g 10 -bf 0 -movflags "
      "+frag_keyframe+empty_moov+default_base_moof",
      path);
  return bytes_of(path);
}

// The warnings of video.file about a film that it plays to its end.
std::string warnings_of(const std::string& film, const char* on_damage = "skip") {
  const std::string path = scratch("boxes-played.mp4");
  put_bytes(path, film);
  TableTest file(handler_type("video.file"), {{"path", path}, {"on_damage", on_damage}});
  REQUIRE(file.start() == MR_OK);
  for (int i = 0; i < 100; ++i) {
    const testing::Result result = file.tick();
    if (result.end()) break;
    if (!result.ok()) return result.error;
  }
  std::string all;
  for (const testing::LogLine& line : file.logs())
    if (line.level == MR_LOG_WARNING) all += line.sentence + "\n";
  return all;
}

} // namespace

TEST_CASE("a file of whole boxes does not break off, whatever stands after them") {
  const std::string whole = box("ftyp", 20) + box("moov", 100) + box("moof", 30) + box("mdat", 50);
  CHECK(!breaks_off(whole));
  CHECK(!breaks_off(whole + box("mfra", 10)));
  CHECK(!breaks_off(whole + box("free", 10) + "abc"));
  CHECK(!breaks_off(whole + std::string(40, 'z'))); // no box: what a program has appended
  CHECK(!breaks_off(whole + std::string(4, '\0') + "mdat" + std::string(9, 'x'))); // to the end of the file
  CHECK(!breaks_off(""));
  CHECK(!breaks_off("text"));
  CHECK(!breaks_off_in_a_box("no/such.mp4"));
}

TEST_CASE("a file breaks off within a box of pictures or of their index, and after the head of a fragment") {
  const std::string begin = box("ftyp", 20) + box("moov", 100), fragment = box("moof", 30) + box("mdat", 50);
  for (size_t missing : {1, 20, 49, 50}) CHECK(breaks_off(begin + fragment.substr(0, fragment.size() - missing)));
  CHECK(breaks_off(begin + fragment + fragment.substr(0, 20)));
  CHECK(breaks_off(begin + box("moof", 30)));
  CHECK(breaks_off(begin + box("moof", 30) + box("free", 4)));
  CHECK(breaks_off(begin.substr(0, 60)));
  const std::string long_head = std::string("\0\0\0\1mdat\0\0\0\0\0\0\1\0", 16);
  CHECK(breaks_off(begin + long_head + std::string(239, 'x')));
  CHECK(!breaks_off(begin + long_head + std::string(240, 'x')));
}

TEST_CASE("a fragmented film that was cut off is played, and says so wherever in a fragment it was cut") {
  const std::string whole = fragmented();
  CHECK(warnings_of(whole) == "");
  const size_t last = whole.rfind("moof") - 4, pictures = whole.rfind("mdat") - 4, index = whole.rfind("mfra") - 4;
  REQUIRE(last < pictures);
  REQUIRE(pictures < index);
  for (const size_t end : {last + 20, pictures, pictures + 30, index - 1}) {
    INFO(end);
    const std::string said = warnings_of(whole.substr(0, end));
    CHECK(said.find("breaks off after") != std::string::npos);
    CHECK(warnings_of(whole.substr(0, end), "fail").find("breaks off after") != std::string::npos);
  }
}

} // namespace millrace::media
