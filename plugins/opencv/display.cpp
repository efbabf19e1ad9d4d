// Asks the X server for a display; see display.h.
#include "plugins/opencv/display.h"

#include <dlfcn.h>

#include <cstdlib>

namespace millrace::opencv {

std::string why_no_display() {
  const char* name = std::getenv("DISPLAY");
  if (!name || !*name) return "there is no display: DISPLAY is not set";
  // Loaded by name, so that the plugin needs no X11 package. If OpenCV can show windows, the library is installed.
  void* library = dlopen("libX11.so.6", RTLD_NOW | RTLD_LOCAL);
  if (!library) return "there is no display: libX11.so.6 is not installed";
  const auto open = reinterpret_cast<void* (*)(const char*)>(dlsym(library, "XOpenDisplay"));
  const auto close = reinterpret_cast<int (*)(void*)>(dlsym(library, "XCloseDisplay"));
  void* display = open && close ? open(nullptr) : nullptr;
  if (display) close(display);
  dlclose(library);
  return display ? "" : "the display '" + std::string(name) + "' (DISPLAY) does not answer, or refuses this user";
}

} // namespace millrace::opencv
