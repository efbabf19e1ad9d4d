// A file name that a person gave in place of a handler or a pipeline: guesses the meaning from the name.
#pragma once

#include <string>

namespace millrace::graph {

enum class FileKind { other, video, picture };

// By the extension, in any case.
FileKind file_kind(const std::string& path);
// "video.file path=a.mp4", "image.file path=a.png".
std::string source_of(const std::string& path);
// "video.writer path=a.mp4", "image.writer path=a-{index}.png".
std::string sink_of(const std::string& path);

} // namespace millrace::graph
