// Asks the codec's parser first, as few films crop; see shown_size.h.
#include "plugins/media/shown_size.h"

#include <memory>
#include <new>

#include "plugins/media/decoder.h"

namespace millrace::media {

namespace {

constexpr int kPacketsMax = 256; // a picture comes after its reordered ones, or after damage

struct ParserDeleter {
  void operator()(AVCodecParserContext* parser) const { av_parser_close(parser); }
};

} // namespace

bool may_crop_left(const AVStream& stream, const AVPacket& packet) {
  const AVCodecID id = stream.codecpar->codec_id;
  if (id != AV_CODEC_ID_H264 && id != AV_CODEC_ID_HEVC) return false;
  const std::unique_ptr<AVCodecParserContext, ParserDeleter> parser(av_parser_init(id));
  const Codec codec(avcodec_alloc_context3(nullptr));
  if (!codec || avcodec_parameters_to_context(codec.get(), stream.codecpar) < 0) throw std::bad_alloc();
  if (!parser) return false;
  parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
  uint8_t* bytes = nullptr;
  int count = 0;
  av_parser_parse2(parser.get(), codec.get(), &bytes, &count, packet.data, packet.size, packet.pts, packet.dts,
                   packet.pos);
  return parser->coded_width > parser->width;
}

ShownSize shown_size(const InputSettings& settings, const std::string& decoder_name, Interrupt& interrupt, Log& log) {
  Input input(settings, interrupt, log);
  Decoder decoder(input.stream(), DecoderSettings{1, decoder_name}, log);
  const Frame frame(av_frame_alloc());
  const Packet packet(av_packet_alloc());
  if (!frame || !packet) throw std::bad_alloc();
  for (int i = 0; i < kPacketsMax; ++i) {
    const bool has_packet = input.read(packet.get()) == 0;
    decoder.send(has_packet ? packet.get() : nullptr);
    av_packet_unref(packet.get());
    if (decoder.receive(frame.get()) == 0) return {frame->width, frame->height};
    if (!has_packet) break;
  }
  return {};
}

} // namespace millrace::media
