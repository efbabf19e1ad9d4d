// Decodes by libavcodec; see other_decoder.h.
#include "tests/codec/other_decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/codec/scene.h"

namespace millrace::codec {

OtherDecoder::OtherDecoder(std::string_view encoder) {
  const AVCodec* library = avcodec_find_decoder(encoder == "jpeg" ? AV_CODEC_ID_MJPEG : AV_CODEC_ID_H264);
  REQUIRE(library);
  codec_ = fresh_context(library);
  codec_->thread_count = 1;
  codec_->flags |= AV_CODEC_FLAG_LOW_DELAY;
  REQUIRE(avcodec_open2(codec_.get(), library, nullptr) >= 0);
}

std::optional<Decoded> OtherDecoder::decode(std::span<const uint8_t> unit) {
  const AvPacket packet = fresh_packet();
  REQUIRE(av_new_packet(packet.get(), static_cast<int>(unit.size())) >= 0);
  std::memcpy(packet->data, unit.data(), unit.size());
  REQUIRE(avcodec_send_packet(codec_.get(), packet.get()) >= 0);
  const Frame frame = fresh_frame();
  const int status = avcodec_receive_frame(codec_.get(), frame.get());
  if (status == AVERROR(EAGAIN)) return {};
  REQUIRE(status >= 0);
  CHECK(frame->decode_error_flags == 0);

  Decoded decoded;
  decoded.width = static_cast<uint32_t>(frame->width);
  decoded.height = static_cast<uint32_t>(frame->height);
  decoded.matrix = frame->colorspace;
  decoded.range = frame->color_range;
  decoded.primaries = frame->color_primaries;
  const bool is_gray = frame->format == AV_PIX_FMT_GRAY8, is_h264 = codec_->codec_id == AV_CODEC_ID_H264;
  const bool is_whole = frame->format == AV_PIX_FMT_YUVJ444P || frame->format == AV_PIX_FMT_YUV444P;
  const int shift = is_whole ? 0 : 1;
  const double kr = is_h264 ? 0.2126 : 0.299, kb = is_h264 ? 0.0722 : 0.114, kg = 1 - kr - kb;
  for (int y = 0; y < frame->height; ++y)
    for (int x = 0; x < frame->width; ++x) {
      const auto at = [&](int plane) {
        const int down = plane ? shift : 0;
        return frame->data[plane][(y >> down) * frame->linesize[plane] + (x >> down)];
      };
      const uint8_t numbers[3] = {at(0), is_gray ? uint8_t{128} : at(1), is_gray ? uint8_t{128} : at(2)};
      if (x == 0 && y == 0) decoded.first.assign(numbers, numbers + 3);
      const double luma = is_h264 ? (numbers[0] - 16) / 219.0 * 255 : numbers[0];
      const double scale = is_h264 ? 255 / 224.0 : 1;
      const double cb = (numbers[1] - 128) * scale, cr = (numbers[2] - 128) * scale;
      const double r = luma + 2 * (1 - kr) * cr, b = luma + 2 * (1 - kb) * cb;
      for (const double channel : {r, (luma - kr * r - kb * b) / kg, b}) decoded.rgb.push_back(rounded8(channel));
    }
  return decoded;
}

std::vector<uint8_t> cropped(const Decoded& decoded, uint32_t width, uint32_t height) {
  REQUIRE(decoded.width >= width);
  REQUIRE(decoded.height >= height);
  std::vector<uint8_t> rgb;
  for (uint32_t y = 0; y < height; ++y) {
    const auto row = decoded.rgb.begin() + ptrdiff_t{y} * decoded.width * 3;
    rgb.insert(rgb.end(), row, row + ptrdiff_t{width} * 3);
  }
  return rgb;
}

} // namespace millrace::codec
