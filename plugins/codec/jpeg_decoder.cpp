// Decodes JPEG pictures, and refuses damaged ones; see jpeg_decoder.h.
#include "plugins/codec/jpeg_decoder.h"

#include <stdexcept>
#include <string>

namespace millrace::codec {

namespace {

bool is_refused_space(int space) { return space == TJCS_CMYK || space == TJCS_YCCK; }

} // namespace

JpegDecoder::JpegDecoder() { begin(); }

void JpegDecoder::begin() {
  handle_.reset(tjInitDecompress());
  if (!handle_) throw std::runtime_error("libjpeg-turbo cannot begin: " + jpeg_words(nullptr));
}

// Tables that ended too early stay in a handle, and then it refuses whole pictures too.
void JpegDecoder::refuse(std::span<const uint8_t> bytes, const std::string& words) {
  begin();
  throw std::runtime_error("a packet of " + std::to_string(bytes.size()) +
                           " bytes is no JPEG picture that can be decoded: " + words);
}

JpegDecoder::Size JpegDecoder::size_of(std::span<const uint8_t> bytes) {
  if (bytes.size() < 2 || bytes[0] != 0xFF || bytes[1] != 0xD8) refuse(bytes, "it does not begin with FF D8");
  int width = 0, height = 0, samples = 0, space = 0;
  if (tjDecompressHeader3(handle_.get(), bytes.data(), bytes.size(), &width, &height, &samples, &space) != 0)
    refuse(bytes, jpeg_words(handle_.get()));
  if (is_refused_space(space)) refuse(bytes, "its colours are CMYK, for printing");
  if (width < 1 || height < 1) refuse(bytes, "it has no pixels");
  return {static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
}

void JpegDecoder::decode(std::span<const uint8_t> bytes, Size size, uint8_t* target, size_t stride) {
  // With LIMITSCANS a progressive picture of thousands of scans ends early; with STOPONWARNING a damaged one does.
  constexpr int kFlags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  if (tjDecompress2(handle_.get(), bytes.data(), bytes.size(), target, static_cast<int>(size.width),
                    static_cast<int>(stride), static_cast<int>(size.height), TJPF_RGB, kFlags) != 0)
    refuse(bytes, jpeg_words(handle_.get()));
}

} // namespace millrace::codec
