// Loads the plugin and checks its table.
#include "tests/opencv/plugin.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <stdexcept>
#include <string_view>

namespace millrace::opencv {

namespace {

const mr_plugin& loaded() {
  // Never unloaded: its handlers' destructors run until the program ends.
  static const mr_plugin* plugin = [] {
    void* library = dlopen(MILLRACE_BINARY_DIR "/plugins/opencv.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    const auto entry = reinterpret_cast<mr_plugin_entry>(dlsym(library, MR_PLUGIN_SYMBOL));
    if (!entry) throw std::runtime_error("the plugin exports no entry");
    return entry();
  }();
  return *plugin;
}

} // namespace

const mr_handler_type& handler_type(const std::string& type) {
  const mr_plugin& plugin = loaded();
  for (uint32_t i = 0; i < plugin.type_count; ++i)
    if (type == plugin.types[i]->type) return *plugin.types[i];
  throw std::runtime_error("the plugin has no " + type);
}

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
  std::set<std::string> types;
  for (uint32_t i = 0; i < plugin.type_count; ++i) {
    const mr_handler_type& type = *plugin.types[i];
    types.insert(type.type);
    CHECK(!std::string_view(type.summary).empty());
    const std::string_view manual = type.manual;
    const size_t snippet = manual.rfind("\n\n    ");
    INFO(type.type);
    REQUIRE(snippet != std::string_view::npos);
    CHECK(manual.find(type.type, snippet) != std::string_view::npos);
    CHECK(manual.find('\n', snippet + 2) == manual.size() - 1);
  }
  CHECK(types == std::set<std::string>{"detect.faces", "detect.people", "image.file", "image.writer", "track.boxes",
                                       "video.camera", "video.file", "video.writer", "view.window"});
}

} // namespace millrace::opencv
