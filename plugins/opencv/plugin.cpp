// The plugin's one exported symbol, and quiet: what OpenCV and FFmpeg log goes nowhere.
#include <cstdlib>

#include <opencv2/core/utils/logger.hpp>

#include "millrace/handler.h"

namespace {

// A library never prints; what goes wrong comes back as the sentence of a failure. FFmpeg's level is read from the
// environment once, when the first video is opened; a person who set it keeps it. Plugins are loaded by one thread,
// before any handler runs, so the environment is not being read meanwhile.
struct Silence {
  Silence() {
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    ::setenv("OPENCV_FFMPEG_LOGLEVEL", "-8", 0); // AV_LOG_QUIET
  }
};
const Silence silence;

} // namespace

MILLRACE_PLUGIN("opencv", "0.1.0")
