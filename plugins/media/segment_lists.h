// Finds the lengths of segments in the lists beside them, since some containers do not tell their own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace millrace::media {

// The lengths of segments in nanoseconds, by their paths: what the lists of the folder (in the form of FFmpeg's concat
// demuxer, as video.writer writes them) say of these files. A list that is older than a segment is of another recording
// and does not count for it.
std::map<std::string, int64_t> listed_lengths(const std::string& folder, const std::vector<std::string>& segments);

} // namespace millrace::media
