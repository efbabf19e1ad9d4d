// The tags of a list that say where its pictures are, and the addresses that a list names.
#include "plugins/media/hls_list.h"

#include <doctest/doctest.h>

#include <string>

namespace millrace::media {

TEST_CASE("a list says its segments, their durations and its end") {
  const HlsList list = read_hls_list(
      "#EXTM3U\r\n#EXT-X-VERSION:3\r\n#EXT-X-TARGETDURATION:2\r\n#EXT-X-MEDIA-SEQUENCE:7\r\n"
      "#EXTINF:2,\r\na.ts\r\n\r\n#EXTINF:1.25,a title\r\nfolder/b.ts?token=1\r\n#EXT-X-ENDLIST\r\n");
  REQUIRE(list.segments.size() == 2);
  CHECK(list.segments[0].name == "a.ts");
  CHECK(list.segments[0].duration_ns == 2'000'000'000);
  CHECK(list.segments[1].name == "folder/b.ts?token=1");
  CHECK(list.segments[1].duration_ns == 1'250'000'000);
  CHECK(list.target_ns == 2'000'000'000);
  CHECK(list.first == 7);
  CHECK(list.end() == 9);
  CHECK(list.duration_ns() == 3'250'000'000);
  CHECK(list.is_finished);
  CHECK_FALSE(list.is_master);
}

TEST_CASE("a list without an end is live, and one of other lists has no segments") {
  CHECK_FALSE(read_hls_list("#EXTM3U\n#EXTINF:1,\na.ts").is_finished);
  const HlsList master = read_hls_list("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n");
  CHECK(master.is_master);
  CHECK(master.segments.empty());
}

TEST_CASE("a break holds for one segment, key and header until others are said") {
  const HlsList list = read_hls_list(
      "#EXTM3U\n#EXT-X-DISCONTINUITY-SEQUENCE:3\n#EXT-X-MAP:URI=\"init.mp4\",BYTERANGE=\"700@20\"\n"
      "#EXT-X-KEY:METHOD=AES-128,IV=0x00,URI=\"k,ey.bin\"\n#EXTINF:1,\na\n#EXT-X-DISCONTINUITY\n#EXTINF:1,\nb\n"
      "#EXT-X-KEY:METHOD=NONE\n#EXTINF:1,\nc\n");
  REQUIRE(list.segments.size() == 3);
  const auto &first = list.segments[0], &second = list.segments[1], &third = list.segments[2];
  CHECK_FALSE(first.is_discontinuous);
  CHECK(second.is_discontinuous);
  CHECK_FALSE(third.is_discontinuous);
  CHECK(first.key == "k,ey.bin");
  CHECK(second.key == "k,ey.bin");
  CHECK(third.key.empty());
  CHECK(third.map == "init.mp4");
  CHECK(third.map_offset == 20);
  CHECK(third.map_size == 700);
}

TEST_CASE("a range without a place goes on where the last one ended") {
  const HlsList list = read_hls_list(
      "#EXTM3U\n#EXTINF:1,\n#EXT-X-BYTERANGE:100@50\na\n#EXTINF:1,\n#EXT-X-BYTERANGE:30\na\n#EXTINF:1,\nb\n"
      "#EXTINF:1,\n#EXT-X-BYTERANGE:8\nc\n");
  REQUIRE(list.segments.size() == 4);
  CHECK(list.segments[0].offset == 50);
  CHECK(list.segments[1].offset == 150);
  CHECK(list.segments[1].size == 30);
  CHECK(list.segments[2].size == 0);
  CHECK(list.segments[3].offset == 0);
}

TEST_CASE("a part of a list is written with its key, its header and its ranges") {
  const HlsList list = read_hls_list(
      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:3\n#EXT-X-MAP:URI=\"a.mp4\"\n#EXTINF:1.5,\n"
      "#EXT-X-BYTERANGE:10@0\na\n#EXTINF:2,\n#EXT-X-BYTERANGE:20\na\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"b.mp4\"\n"
      "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:1,\nb\n#EXT-X-ENDLIST\n");
  CHECK(list.section_end(3) == 5);
  CHECK(list.section_end(4) == 5);
  CHECK(list.section_end(5) == 6);
  CHECK(list.section_end(0) == 5);
  const HlsList part = read_hls_list(write_hls_list(list, 4, 6, false));
  REQUIRE(part.segments.size() == 2);
  CHECK_FALSE(part.is_finished);
  CHECK(part.first == 4);
  CHECK(part.target_ns == list.target_ns);
  CHECK(part.segments[0].offset == 10);
  CHECK(part.segments[0].size == 20);
  CHECK(part.segments[0].map == "a.mp4");
  CHECK(part.segments[0].key.empty());
  CHECK(part.segments[1].map == "b.mp4");
  CHECK(part.segments[1].key == "k");
  CHECK(part.segments[1].duration_ns == 1'000'000'000);
  CHECK(read_hls_list(write_hls_list(list, 3, 4, true)).segments[0].duration_ns == 1'500'000'000);
  CHECK(write_hls_list(list, 3, 5, true).ends_with("#EXT-X-ENDLIST\n"));
}

TEST_CASE("numbers that no list has are bounded") {
  const HlsList list = read_hls_list(
      "#EXTM3U\n#EXT-X-TARGETDURATION:nan\n#EXT-X-MEDIA-SEQUENCE:1e300\n#EXTINF:-5,\na\n#EXTINF:1e300,\n"
      "#EXT-X-BYTERANGE:-1@x\nb\n#EXT-X-MAP:URI\n#EXT-X-KEY:\n");
  REQUIRE(list.segments.size() == 2);
  CHECK(list.target_ns == 0);
  CHECK(list.first > 0);
  CHECK(list.segments[0].duration_ns == 0);
  CHECK(list.segments[1].duration_ns == 1'000'000'000'000'000);
  CHECK(list.segments[1].size == 0);
}

TEST_CASE("a name in a list becomes the address that FFmpeg opens") {
  const std::string list = "http://host:80/a/b/x.m3u8?token=a/b";
  CHECK(whole_address(list, "s.ts?t=1") == "http://host:80/a/b/s.ts?t=1");
  CHECK(whole_address(list, "./s.ts") == "http://host:80/a/b/s.ts");
  CHECK(whole_address(list, "../c/s.ts") == "http://host:80/a/c/s.ts");
  CHECK(whole_address(list, "../../../s.ts") == "http://host:80/../s.ts");
  CHECK(whole_address(list, "/s.ts") == "http://host:80/s.ts");
  CHECK(whole_address(list, "//other/s.ts") == "http://other/s.ts");
  CHECK(whole_address(list, "https://other/s.ts") == "https://other/s.ts");
  CHECK(whole_address("http://host", "s.ts") == "http://host/s.ts");
  CHECK(whole_address("file:x.m3u8", "s.ts") == "file:s.ts");
  CHECK(whole_address("file:/films/x.m3u8", "d/s.ts") == "file:/films/d/s.ts");
  CHECK(whole_address("file:/films/x.m3u8", "/s.ts") == "file:/s.ts");
}

} // namespace millrace::media
