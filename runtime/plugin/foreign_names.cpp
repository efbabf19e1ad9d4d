// The table of foreign names. GStreamer's are those of its plugin documentation
// (https://gstreamer.freedesktop.org/documentation/plugins_doc.html), ffmpeg's those of its filters
// (https://ffmpeg.org/ffmpeg-filters.html). Names that lead to a type by themselves, such as crop, are left out.
#include "plugin/foreign_names.h"

#include <algorithm>
#include <array>

namespace millrace::plugin {

namespace {

constexpr std::string_view kGst = "GStreamer's", kFilter = "ffmpeg's";
constexpr std::string_view kDecodes = "video.file decodes by itself";
constexpr std::string_view kEncodes = "video.writer encodes and writes the container: codec=, container=";
constexpr std::string_view kConverts = "the plan converts formats by itself";
constexpr std::string_view kQueues =
    "handlers of different speed run on threads of their own; a queue is an edge's policy";
constexpr std::string_view kShares = "an output may have any number of readers: name= and a reference such as `name.`";

constexpr std::array<ForeignName, 73> kNames = {{
    {"videotestsrc", kGst, "test.pattern", ""},
    {"filesrc", kGst, "video.file", kDecodes},
    {"uridecodebin", kGst, "video.file", ""},
    {"uridecodebin3", kGst, "video.file", ""},
    {"urisourcebin", kGst, "video.file", ""},
    {"playbin", kGst, "video.file", ""},
    {"playbin3", kGst, "video.file", ""},
    {"rtspsrc", kGst, "video.file", "path=rtsp://…"},
    {"souphttpsrc", kGst, "video.file", "path=http://…"},
    {"curlhttpsrc", kGst, "video.file", "path=http://…"},
    {"udpsrc", kGst, "video.file", "path=udp://…"},
    {"rtmpsrc", kGst, "video.file", "path=rtmp://…"},
    {"srtsrc", kGst, "video.file", "path=srt://…"},
    {"fdsrc", kGst, "video.file", "path=- reads standard input"},
    {"multifilesrc", kGst, "image.file", ""},
    {"imagefreeze", kGst, "image.file", "loop=true"},
    {"v4l2src", kGst, "video.camera", ""},
    {"autovideosrc", kGst, "video.camera", ""},
    {"fakesrc", kGst, "null.source", ""},
    {"fakesink", kGst, "null.sink", ""},
    {"fakevideosink", kGst, "null.sink", ""},
    {"autovideosink", kGst, "view.window", ""},
    {"xvimagesink", kGst, "view.window", ""},
    {"ximagesink", kGst, "view.window", ""},
    {"glimagesink", kGst, "view.window", ""},
    {"gtksink", kGst, "view.window", ""},
    {"waylandsink", kGst, "view.window", ""},
    {"fpsdisplaysink", kGst, "stats.fps", ""},
    {"filesink", kGst, "video.writer", kEncodes},
    {"splitmuxsink", kGst, "video.writer", "segment=10min"},
    {"rtmpsink", kGst, "video.writer", "path=rtmp://…"},
    {"multifilesink", kGst, "image.writer", ""},
    {"videoscale", kGst, "image.resize", ""},
    {"videoconvertscale", kGst, "image.resize", kConverts},
    {"videorate", kGst, "flow.rate", ""},
    {"videoflip", kGst, "image.flip", ""},
    {"videocrop", kGst, "image.crop", ""},
    {"videobalance", kGst, "image.adjust", ""},
    {"gamma", kGst, "image.adjust", ""},
    {"gaussianblur", kGst, "image.blur", ""},
    {"compositor", kGst, "image.composite", ""},
    {"videomixer", kGst, "image.composite", ""},
    {"textoverlay", kGst, "draw.text", ""},
    {"timeoverlay", kGst, "draw.text", ""},
    {"clockoverlay", kGst, "draw.text", ""},
    {"valve", kGst, "flow.gate", ""},
    {"input-selector", kGst, "flow.switch", ""},
    {"identity", kGst, "flow.pass", ""},
    {"decodebin", kGst, "", kDecodes},
    {"decodebin3", kGst, "", kDecodes},
    {"qtdemux", kGst, "", kDecodes},
    {"matroskademux", kGst, "", kDecodes},
    {"h264parse", kGst, "", kDecodes},
    {"avdec_h264", kGst, "", kDecodes},
    {"x264enc", kGst, "", kEncodes},
    {"x265enc", kGst, "", kEncodes},
    {"mp4mux", kGst, "", kEncodes},
    {"matroskamux", kGst, "", kEncodes},
    {"videoconvert", kGst, "", kConverts},
    {"capsfilter", kGst, "", kConverts},
    {"queue", kGst, "", kQueues},
    {"queue2", kGst, "", kQueues},
    {"tee", kGst, "", kShares},
    {"testsrc", kFilter, "test.pattern", ""},
    {"smptebars", kFilter, "test.pattern", ""},
    {"scale", kFilter, "image.resize", ""},
    {"gblur", kFilter, "image.blur", ""},
    {"hflip", kFilter, "image.flip", ""},
    {"vflip", kFilter, "image.flip", "mode=vertical"},
    {"overlay", kFilter, "image.composite", ""},
    {"hstack", kFilter, "image.composite", "layout=row"},
    {"drawtext", kFilter, "draw.text", ""},
    {"format", kFilter, "image.convert", "to=…"},
}};

} // namespace

const ForeignName* find_foreign_name(std::string_view name) {
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [&](const ForeignName& n) { return n.name == name; });
  return found == kNames.end() ? nullptr : found;
}

} // namespace millrace::plugin
