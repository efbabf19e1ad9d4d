// Recognises animated WebP, which libavformat opens as a single picture and FFmpeg 5.1 cannot decode.
#pragma once

#include <string>

namespace millrace::media {

// True for a WebP file whose header says that it is animated; false also for a file that cannot be read.
bool is_animated_webp(const std::string& path);

} // namespace millrace::media
