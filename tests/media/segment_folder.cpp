// Segment files of a folder, in their order.
#include "plugins/media/segment_folder.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/file_bytes.h"
#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

std::string folder_with(std::initializer_list<const char*> names) {
  const std::string folder = scratch("segment-folder");
  std::filesystem::create_directories(folder);
  for (const char* name : names) put_bytes(folder + "/" + name, "x");
  return folder;
}

// The names that are found, without the folder.
std::vector<std::string> found_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& path : segments_in(folder)) {
    CHECK(std::filesystem::path(path).parent_path() == folder);
    names.push_back(std::filesystem::path(path).filename().string());
  }
  return names;
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("segments come in the order of their numbers, not of their letters") {
  CHECK(found_in(folder_with({"take-10.mp4", "take-2.mp4", "take-1.mp4", "take-100.mp4"})) ==
        Names{"take-1.mp4", "take-2.mp4", "take-10.mp4", "take-100.mp4"});
  CHECK(found_in(folder_with({"b.ts", "a-3.ts", "a-020.ts", "a-1.ts"})) ==
        Names{"a-020.ts", "a-1.ts", "a-3.ts", "b.ts"});
}

TEST_CASE("the most common extension chooses, so that lists and notes beside the films do no harm") {
  CHECK(found_in(folder_with({"1.mp4", "2.mp4", "list.txt", "notes.md", "cover.jpg"})) == Names{"1.mp4", "2.mp4"});
}

TEST_CASE("what is hidden, being written, a folder or without an extension is no segment") {
  const std::string folder =
      folder_with({"1.mp4", ".2.mp4", "3.part.mp4", "3.part-1.mp4", "README", "LICENSE", "AUTHORS"});
  std::filesystem::create_directory(folder + "/4.mp4");
  CHECK(found_in(folder) == Names{"1.mp4"});
}

TEST_CASE("a folder without segments is refused, and one that is not there by the system's words") {
  CHECK_THROWS_WITH_AS(segments_in(folder_with({})), "the folder holds no files", std::runtime_error);
  CHECK_THROWS_WITH_AS(segments_in(folder_with({".hidden.mp4", "a.part.mp4"})), "the folder holds no files",
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(segments_in("no/such/folder"), "No such file or directory", std::runtime_error);
}

} // namespace millrace::media
