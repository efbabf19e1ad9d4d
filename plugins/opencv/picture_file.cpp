// Reads picture files with OpenCV's decoders, and makes the checks that those leave out; see picture_file.h.
#include "plugins/opencv/picture_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "plugins/opencv/input_path.h"
#include "plugins/opencv/picture_tags.h"

namespace millrace::opencv {

namespace {

using Bytes = PictureBytes;

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

// Files that are pictures, and that no decoder here reads. `why` is part of a sentence that begins with "it is".
struct Unread {
  std::string_view magic;
  size_t at;
  const char* why;
};
constexpr std::array<Unread, 13> kUnread = {{
    {"GIF8", 0, "a GIF, which video.file reads\ntry: type=video.file"},
    {"ftypavif", 4, "an AVIF picture, which is not read; heif-convert makes a PNG of it"},
    {"ftypavis", 4, "an animated AVIF picture, which is not read"},
    {"ftypheic", 4, "an HEIC picture, which is not read; heif-convert makes a PNG of it"},
    {"ftypheix", 4, "an HEIC picture, which is not read; heif-convert makes a PNG of it"},
    {"ftypmif1", 4, "an HEIF picture, which is not read; heif-convert makes a PNG of it"},
    {"\xff\x0a", 0, "a JPEG XL picture, which is not read; djxl makes a PNG of it"},
    {std::string_view("\0\0\0\x0cJXL ", 8), 0, "a JPEG XL picture, which is not read; djxl makes a PNG of it"},
    {"8BPS", 0, "a Photoshop file, which is not read"},
    {"%PDF", 0, "a PDF document, which is not read; pdftoppm makes pictures of its pages"},
    {"<svg", 0, "an SVG drawing, which is not read; rsvg-convert makes a PNG of it"},
    {"<?xml", 0, "an XML document such as an SVG drawing, which is not read; rsvg-convert makes a PNG of a drawing"},
    {"FUJIFILMCCD-RAW", 0, "a camera's raw file, which is not read"},
}};

// True sentences about a file that is whole and still not read; "" if it is of no such kind.
std::string why_unread(Bytes bytes) {
  if (is_animated_webp(bytes))
    return "it is an animated WebP, and neither image.file nor video.file reads those; `webpmux -get frame 1` takes a "
           "picture out of it, and ImageMagick makes a film of it";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Unread& one : kUnread)
    if (text.size() > one.at && text.substr(one.at).starts_with(one.magic)) return "it is " + std::string(one.why);
  return is_video(bytes) ? "it is a video, which video.file reads\ntry: type=video.file" : "";
}

// TIFF files have numbers that OpenCV either refuses or takes for others.
std::string why_unread_tiff(const TiffTags& tags) {
  constexpr uint64_t kSigned = 2, kFloat = 3, kComplex = 5;
  const uint64_t bits = tags.value(kTagBits).value_or(1), format = tags.value(kTagSampleFormat).value_or(1);
  const std::string read = "; TIFF is read with whole numbers of 8 or 16 bits, 0 for black";
  if (format == kFloat) return "its pixels are floating-point numbers of " + std::to_string(bits) + " bits" + read;
  if (format == kSigned) return "its pixels are signed numbers of " + std::to_string(bits) + " bits" + read;
  if (format >= kComplex) return "its pixels are complex numbers" + read;
  if (bits > 16) return "its pixels are numbers of " + std::to_string(bits) + " bits" + read;
  return "";
}

// As libtiff names them: colours that were multiplied by alpha, and such that were not.
constexpr uint64_t kMultiplied = 1, kStraight = 2;

cv::Mat decode(const std::string& path, const std::vector<unsigned char>& bytes, int flags) {
  cv::Mat picture;
  try {
    picture = cv::imdecode(bytes, flags);
  } catch (const cv::Exception& error) {
    const std::string why = why_unread(bytes);
    throw cannot_read("picture", path, why.empty() ? "the decoder refused it (" + std::string(error.err) + ")" : why);
  }
  if (const std::string why = picture.empty() ? why_unread(bytes) : ""; !why.empty())
    throw cannot_read("picture", path, why);
  if (picture.empty()) throw cannot_read("picture", path, "the file is damaged or of a kind that is not known");
  if (static_cast<double>(picture.cols) * picture.rows > kPixelsMax)
    throw cannot_read("picture", path, "it has more than 134 million pixels");
  return picture;
}

// Turns a picture that lies as EXIF says. EXIF 2.32, tag 274: the sides at which its first row and column are shown.
cv::Mat upright(cv::Mat picture, int orientation) {
  constexpr int kAcross = 1, kDown = 0, kBoth = -1; // cv::flip's words
  if (orientation >= 5) cv::transpose(picture, picture);
  if (orientation == 2 || orientation == 6) cv::flip(picture, picture, kAcross);
  if (orientation == 4 || orientation == 8) cv::flip(picture, picture, kDown);
  if (orientation == 3 || orientation == 7) cv::flip(picture, picture, kBoth);
  return picture;
}

// Makes the colours of a BGRA picture straight: they were multiplied by alpha.
void divide_by_alpha(cv::Mat& picture) {
  for (int y = 0; y < picture.rows; ++y) {
    auto* pixel = picture.ptr<cv::Vec4b>(y);
    for (int x = 0; x < picture.cols; ++x)
      if (const int alpha = pixel[x][3]; alpha > 0 && alpha < 255)
        for (int c = 0; c < 3; ++c)
          pixel[x][c] = static_cast<unsigned char>(std::min(255, (pixel[x][c] * 255 + alpha / 2) / alpha));
  }
}

std::string note_of(const std::string& path, Bytes bytes) {
  if (is_animated_png(bytes))
    return "'" + path + "' is an animated PNG: its first picture is read, and video.file reads all";
  if (tiff_pages(bytes) > 1) return "'" + path + "' has several pages: its first one is read";
  return "";
}

} // namespace

