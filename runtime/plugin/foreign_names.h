// Names in other frameworks, for which millrace has another name or needs no handler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::plugin {

struct ForeignName {
  std::string_view name;   // an element or filter
  std::string_view origin; // the framework, as a possessive: "GStreamer's"
  std::string_view type;   // the handler type that does it here; "" if none is needed
  std::string_view words;  // how it is done here, if not by a type alone
  bool is_model = false;   // it may have a version: "yolov8" is "yolo"
};

// By the whole name, its last part or its first: "queue", "detect.yolov8", "onnx.infer". Null if it is in no framework
// of the table.
const ForeignName* find_foreign_name(std::string_view name);

// The parameters here that may stand for another program's, such as width and height for "size"; empty for others.
// "path" stands for each parameter that takes a path.
std::vector<std::string_view> parameters_for(std::string_view foreign);

} // namespace millrace::plugin
