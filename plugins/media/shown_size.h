// Finds the size of a file's pictures as they come out of the decoder.
//
// A stream of H.264 or H.265 may crop its pictures. FFmpeg cuts at the left in steps that its vector instructions can
// address, so a picture may be wider than the stream says. The commands ffmpeg and ffplay show it like that, and so
// does video.file. Only a decoded picture tells the width.
#pragma once

#include <string>

#include "plugins/media/av.h"
#include "plugins/media/input.h"

namespace millrace::media {

// True if the packet's stream may be cropped at the left. It is the stream's first packet.
bool may_crop_left(const AVStream& stream, const AVPacket& packet);

struct ShownSize {
  int width = 0, height = 0; // 0: no picture could be decoded
};

// Opens the file a second time and decodes its first picture. Throws as Input and Decoder do.
ShownSize shown_size(const InputSettings& settings, const std::string& decoder, Interrupt& interrupt, Log& log);

} // namespace millrace::media
