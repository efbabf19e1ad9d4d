// Finds the file of a trained cascade by its name.
#pragma once

#include <string>
#include <vector>

namespace millrace::opencv {

// Where distributions and OpenCV's own installer put cascades, the likeliest first.
std::vector<std::string> cascade_folders();

// The file that `cascade` means: a path (it has a slash or ends in .xml), or a name such as haarcascade_frontalface_alt
// in one of `folders`. Throws std::runtime_error that says where it looked and which package has it.
std::string find_cascade(const std::string& cascade, const std::vector<std::string>& folders);

} // namespace millrace::opencv
