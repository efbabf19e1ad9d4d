// The line at the end of each manual, run by the command as a person would.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/media/plugin.h"
#include "tests/plugin_table.h"

namespace millrace::media {

TEST_CASE("the line at the end of each manual runs") {
  const std::string folder = scratch("snippets");
  std::filesystem::create_directories(folder);
  std::filesystem::create_directory_symlink(MILLRACE_SOURCE_DIR "/media", folder + "/media");
  for (const char* type : {"video.file", "video.writer"}) {
    const std::string command = "cd '" + folder + "' && '" MILLRACE_BINARY_DIR "/millrace' run '" +
                                manual_line(handler_type(type)) + "' --ticks 2 --quiet </dev/null >log 2>&1";
    INFO(command);
    CHECK(std::system(command.c_str()) == 0);
  }
  CHECK(std::filesystem::file_size(folder + "/out/copy.mp4") > 0);
}

} // namespace millrace::media
