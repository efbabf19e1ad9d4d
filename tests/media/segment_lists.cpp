// The lengths of segments that lists beside them tell.
#include "plugins/media/segment_lists.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plugins/media/segments.h"
#include "tests/file_bytes.h"
#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

namespace fs = std::filesystem;

using Lengths = std::map<std::string, int64_t>;

} // namespace

TEST_CASE("what the writer lists is read back, whatever the names are") {
  const std::string folder = scratch("segment-lists");
  fs::create_directories(folder);
  SegmentList list;
  list.begin(folder + "/all.txt", [](const std::string&, const std::string&) {});
  Lengths expected;
  std::vector<std::string> segments;
  for (const char* name :
       {"a-000.ts", "it's.ts", "''.ts", "12:30.ts", "-.ts", " lead.ts", "日本.ts", "back\\slash.ts"}) {
    segments.push_back(folder + "/" + name);
    put_bytes(segments.back(), "x");
    expected[segments.back()] = int64_t{1'000'040} * static_cast<int64_t>(segments.size()) * 1000;
    list.add(segments.back(), expected[segments.back()] / 1000);
  }
  list.end();
  CHECK(listed_lengths(folder, segments) == expected);
  // A segment that is younger than the list is of a later recording.
  fs::last_write_time(segments[0], fs::last_write_time(folder + "/all.txt") + std::chrono::seconds(1));
  expected.erase(segments[0]);
  CHECK(listed_lengths(folder, segments) == expected);
}

TEST_CASE("lines that are no lengths of files of the folder are left out") {
  const std::string folder = scratch("segment-lists-odd");
  fs::create_directories(folder + "/sub");
  const std::vector<std::string> segments = {folder + "/1.ts", folder + "/2.ts"};
  for (const std::string& segment : segments) put_bytes(segment, "ffconcat version 1.0\nfile '1.ts'\nduration 9\n");
  put_bytes(folder + "/sub/1.ts", "x");
  put_bytes(folder + "/notes.txt", "duration 3\n");
  put_bytes(folder + "/empty.txt", "");
  CHECK(listed_lengths(folder, segments).empty());
  put_bytes(
      folder + "/all.txt",
      "ffconcat version 1.0\nduration 5\nfile 'sub/1.ts'\nduration 6\nfile '/no/such/1.ts'\nduration 7\n"
      "file '3.ts'\nduration 8\nfile '2.ts'\nduration x\nfile '2.ts'\nduration -1\nfile '2.ts'\nduration 1e300\n");
  CHECK(listed_lengths(folder, segments).empty());
  put_bytes(folder + "/all.txt", "ffconcat version 1.0\nfile './2.ts'\nduration 2.5");
  CHECK(listed_lengths(folder, segments) == Lengths{{segments[1], 2'500'000'000}});
  CHECK(listed_lengths("no/such/folder", segments).empty());
}

} // namespace millrace::media
