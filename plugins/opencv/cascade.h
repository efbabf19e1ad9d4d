// Finds the file of a trained cascade by its name.
#pragma once

#include <string>
#include <vector>

namespace millrace::opencv {

// The folders in which distributions and OpenCV's own installer put cascades, the likeliest first.
std::vector<std::string> cascade_folders();

// The file that `cascade` means: a path, or a name such as haarcascade_frontalface_alt in one of `folders`. A name may
// have a pipeline file's folder before it, as every relative path does; without `.xml` at its end it is still a name.
// Throws std::runtime_error that names the searched folders and the package that has cascades.
std::string find_cascade(const std::string& cascade, const std::vector<std::string>& folders);

} // namespace millrace::opencv
