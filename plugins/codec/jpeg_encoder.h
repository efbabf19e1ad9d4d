// The encoder "jpeg": JFIF by libjpeg-turbo. Every picture is a key frame.
//
// One thread encodes a picture; 1080p takes some 4 ms. Strips of a picture on several threads need restart markers,
// which a caller of the library's interface cannot ask for before version 3.
#pragma once

#include "plugins/codec/encoder.h"

namespace millrace::codec {

extern const EncoderType kJpegType;

} // namespace millrace::codec
