// The files of a folder of segments, in the order in which they were recorded.
#pragma once

#include <string>
#include <vector>

namespace millrace::media {

// Files with the most common extension, in natural order (take-2.mp4 before take-10.mp4); hidden files and what is
// being written (NAME.part.EXT) are left out. Throws std::runtime_error where there is none, or a million.
std::vector<std::string> segments_in(const std::string& folder);

} // namespace millrace::media
