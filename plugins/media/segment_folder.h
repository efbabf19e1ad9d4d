// Lists the files of a folder of segments in the order in which they were recorded.
#pragma once

#include <string>
#include <vector>

namespace millrace::media {

// The files with the most common extension, in natural order (take-2.mp4 before take-10.mp4). Hidden files and part
// files (NAME.part.EXT) are left out. Throws std::runtime_error if there is no file, or if there are more than a
// million.
std::vector<std::string> segments_in(const std::string& folder);

} // namespace millrace::media
