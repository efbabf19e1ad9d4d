// A folder of its own for one test.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace millrace::test {

// Removed with all that is in it. Its path is short, because a socket's has to be.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "mr-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path path;
};

} // namespace millrace::test
