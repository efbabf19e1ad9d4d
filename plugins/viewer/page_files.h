// The files of the viewer's page, which are part of the plugin (cmake/page_files.cmake writes them from page/).
#pragma once

#include <span>
#include <string_view>

namespace millrace::viewer {

struct PageFile {
  std::string_view name, bytes;
};
std::span<const PageFile> page_files();

} // namespace millrace::viewer
