// Reads picture files with OpenCV's decoders, and makes the checks that those leave out; see picture_file.h.
#include "plugins/opencv/picture_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "plugins/opencv/input_path.h"

namespace millrace::opencv {

namespace {

using Bytes = std::span<const unsigned char>;

constexpr uint64_t kBytesMax = 1 << 30;       // more than the largest accepted picture takes uncompressed
constexpr double kDeepToByte = 255.0 / 65535; // scales 16-bit samples to 8 bits

std::vector<unsigned char> bytes_of(const std::string& path) {
  const uint64_t size = size_of_input("picture", path);
  if (size > kBytesMax) throw cannot_read("picture", path, "the file is larger than 1 GB");
  std::vector<unsigned char> bytes(size);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw cannot_read("picture", path, std::strerror(errno));
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    throw cannot_read("picture", path, "it cannot be read to its end");
  return bytes;
}

bool starts_with(Bytes bytes, std::initializer_list<unsigned char> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

// W3C, Portable Network Graphics, section 5: chunks of length, type, data and checksum; IEND is the last.
bool png_ends(Bytes bytes) {
  constexpr size_t kSignature = 8, kChunkFrame = 12;
  for (size_t at = kSignature; bytes.size() - at >= kChunkFrame;) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | bytes[at + i];
    if (length > bytes.size() - at - kChunkFrame) return false;
    if (starts_with(bytes.subspan(at + 4), {'I', 'E', 'N', 'D'})) return true;
    at += kChunkFrame + length;
  }
  return false;
}

// ITU-T T.81, annex B: an end-of-image marker comes after the start of the first scan. The search begins at the scan,
// because a thumbnail in the header has its own end of image.
bool jpeg_ends(Bytes bytes) {
  constexpr unsigned char kMarker = 0xFF, kScan = 0xDA, kEnd = 0xD9;
  size_t at = 2;
  while (bytes.size() - at >= 4 && bytes[at] == kMarker && bytes[at + 1] != kScan) {
    const size_t length = size_t{bytes[at + 2]} << 8 | bytes[at + 3];
    if (length + 2 > bytes.size() - at) return false;
    at += length + 2;
  }
  const std::array<unsigned char, 2> end = {kMarker, kEnd};
  return std::search(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.end(), end.begin(), end.end()) != bytes.end();
}

// Recognizes videos by their first bytes: ISO 14496-12's file type, Matroska's EBML, RIFF with AVI, Ogg, FLV, and three
// packets of an MPEG transport stream.
bool is_video(Bytes bytes) {
  if (bytes.size() >= 12 && starts_with(bytes.subspan(4), {'f', 't', 'y', 'p'})) return true;
  if (starts_with(bytes, {0x1A, 0x45, 0xDF, 0xA3})) return true;
  if (starts_with(bytes, {'R', 'I', 'F', 'F'}) && bytes.size() >= 12 && starts_with(bytes.subspan(8), {'A', 'V', 'I'}))
    return true;
  if (starts_with(bytes, {'O', 'g', 'g', 'S'}) || starts_with(bytes, {'F', 'L', 'V'})) return true;
  constexpr size_t kPacket = 188;
  constexpr unsigned char kSync = 0x47;
  return bytes.size() > 2 * kPacket && bytes[0] == kSync && bytes[kPacket] == kSync && bytes[2 * kPacket] == kSync;
}

cv::Mat decode(const std::string& path, const std::vector<unsigned char>& bytes, int flags) {
  cv::Mat picture;
  try {
    picture = cv::imdecode(bytes, flags);
  } catch (const cv::Exception& error) {
    throw cannot_read("picture", path, "the decoder refused it (" + std::string(error.err) + ")");
  }
  if (picture.empty() && is_video(bytes))
    throw cannot_read("picture", path, "it is a video, which video.file reads\ntry: type=video.file");
  if (picture.empty()) throw cannot_read("picture", path, "the file is damaged or of a kind that is not known");
  if (static_cast<double>(picture.cols) * picture.rows > kPixelsMax)
    throw cannot_read("picture", path, "it has more than 134 million pixels");
  return picture;
}

} // namespace

bool reaches_its_end(Bytes bytes) {
  if (starts_with(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'})) return png_ends(bytes);
  if (starts_with(bytes, {0xFF, 0xD8, 0xFF})) return jpeg_ends(bytes);
  return true;
}

cv::Mat read_picture(const std::string& path, bool alpha) {
  const std::vector<unsigned char> bytes = bytes_of(path);
  if (!reaches_its_end(bytes)) throw cannot_read("picture", path, "the file is cut off");
  if (alpha) {
    cv::Mat picture = decode(path, bytes, cv::IMREAD_UNCHANGED);
    if (picture.depth() == CV_16U) picture.convertTo(picture, CV_8U, kDeepToByte);
    if (picture.type() == CV_8UC4) return picture;
  }
  // Decodes again: unchanged, the picture may be grey or lie on its side.
  cv::Mat picture = decode(path, bytes, cv::IMREAD_COLOR);
  if (alpha) cv::cvtColor(picture, picture, cv::COLOR_BGR2BGRA);
  return picture;
}

} // namespace millrace::opencv
