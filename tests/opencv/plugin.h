// The OpenCV plugin as it is built, loaded for tests.
#pragma once

#include <string>

#include "millrace/testing.h"

namespace millrace::opencv {

// The table of a handler type of build/plugins/opencv.so; throws std::runtime_error where there is none.
const mr_handler_type& handler_type(const std::string& type);

// The path of a file in a folder of this test program's own; the file does not exist yet.
std::string scratch(const std::string& name);

} // namespace millrace::opencv
