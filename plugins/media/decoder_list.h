// Lists what this machine's FFmpeg can read, for `inspect` and `doctor`.
#pragma once

#include "millrace/handler.h"

namespace millrace::media {

// Adds decoders of the common codecs, containers and protocols.
void offer_decoders(Offers& offers);

} // namespace millrace::media
