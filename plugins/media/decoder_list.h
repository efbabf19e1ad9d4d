// Lists what this machine's FFmpeg can read, for `inspect` and `doctor`.
#pragma once

#include "millrace/handler.h"

namespace millrace::media {

// Decoders of the codecs that people meet, and the containers and protocols.
void offer_decoders(Offers& offers);

} // namespace millrace::media
