// The outermost boxes of an MP4 or MOV file: whether the last one is all there.
//
// A film in fragments says no length of its own, so that one that was cut off plays without a word. Its boxes say how
// long each of them is. A film that was cut off exactly between two fragments looks like a whole one.
#pragma once

#include <string>

namespace millrace::media {

// True where the file ends within a box of pictures or of their index, or after the head of a fragment without its
// pictures. False of a whole file, of one that is no MP4, and of one that cannot be read.
bool breaks_off_in_a_box(const std::string& path);

} // namespace millrace::media
