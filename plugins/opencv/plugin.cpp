// Exports the plugin's one symbol and silences the logs of OpenCV, FFmpeg and Qt.
#include <cstdlib>

#include <opencv2/core/utils/logger.hpp>

#include "millrace/handler.h"

namespace {

// A library never prints: errors are returned as the sentence of a failure. FFmpeg and Qt read their log levels from
// the environment once, when the first video or window is opened; levels that a user has set stay. Plugins are loaded
// by one thread, before any handler runs, so no other thread reads the environment meanwhile.
struct Silence {
  Silence() {
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    ::setenv("OPENCV_FFMPEG_LOGLEVEL", "-8", 0); // AV_LOG_QUIET
    // OpenCV's windows use Qt, which complains that it does not run on the first thread. It needs only to run on one
    // thread.
    ::setenv("QT_LOGGING_RULES", "*.debug=false;*.info=false;*.warning=false", 0);
  }
};
const Silence silence;

} // namespace

MILLRACE_PLUGIN("opencv", "0.1.0")
