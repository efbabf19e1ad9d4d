// The rig of the writer's tests; see films.h.
#include "tests/media/films.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "tests/file_bytes.h"

namespace millrace::media {

std::string output_of(const std::string& command) {
  const auto close = [](FILE* pipe) { pclose(pipe); };
  std::unique_ptr<FILE, decltype(close)> pipe(popen(command.c_str(), "r"), close);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  std::array<char, 65536> piece;
  for (size_t count; (count = fread(piece.data(), 1, piece.size(), pipe.get())) > 0;) text.append(piece.data(), count);
  if (pclose(pipe.release()) != 0) throw std::runtime_error("fails: " + command);
  return text;
}

testing::Value numbered(Pixel pixel, uint32_t width, uint32_t height, uint32_t number) {
  const testing::Value value = testing::image(pixel, width, height);
  const ImageSpan picture = value.image();
  for (uint32_t plane = 0; plane < picture.plane_count(); ++plane)
    for (uint32_t y = 0; y < picture.rows(plane); ++y)
      for (uint32_t i = 0; i < picture.stride(plane); ++i) {
        const uint32_t sample = i * 5 + y * 3 + number * 11 + plane * 70 + (i * y) / 7;
        // Bits 6 to 15 are the ten of p010.
        const bool is_low = pixel == Pixel::p010 && i % 2 == 0;
        picture.row(y, plane)[i] = static_cast<uint8_t>(is_low ? sample << 6 : sample);
      }
  mr_image& image = value.raw().as.image;
  const bool is_ycbcr = pixel == Pixel::i420 || pixel == Pixel::nv12 || pixel == Pixel::p010;
  image.color = is_ycbcr ? MR_COLOR_BT709 : MR_COLOR_SRGB;
  image.range = is_ycbcr ? MR_RANGE_LIMITED : MR_RANGE_FULL;
  return value;
}

std::vector<testing::LogLine> write_film(testing::TableTest& writer, Pixel pixel, const std::vector<Timed>& times,
                                         uint32_t width, uint32_t height) {
  // The rig's ticks are a period apart: one that divides all the times, and ticks without a picture between.
  constexpr int64_t kStepNs = 100'000;
  writer.period_ns(kStepNs);
  const testing::Value first = numbered(pixel, width, height, 0);
  writer.input("video", first);
  REQUIRE_MESSAGE(writer.start() == MR_OK, writer.error());
  int64_t tick = 0;
  for (uint32_t i = 0; i < times.size(); ++i) {
    writer.input("video", {});
    for (; tick * kStepNs < std::llround(times[i].at_ms * 1e6); ++tick) writer.tick();
    writer.input("video", numbered(pixel, width, height, i).at(tick * kStepNs, std::llround(times[i].lasts_ms * 1e6)));
    const testing::Result result = writer.tick();
    ++tick;
    REQUIRE_MESSAGE(result.ok(), result.error);
  }
  REQUIRE_MESSAGE(writer.drain() == MR_OK, writer.error());
  return writer.logs();
}

std::vector<Timed> even_times(int count, double period_ms) {
  std::vector<Timed> times;
  for (int i = 0; i < count; ++i) times.push_back({i * period_ms, period_ms});
  return times;
}

Probed probe(const std::string& path) {
  Probed probed;
  const std::string text = output_of(
      "ffprobe -v error -select_streams v:0 -show_streams -show_format -show_packets "
      "-of default=noprint_wrappers=0 '" +
      path + "'");
  std::istringstream lines(text);
  std::string line, section, pts;
  while (std::getline(lines, line)) {
    if (line.size() > 1 && line[0] == '[') {
      section = line;
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = line.substr(0, equals), value = line.substr(equals + 1);
    // AVI has one time only, which ffprobe calls a decoding time where the codec could reorder.
    if (section == "[PACKET]" && name == "pts_time") pts = value;
    if (section == "[PACKET]" && name == "dts_time" && (pts != "N/A" || value != "N/A"))
      probed.times.push_back(std::stod(pts != "N/A" ? pts : value));
    if (section == "[STREAM]") probed.stream.emplace(name, value);
    if (section == "[FORMAT]" && name == "start_time" && value != "N/A") probed.start = std::stod(value);
    if (section == "[FORMAT]" && name == "duration" && value != "N/A") probed.duration = std::stod(value);
  }
  std::sort(probed.times.begin(), probed.times.end());
  return probed;
}

std::string decoded(const std::string& path, const std::string& pix_fmt) {
  return output_of("ffmpeg -nostdin -v error -i '" + path + "' -map 0:v -f rawvideo -vsync passthrough -pix_fmt " +
                   pix_fmt + " -");
}

std::vector<std::string> decoded(const std::vector<Shown>& films) {
  if (films.empty()) return {};
  std::string inputs, outputs;
  for (size_t i = 0; i < films.size(); ++i) {
    inputs += " -i '" + films[i].path + "'";
    outputs += " -map " + std::to_string(i) + ":v -f rawvideo -vsync passthrough -pix_fmt " + films[i].pix_fmt + " '" +
               films[i].path + ".raw'";
  }
  output_of("ffmpeg -nostdin -v error -y" + inputs + outputs);
  std::vector<std::string> all;
  for (const Shown& film : films) all.push_back(bytes_of(film.path + ".raw"));
  return all;
}

std::string plain_bytes(const testing::Value& picture) {
  const ImageSpan image = picture.image();
  std::string bytes;
  for (uint32_t plane = 0; plane < image.plane_count(); ++plane) {
    size_t row = size_t{image.width()} * bytes_per_pixel(image.pixel());
    const size_t half = (size_t{image.width()} + 1) / 2;
    if (plane > 0) row = image.pixel() == Pixel::i420 ? half : image.pixel() == Pixel::p010 ? half * 4 : half * 2;
    for (uint32_t y = 0; y < image.rows(plane); ++y)
      bytes.append(reinterpret_cast<const char*>(image.row(y, plane)), row);
  }
  return bytes;
}

} // namespace millrace::media
