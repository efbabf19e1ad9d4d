// The line at the end of each manual, and an example, run by the command as a person would.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/opencv/plugin.h"
#include "tests/plugin_table.h"

namespace millrace::opencv {
namespace {

// A folder that looks like the tree's root to a pipeline, and whose out/ is its own.
std::string working_folder(const std::string& name) {
  const std::string folder = scratch(name);
  std::filesystem::create_directories(folder);
  for (const char* shared : {"media", "examples"})
    std::filesystem::create_directory_symlink(MILLRACE_SOURCE_DIR "/" + std::string(shared), folder + "/" + shared);
  return folder;
}

// Most of the lines play a film, which takes the other plugin.
bool plays_films() { return std::filesystem::exists(MILLRACE_BINARY_DIR "/plugins/media.so"); }

} // namespace

TEST_CASE("the line at the end of each manual runs") {
  const std::string folder = working_folder("snippets");
  // Not video.camera: no machine of the tests has one.
  for (const char* type :
       {"detect.faces", "detect.people", "image.file", "image.writer", "track.boxes", "view.window"}) {
    const std::string line = manual_line(handler_type(type));
    if (!plays_films() && line.find("video.file") != std::string::npos) continue;
    const std::string command = "cd '" + folder + "' && DISPLAY= '" MILLRACE_BINARY_DIR "/millrace' run '" + line +
                                "' --ticks 2 --quiet </dev/null >log 2>&1";
    INFO(command);
    CHECK(std::system(command.c_str()) == 0);
  }
  if (plays_films()) CHECK(std::filesystem::file_size(folder + "/out/sheet.png") > 0);
}

TEST_CASE("the example that finds faces leaves a video and a contact sheet" * doctest::skip(!plays_films())) {
  // The paths in the file are relative to it, so that it needs a folder of its own beside the films.
  const std::string folder = scratch("faces");
  std::filesystem::create_directories(folder + "/examples/pipelines");
  std::filesystem::create_directory_symlink(MILLRACE_SOURCE_DIR "/media", folder + "/media");
  std::filesystem::copy(MILLRACE_SOURCE_DIR "/examples/pipelines/faces.yaml", folder + "/examples/pipelines");
  const std::string command = "cd '" + folder + "' && '" MILLRACE_BINARY_DIR "/millrace' run " +
                              "examples/pipelines/faces.yaml --ticks 25 --quiet </dev/null >log 2>&1";
  INFO(command);
  CHECK(std::system(command.c_str()) == 0);
  CHECK(std::filesystem::file_size(folder + "/out/faces.mp4") > 0);
  CHECK(std::filesystem::file_size(folder + "/out/faces.png") > 0);
}

} // namespace millrace::opencv
