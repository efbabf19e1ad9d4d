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

constexpr std::string_view kModel = "a model of other programs", kModels = "for models";
constexpr std::string_view kComputes = "it takes networks that are exported to .onnx or TorchScript";

constexpr std::array<ForeignName, 91> kNames = {{
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
    {"yolo", kModel, "model.run", kComputes, true},
    {"ssd", kModel, "model.run", kComputes, true},
    {"detr", kModel, "model.run", kComputes, true},
    {"mobilenet", kModel, "model.run", kComputes, true},
    {"onnx", kModels, "model.run", kComputes, true},
    {"onnxruntime", kModels, "model.run", kComputes, true},
    {"tensorrt", kModels, "model.run", kComputes, true},
    {"trt", kModels, "model.run", kComputes, true},
    {"torch", kModels, "model.run", kComputes, true},
    {"pytorch", kModels, "model.run", kComputes, true},
    {"tensorflow", kModels, "model.run", kComputes, true},
    {"tflite", kModels, "model.run", kComputes, true},
    {"openvino", kModels, "model.run", kComputes, true},
    {"ncnn", kModels, "model.run", kComputes, true},
    {"infer", kModels, "model.run", kComputes, true},
    {"inference", kModels, "model.run", kComputes, true},
    {"nvinfer", kModels, "model.run", kComputes, true},
    {"tritonclient", kModels, "model.run", kComputes, true},
}};

// Other programs' parameters. The first of ours that a handler has is meant; "width" brings "height" with it.
struct ForeignParam {
  std::string_view name;
  std::array<std::string_view, 2> ours;
};
constexpr std::array<ForeignParam, 34> kParams = {{
    {"size", {"width", "height"}},
    {"scale", {"width", "height"}},
    {"resolution", {"width", "height"}},
    {"dimensions", {"width", "height"}},
    {"video_size", {"width", "height"}},
    {"s", {"width", "height"}},
    {"w", {"width", ""}},
    {"h", {"height", ""}},
    {"file", {"path", ""}},
    {"filename", {"path", ""}},
    {"filepath", {"path", ""}},
    {"location", {"path", ""}},
    {"uri", {"path", ""}},
    {"url", {"path", ""}},
    {"src", {"path", ""}},
    {"source", {"path", ""}},
    {"output", {"path", ""}},
    {"dst", {"path", ""}},
    {"dest", {"path", ""}},
    {"input_file", {"path", ""}},
    {"fps", {"rate", "fps"}},
    {"framerate", {"rate", "fps"}},
    {"frame_rate", {"rate", "fps"}},
    {"rate", {"fps", ""}},
    {"r", {"rate", "fps"}},
    {"frames", {"count", ""}},
    {"num_buffers", {"count", ""}},
    {"num-buffers", {"count", ""}},
    {"nframes", {"count", ""}},
    {"n", {"count", ""}},
    {"radius", {"sigma", "thickness"}},
    {"blur", {"sigma", ""}},
    {"stddev", {"sigma", ""}},
    {"encoder", {"codec", ""}},
}};

} // namespace

namespace {

const ForeignName* find_exactly(std::string_view name) {
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [&](const ForeignName& n) { return n.name == name; });
  return found == kNames.end() ? nullptr : found;
}

// "yolov8n" is a version of "yolo". Only names of models have such.
const ForeignName* find_version(std::string_view name) {
  const auto* found = std::find_if(kNames.begin(), kNames.end(),
                                   [&](const ForeignName& n) { return n.is_model && name.starts_with(n.name); });
  return found == kNames.end() ? nullptr : found;
}

} // namespace

const ForeignName* find_foreign_name(std::string_view name) {
  if (const ForeignName* whole = find_exactly(name)) return whole;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return find_version(name);
  for (const std::string_view part : {name.substr(dot + 1), name.substr(0, dot)}) {
    const ForeignName* found = find_exactly(part);
    if (!found || !found->is_model) found = find_version(part);
    if (found) return found;
  }
  return nullptr;
}

std::vector<std::string_view> parameters_for(std::string_view foreign) {
  const auto* found =
      std::find_if(kParams.begin(), kParams.end(), [&](const ForeignParam& param) { return param.name == foreign; });
  if (found == kParams.end()) return {};
  std::vector<std::string_view> ours;
  for (const std::string_view one : found->ours)
    if (!one.empty()) ours.push_back(one);
  return ours;
}

} // namespace millrace::plugin
