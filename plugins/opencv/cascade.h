// Finds the file of a trained cascade by its name.
#pragma once

#include <string>
#include <vector>

namespace millrace::opencv {

// Where distributions and OpenCV's own installer put cascades, the likeliest first.
std::vector<std::string> cascade_folders();

// The file that `cascade` means: a path, or a name such as haarcascade_frontalface_alt in one of `folders`. The folder
// of a pipeline file may stand before a name, as before every relative path: without `.xml` at its end it is still one.
// Throws std::runtime_error that says where it looked and which package has it.
std::string find_cascade(const std::string& cascade, const std::vector<std::string>& folders);

} // namespace millrace::opencv
