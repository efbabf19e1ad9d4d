// Which files a path means: one, or all that a pattern such as frames/*.png matches.
#pragma once

#include <string>
#include <vector>

namespace millrace::opencv {

// The regular files of `path`, in natural order of their paths. A file of exactly this name comes before its meaning as
// a pattern (`*`, `?` and `[…]`, in any part of the path). Throws std::runtime_error, naming the path, where there is
// none, and where there are more than a million.
std::vector<std::string> pictures_of(const std::string& path);

} // namespace millrace::opencv
