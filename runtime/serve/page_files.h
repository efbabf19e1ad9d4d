// The files of the page, which CMake puts into the program (cmake/page_files.cmake).
#pragma once

#include <span>
#include <string_view>

namespace millrace::serve {

struct PageFile {
  std::string_view name; // "main.js"
  std::string_view bytes;
};

std::span<const PageFile> page_files();
// "text/javascript; charset=utf-8" for main.js.
std::string_view content_type(std::string_view name);

} // namespace millrace::serve
