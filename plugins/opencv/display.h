// Whether there is a display that windows can be shown on.
#pragma once

#include <string>

namespace millrace::opencv {

// "" where a window can be opened, else why not. Asked before OpenCV opens one, because the toolkit behind it (Qt) ends
// the whole process where it finds no display.
std::string why_no_display();

} // namespace millrace::opencv
