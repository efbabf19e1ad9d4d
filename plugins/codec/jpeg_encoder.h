// The encoder "jpeg": JFIF by libjpeg-turbo. Every picture is a key frame.
//
// One thread encodes a picture. Strips of a picture on several threads need restart markers, which the library's
// interface does not write before version 3; at 1080p a picture takes a sixth of a 30 Hz beat on one thread.
#pragma once

#include "plugins/codec/encoder.h"

namespace millrace::codec {

extern const EncoderType kJpegType;

} // namespace millrace::codec
