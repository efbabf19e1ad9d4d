// Finds out if there is a display for windows.
#pragma once

#include <string>

namespace millrace::opencv {

// "" if a window can be opened, else the reason why not. To be asked before OpenCV opens a window, because OpenCV's
// toolkit (Qt) ends the whole process if it finds no display.
std::string why_no_display();

} // namespace millrace::opencv
