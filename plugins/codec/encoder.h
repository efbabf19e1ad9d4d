// The interface of all encoders, and the list of them: pictures go in, and each comes back at once as bytes.
//
//   EncoderSettings settings;
//   settings.bit_rate = 8'000'000;
//   const std::unique_ptr<Encoder> encoder = find_encoder("h264").make(settings);
//   std::vector<uint8_t> unit; // its memory is used again
//   const bool is_key = encoder->encode(picture_of(image), unit);
//
// Rules that hold for every encoder (tests/codec/conformance.cpp):
//   - One picture gives one access unit, which decodes as soon as it has come: nothing waits for a later picture.
//   - The first unit is a key frame. So are the next one after ask_key(), and the first of another size. A key frame
//     has all that a decoder needs to begin with it.
//   - The result depends on the settings, the pictures and the requests since the encoder was made, and nothing else.
//
// Colour. JPEG is JFIF: BT.601, full range. H.264 is BT.709, limited range, and says so in its headers. Conversions are
// rounded to nearest. A YCbCr picture of another matrix or range is converted through RGB. Alpha is dropped.
//
// Odd sizes. JPEG keeps every size. H.264 with 4:2:0 has even sizes alone: the last column and the last row are
// repeated, and the decoded picture has that one more.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/codec/four_cc.h"
#include "plugins/codec/picture.h"

namespace millrace::codec {

// The chroma of JPEG: for each pixel, or for each 2 × 2 block.
enum class Subsampling : uint32_t { none_444, both_420 };

inline constexpr int kQualityMin = 1, kQualityMax = 100;
inline constexpr int64_t kBitRateMin = 16'000, kBitRateMax = 1'000'000'000; // bits a second
inline constexpr int64_t kThreadsMax = 64;
inline constexpr double kFpsMin = 0.1, kFpsMax = 1000;

// An encoder heeds the settings of its codec and ignores the others.
struct EncoderSettings {
  // jpeg
  int quality = 75; // kQualityMin, the smallest files, to kQualityMax
  Subsampling subsampling = Subsampling::both_420;
  // h264
  int64_t bit_rate = 4'000'000;     // bits a second
  double fps = 30;                  // pictures a second, by which the bits are shared out
  int64_t key_interval = 0;         // pictures from one key frame to the next at most; 0: no key frame comes unasked
  std::string preset = "ultrafast"; // x264's word for speed against size
  int64_t threads = 1;              // encode one picture, the caller among them
  friend bool operator==(const EncoderSettings&, const EncoderSettings&) = default;
};

// One thread at a time calls it. Nothing blocks but the encoding itself.
class Encoder {
 public:
  virtual ~Encoder() = default;

  // Replaces `unit` by the picture's access unit, and returns true if that is a key frame. Throws std::invalid_argument
  // for a picture that the encoder does not take, and the stream goes on as if it had not come. Throws
  // std::runtime_error if the library fails, and the next picture begins a stream anew. In both cases `unit` is empty.
  virtual bool encode(const Picture& picture, std::vector<uint8_t>& unit) = 0;

  // The next picture becomes a key frame.
  virtual void ask_key() = 0;

  // Takes effect with the next picture. Quality and bit rate change without a key frame; another preset, rate or number
  // of threads begins a stream anew. Throws std::invalid_argument in a sentence, and then keeps the settings it had.
  virtual void change(const EncoderSettings& settings) = 0;
};

// An encoder by name, there or not.
struct EncoderType {
  const char* name;  // "jpeg"
  uint32_t code;     // four letters, as packets carry them
  uint32_t side_max; // pixels
  // The library that encodes: "libjpeg-turbo".
  const char* library;
  // A sentence that says why it cannot be had, with the remedy; "" if it can.
  std::string (*why_missing)();
  // Throws std::runtime_error with that sentence, and std::invalid_argument for settings that it cannot take.
  std::unique_ptr<Encoder> (*make)(const EncoderSettings& settings);
  // No access unit of a picture of at most this size is larger. Encoders keep to it: encode() throws instead.
  uint64_t (*unit_bytes_max)(uint32_t width, uint32_t height, const EncoderSettings& settings);
};

// All encoders that millrace knows, also those that are not there.
std::span<const EncoderType> encoder_types();

// Throws std::invalid_argument with the names that there are.
const EncoderType& find_encoder(std::string_view name);

} // namespace millrace::codec
