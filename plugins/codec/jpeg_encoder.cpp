// Compresses pictures with libjpeg-turbo; see jpeg_encoder.h.
#include "plugins/codec/jpeg_encoder.h"

#include <turbojpeg.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "plugins/codec/jpeg_handle.h"
#include "plugins/codec/ycbcr.h"

namespace millrace::codec {

namespace {

constexpr uint32_t kJpegSideMax = 65500; // libjpeg's JPEG_MAX_DIMENSION

int samples_of(Subsampling subsampling) { return subsampling == Subsampling::none_444 ? TJSAMP_444 : TJSAMP_420; }

// TJPF_UNKNOWN for YCbCr, which is converted first.
int packed_format(Pixel pixel) {
  switch (pixel) {
    case Pixel::gray8: return TJPF_GRAY;
    case Pixel::rgb8: return TJPF_RGB;
    case Pixel::bgr8: return TJPF_BGR;
    case Pixel::rgba8: return TJPF_RGBX;
    case Pixel::bgra8: return TJPF_BGRX;
    default: return TJPF_UNKNOWN;
  }
}

void require_jpeg_settings(const EncoderSettings& settings) {
  if (settings.quality < kQualityMin || settings.quality > kQualityMax)
    throw std::invalid_argument("the quality of the encoder jpeg is " + std::to_string(settings.quality) +
                                "; it takes 1 to 100");
}

// Memory without its first bytes set, which would take longer than a small picture's encoding.
class Scratch {
 public:
  uint8_t* at_least(uint64_t bytes) {
    if (bytes <= size_) return data_.get();
    size_ = 0;
    data_ = std::make_unique_for_overwrite<uint8_t[]>(bytes);
    size_ = bytes;
    return data_.get();
  }

 private:
  std::unique_ptr<uint8_t[]> data_;
  uint64_t size_ = 0;
};

class JpegEncoder final : public Encoder {
 public:
  explicit JpegEncoder(const EncoderSettings& settings) : handle_(tjInitCompress()) {
    if (!handle_) throw std::runtime_error("libjpeg-turbo cannot begin: " + jpeg_words(nullptr));
    change(settings);
  }

  void change(const EncoderSettings& settings) override {
    require_jpeg_settings(settings);
    settings_ = settings;
  }

  void ask_key() override {} // every picture is one

  bool encode(const Picture& picture, std::vector<uint8_t>& unit) override {
    unit.clear();
    require_encodable(picture, "jpeg", kJpegSideMax);
    int format = packed_format(picture.pixel);
    const uint8_t* pixels = picture.planes[0];
    size_t stride = picture.strides[0];
    if (format == TJPF_UNKNOWN) {
      format = TJPF_RGB;
      stride = size_t{3} * picture.width;
      uint8_t* rgb = rgb_.at_least(stride * picture.height);
      to_rgb(picture, rgb, stride);
      pixels = rgb;
    }
    const int samples = format == TJPF_GRAY ? int{TJSAMP_GRAY} : samples_of(settings_.subsampling);
    const int width = static_cast<int>(picture.width), height = static_cast<int>(picture.height);
    unsigned long bytes = tjBufSize(width, height, samples);
    uint8_t* out = compressed_.at_least(bytes);
    if (tjCompress2(handle_.get(), pixels, width, static_cast<int>(stride), height, format, &out, &bytes, samples,
                    settings_.quality, TJFLAG_NOREALLOC | TJFLAG_ACCURATEDCT) != 0)
      throw std::runtime_error("libjpeg-turbo cannot encode a picture of " + std::to_string(width) + " × " +
                               std::to_string(height) + " pixels: " + jpeg_words(handle_.get()));
    unit.assign(out, out + bytes);
    return true;
  }

 private:
  JpegHandle handle_;
  EncoderSettings settings_;
  Scratch rgb_, compressed_;
};

std::string nothing_missing() { return ""; }

std::unique_ptr<Encoder> make_jpeg(const EncoderSettings& settings) { return std::make_unique<JpegEncoder>(settings); }

uint64_t jpeg_bytes_max(uint32_t width, uint32_t height, const EncoderSettings& settings) {
  return tjBufSize(static_cast<int>(width), static_cast<int>(height), samples_of(settings.subsampling));
}

} // namespace

const EncoderType kJpegType = {"jpeg",          kJpegCode, kJpegSideMax,  "libjpeg-turbo",
                               nothing_missing, make_jpeg, jpeg_bytes_max};

} // namespace millrace::codec
