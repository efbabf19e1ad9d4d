// Loads the plugin and checks its table.
#include "tests/opencv/plugin.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string_view>

#include "tests/plugin_table.h"

namespace millrace::opencv {

namespace {

const mr_plugin& loaded() {
  static const mr_plugin& plugin = load_plugin("opencv");
  return plugin;
}

} // namespace

const mr_handler_type& handler_type(const std::string& type) { return type_of(loaded(), type); }

std::string scratch(const std::string& name) {
  const std::filesystem::path folder = MILLRACE_BINARY_DIR "/test_opencv_files";
  std::filesystem::create_directories(folder);
  std::filesystem::remove_all(folder / name);
  return (folder / name).string();
}

TEST_CASE(
    "the plugin brings its handlers, each with a sentence, and a manual that ends in a line to paste that names it") {
  const mr_plugin& plugin = loaded();
  CHECK(plugin.abi_version == MR_ABI_VERSION);
  CHECK(std::string_view(plugin.name) == "opencv");
  for (const std::string& type : types_of(plugin)) {
    INFO(type);
    CHECK(!std::string_view(handler_type(type).summary).empty());
    CHECK(manual_line(handler_type(type)).find(type) != std::string::npos);
  }
  CHECK(types_of(plugin) == std::set<std::string>{"detect.faces", "detect.motion", "detect.people", "image.file",
                                                  "image.writer", "track.boxes", "video.camera", "view.window"});
}

} // namespace millrace::opencv
