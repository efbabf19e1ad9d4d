// Lists the files that a path means: one, or all that a pattern such as frames/*.png or frames/%06d.png matches.
#pragma once

#include <string>
#include <vector>

namespace millrace::opencv {

// The regular files of `path`. If a file has exactly this name, it is the only one. Otherwise `path` is a pattern. With
// %d or %06d in the file's name it matches the files with such numbers, in rising order; numbers may be missing. Else
// it is matched by `*`, `?` and `[…]`, in any part of the path, in natural order. Throws std::runtime_error, naming the
// path, if there is no file, or if there are more than a million.
std::vector<std::string> pictures_of(const std::string& path);

} // namespace millrace::opencv
