// The line at the end of each manual, and an example, run by the command as a person would.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/opencv/plugin.h"

namespace millrace::opencv {
namespace {

std::string snippet_of(const std::string& type) {
  const std::string manual = handler_type(type).manual;
  const size_t begin = manual.rfind("\n\n    ") + 6;
  return manual.substr(begin, manual.size() - 1 - begin);
}

// A folder that looks like the tree's root to a pipeline, and whose out/ is its own.
std::string working_folder(const std::string& name) {
  const std::string folder = scratch(name);
  std::filesystem::create_directories(folder);
  for (const char* shared : {"media", "examples"})
    std::filesystem::create_directory_symlink(MILLRACE_SOURCE_DIR "/" + std::string(shared), folder + "/" + shared);
  return folder;
}

} // namespace

TEST_CASE("the line at the end of each manual runs") {
  const std::string folder = working_folder("snippets");
  // Not video.camera: no machine of the tests has one.
  for (const char* type : {"detect.faces", "detect.people", "image.file", "image.writer", "track.boxes", "video.file",
                           "video.writer", "view.window"}) {
    const std::string command = "cd '" + folder + "' && DISPLAY= '" MILLRACE_BINARY_DIR "/millrace' run '" +
                                snippet_of(type) + "' --ticks 2 --quiet </dev/null >log 2>&1";
    INFO(command);
    CHECK(std::system(command.c_str()) == 0);
  }
  CHECK(std::filesystem::file_size(folder + "/out/copy.mp4") > 0);
  CHECK(std::filesystem::file_size(folder + "/out/sheet.png") > 0);
}

TEST_CASE("the example that finds faces leaves a video and a contact sheet") {
  const std::string folder = working_folder("faces");
  const std::string command = "cd '" + folder + "' && '" MILLRACE_BINARY_DIR "/millrace' run " +
                              "examples/pipelines/faces.yaml --ticks 25 --quiet </dev/null >log 2>&1";
  INFO(command);
  CHECK(std::system(command.c_str()) == 0);
  CHECK(std::filesystem::file_size(folder + "/out/faces.mp4") > 0);
  CHECK(std::filesystem::file_size(folder + "/out/faces.png") > 0);
}

} // namespace millrace::opencv
