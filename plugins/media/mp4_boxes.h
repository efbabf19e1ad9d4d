// Checks that the last of the outermost boxes of an MP4 or MOV file is complete.
//
// A film in fragments does not store its length, so a film that was cut off plays without an error. But each box stores
// its own length. A film that was cut off exactly between two fragments looks whole.
#pragma once

#include <string>

namespace millrace::media {

// True if the file ends within a box of pictures or of their index, or after the head of a fragment without its
// pictures. False for a whole file, for one that is no MP4, and for one that cannot be read.
bool breaks_off_in_a_box(const std::string& path);

} // namespace millrace::media