bool reaches_its_end(Bytes bytes) {
  if (starts_with(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'})) return png_ends(bytes);
  if (starts_with(bytes, {0xFF, 0xD8, 0xFF})) return jpeg_ends(bytes);
  return true;
}

cv::Mat read_picture(const std::string& path, bool alpha, std::string* note) {
  std::vector<unsigned char> bytes = bytes_of(path);
  if (!reaches_its_end(bytes)) throw cannot_read("picture", path, "the file is cut off");
  const TiffTags tiff(bytes);
  if (const std::string why = tiff.empty() ? "" : why_unread_tiff(tiff); !why.empty())
    throw cannot_read("picture", path, why);
  if (note) *note = note_of(path, bytes);
  // libtiff multiplies straight colours by their alpha, and loses bits; it leaves those that are said to be multiplied.
  const uint64_t extra = tiff.value(kTagExtraSamples).value_or(0);
  if (extra == kStraight) tiff.write_value(bytes, kTagExtraSamples, kMultiplied);
  const int orientation = exif_orientation(bytes);
  if (alpha || extra == kMultiplied) {
    cv::Mat picture = decode(path, bytes, cv::IMREAD_UNCHANGED);
    if (picture.depth() == CV_16U) picture.convertTo(picture, CV_8U, kDeepToByte);
    if (picture.type() == CV_8UC4) {
      if (extra == kMultiplied) divide_by_alpha(picture);
      if (!alpha) cv::cvtColor(picture, picture, cv::COLOR_BGRA2BGR);
      return upright(picture, orientation);
    }
  }
  // Decodes again: unchanged, the picture may be grey.
  cv::Mat picture = decode(path, bytes, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
  if (alpha) cv::cvtColor(picture, picture, cv::COLOR_BGR2BGRA);
  return upright(picture, orientation);
}

} // namespace millrace::opencv
