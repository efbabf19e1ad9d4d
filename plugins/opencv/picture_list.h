// Which files a path means: one, or all that a pattern such as frames/*.png or frames/%06d.png matches.
#pragma once

#include <string>
#include <vector>

namespace millrace::opencv {

// The regular files of `path`. A file of exactly this name comes before its meaning as a pattern: with %d or %06d in
// the file's name the numbers that are there, from the lowest on, whatever gaps there are; else `*`, `?` and `[…]`, in
// any part of the path, in natural order. Throws std::runtime_error, naming the path, where there is none, and where
// there are more than a million.
std::vector<std::string> pictures_of(const std::string& path);

} // namespace millrace::opencv
