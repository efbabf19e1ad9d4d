// The plugin's one exported symbol, and quiet: what OpenCV, FFmpeg and Qt log goes nowhere.
#include <cstdlib>

#include <opencv2/core/utils/logger.hpp>

#include "millrace/handler.h"

namespace {

// A library never prints; what goes wrong comes back as the sentence of a failure. The levels of FFmpeg and Qt are read
// from the environment once, when the first video or window is opened; a person who set them keeps them. Plugins are
// loaded by one thread, before any handler runs, so the environment is not being read meanwhile.
struct Silence {
  Silence() {
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    ::setenv("OPENCV_FFMPEG_LOGLEVEL", "-8", 0); // AV_LOG_QUIET
    // Qt, behind OpenCV's windows, complains that it does not run on the first thread; here it needs only one thread.
    ::setenv("QT_LOGGING_RULES", "*.debug=false;*.info=false;*.warning=false", 0);
  }
};
const Silence silence;

} // namespace

MILLRACE_PLUGIN("opencv", "0.1.0")
