// The rig of video.writer's tests: numbered pictures, and what ffprobe says of a film.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "millrace/testing.h"
#include "tests/media/plugin.h"

namespace millrace::media {

// Standard output of a shell command; throws where it fails.
std::string output_of(const std::string& command);

// A picture whose planes are full of detail that moves with `number`; all values that its format allows.
testing::Value numbered(Pixel pixel, uint32_t width, uint32_t height, uint32_t number);

// Pictures at these times, in milliseconds, of the durations (0: not known); then drains. Returns what the writer said.
struct Timed {
  double at_ms, lasts_ms;
};
std::vector<testing::LogLine> write_film(testing::TableTest& writer, Pixel pixel, const std::vector<Timed>& times,
                                         uint32_t width = 64, uint32_t height = 48);

// `count` pictures at 25 a second.
std::vector<Timed> even_times(int count, double period_ms = 40);

// The pictures of a file, as ffprobe sees them.
struct Probed {
  std::map<std::string, std::string> stream; // codec_name, pix_fmt, color_space, …
  double start = 0, duration = 0;            // of the file, in seconds
  std::vector<double> times;                 // of packets, in the order in which they are shown
};
Probed probe(const std::string& path);

// The bytes of all pictures of a file in this pixel format, as ffmpeg decodes them.
std::string decoded(const std::string& path, const std::string& pix_fmt);
// Decodes several films in one process of ffmpeg: its start takes longer than decoding a short film.
struct Shown {
  std::string path, pix_fmt;
};
std::vector<std::string> decoded(const std::vector<Shown>& films);
// The same of a numbered picture, without padding.
std::string plain_bytes(const testing::Value& picture);

} // namespace millrace::media
