// The encoder "h264": H.264 by x264, called through libavcodec.
//
// A stream without delay: no picture is reordered or looked ahead to, and slices instead of pictures are shared out
// over threads. Each key frame is an IDR picture with the parameter sets (SPS, PPS) before it, so a newcomer can begin
// there. Units have the form of Annex B: start codes, no lengths.
//
// Rate. The bits of a second are bounded by a buffer of half a second at the bit rate, so a link of that rate is at
// most so late. Both follow change() while the stream goes on.
#pragma once

#include "plugins/codec/encoder.h"

namespace millrace::codec {

extern const EncoderType kH264Type;

} // namespace millrace::codec
