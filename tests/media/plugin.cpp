// Loads the plugin and checks its table.
#include "tests/media/plugin.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

#include "tests/plugin_table.h"

namespace millrace::media {

namespace {

const mr_plugin& loaded() {
  static const mr_plugin& plugin = load_plugin("media");
  return plugin;
}

} // namespace

const mr_handler_type& handler_type(const std::string& type) { return type_of(loaded(), type); }

std::string scratch(const std::string& name) {
  const std::filesystem::path folder = MILLRACE_BINARY_DIR "/test_media_files";
  std::filesystem::create_directories(folder);
  std::filesystem::remove_all(folder / name);
  return (folder / name).string();
}

void make_by_ffmpeg(const std::string& arguments, const std::string& path) {
  const std::string command = "ffmpeg -nostdin -loglevel error -y " + arguments + " '" + path + "'";
  INFO(command);
  REQUIRE(std::system(command.c_str()) == 0);
}

TEST_CASE(
    "the plugin brings its handlers, each with a sentence, and a manual that ends in a line to paste that names it") {
  const mr_plugin& plugin = loaded();
  CHECK(plugin.abi_version == MR_ABI_VERSION);
  CHECK(std::string_view(plugin.name) == "media");
  for (const std::string& type : types_of(plugin)) {
    INFO(type);
    CHECK(!std::string_view(handler_type(type).summary).empty());
    CHECK(manual_line(handler_type(type)).find(type) != std::string::npos);
  }
  CHECK(types_of(plugin) == std::set<std::string>{"video.file", "video.writer"});
}

} // namespace millrace::media
