// The decoder in blocks that are lent to it: where pictures lie, that nobody draws on what was given away, that all
// comes back, and that no way to decode gives another picture.
#include "plugins/media/decoder.h"

#include <doctest/doctest.h>

extern "C" {
#include <libavutil/imgutils.h>
}

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/media/input.h"
#include "tests/media/plugin.h"

namespace millrace::media {
namespace {

constexpr int kDecodedPictures = 40;
constexpr uint32_t kWide = 176, kHigh = 98; // H.264 codes whole blocks of 16: 112 rows
constexpr uint8_t kGuard = 0x5C, kRubbish = 0xDB;

// Lends so many blocks of so many bytes. A block that comes back is filled with rubbish, so that a picture that
// somebody still reads there is wrong.
class Lender final : public BlockLender {
 public:
  Lender(size_t count, uint64_t bytes) : bytes_(bytes) {
    for (size_t i = 0; i < count; ++i) {
      auto* memory = static_cast<uint8_t*>(std::aligned_alloc(64, (bytes + 64 + 63) / 64 * 64));
      if (!memory) throw std::bad_alloc();
      std::memset(memory + bytes, kGuard, 64);
      all_.emplace_back(memory);
      free_.push_back(memory);
    }
  }

  bool borrow(mr_block& block) override {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      ++refused_;
      return false;
    }
    block = {free_.back(), bytes_, ++tokens_};
    out_[free_.back()] = tokens_;
    free_.pop_back();
    return true;
  }
  void give_back(const mr_block& block) override {
    const std::lock_guard lock(mutex_);
    const auto lent = out_.find(block.data);
    if (lent == out_.end() || lent->second != block.token) {
      ++wrong_returns_;
      return;
    }
    out_.erase(lent);
    std::memset(block.data, kRubbish, bytes_);
    free_.push_back(block.data);
  }

  size_t out() const {
    const std::lock_guard lock(mutex_);
    return out_.size();
  }
  // True while this very loan goes on.
  bool is_out(const mr_block& block) const {
    const std::lock_guard lock(mutex_);
    const auto lent = out_.find(block.data);
    return lent != out_.end() && lent->second == block.token;
  }
  int refused() const { return refused_; }
  int wrong_returns() const { return wrong_returns_; }
  uint64_t lent() const { return tokens_; }
  bool guards_intact() const {
    return std::all_of(all_.begin(), all_.end(), [&](const auto& memory) {
      return std::all_of(memory.get() + bytes_, memory.get() + bytes_ + 64,
                         [](uint8_t byte) { return byte == kGuard; });
    });
  }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  mutable std::mutex mutex_;
  uint64_t bytes_, tokens_ = 0;
  std::vector<std::unique_ptr<uint8_t, Free>> all_;
  std::vector<uint8_t*> free_;
  std::map<const uint8_t*, uint64_t> out_;
  int refused_ = 0, wrong_returns_ = 0;
};

std::string bytes_of_frame(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  std::string bytes(static_cast<size_t>(av_image_get_buffer_size(format, frame.width, frame.height, 1)), '\0');
  av_image_copy_to_buffer(reinterpret_cast<uint8_t*>(bytes.data()), static_cast<int>(bytes.size()), frame.data,
                          frame.linesize, format, frame.width, frame.height, 1);
  return bytes;
}

struct Given { // a picture whose block the decoder may still read
  mr_block block;
  const uint8_t* rows; // of its first plane, with what lies between them
  std::string bytes;
};

struct Decoded {
  std::vector<std::string> pictures;
  int in_blocks = 0, elsewhere = 0;
  int drawn_on = 0; // blocks that changed after their picture was given away
  bool aligned = true;
};

class Film {
 public:
  explicit Film(const std::string& path) : input_({path, "", -1, 5}, interrupt_, log_) {}

  Input& input() { return input_; }
  Log& log() { return log_; }
  Pixel pixel() const { return pixel_of(static_cast<AVPixelFormat>(input_.stream().codecpar->format)); }

  // The rest of the film.
  Decoded play(Decoder& decoder, const Lender* lender = nullptr) {
    Decoded all;
    std::vector<Given> given;
    const Packet packet(av_packet_alloc());
    const Frame frame(av_frame_alloc());
    for (bool ended = false; !ended;) {
      const int status = decoder.receive(frame.get());
      if (status == AVERROR(EAGAIN)) {
        const bool has_packet = input_.read(packet.get()) == 0;
        REQUIRE(decoder.send(has_packet ? packet.get() : nullptr) >= 0);
        av_packet_unref(packet.get());
        continue;
      }
      ended = status == AVERROR_EOF;
      REQUIRE((ended || status == 0));
      for (const Given& picture : given)
        if (lender && lender->is_out(picture.block) &&
            std::memcmp(picture.rows, picture.bytes.data(), picture.bytes.size()) != 0)
          ++all.drawn_on;
      if (lender) std::erase_if(given, [&](const Given& picture) { return !lender->is_out(picture.block); });
      if (!ended) take(decoder, *frame, all, given);
      av_frame_unref(frame.get());
    }
    return all;
  }

 private:
  static void take(Decoder& decoder, const AVFrame& frame, Decoded& all, std::vector<Given>& given) {
    all.pictures.push_back(bytes_of_frame(frame));
    const mr_block* block = decoder.block_to_give(frame);
    ++(block ? all.in_blocks : all.elsewhere);
    if (!block) return;
    for (int p = 0; p < AV_NUM_DATA_POINTERS && frame.data[p]; ++p) {
      all.aligned = all.aligned && frame.linesize[p] % 64 == 0 && reinterpret_cast<uintptr_t>(frame.data[p]) % 64 == 0;
      all.aligned = all.aligned && frame.data[p] >= block->data && frame.data[p] < block->data + block->capacity;
    }
    const auto shown = static_cast<size_t>(frame.linesize[0]) * static_cast<size_t>(frame.height - 1);
    given.push_back({*block, frame.data[0], std::string(reinterpret_cast<const char*>(frame.data[0]), shown)});
  }

  Interrupt interrupt_;
  Log log_{[](uint32_t, const std::string&) {}};
  Input input_;
};

struct Kind {
  const char *name, *arguments;
};
constexpr Kind kKinds[] = {{"bframes.mp4", "-c:v libx264 -preset fast -bf 3 -refs 4 -g 20 -threads 1"},
                           {"sliced.mkv", "-c:v libx264 -preset ultrafast -x264-params slices=4 -threads 1"},
                           {"vp9.webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 300k"},
                           {"mpeg4.avi", "-c:v mpeg4 -bf 2 -q:v 4"},
                           {"mjpeg.avi", "-c:v mjpeg -pix_fmt yuvj420p -q:v 4"},
                           {"ffv1.mkv", "-c:v ffv1 -level 3 -slices 4"},
                           {"png.mov", "-c:v png -pix_fmt rgb24"},
                           {"screen.gif", "-c:v gif -pix_fmt rgb8"}};

std::string film_of(const Kind& kind) {
  static std::map<std::string, std::string> made;
  std::string& path = made[kind.name];
  if (path.empty()) {
    path = scratch(std::string("decoder-") + kind.name);
    make_by_ffmpeg(
        "-f lavfi -i testsrc2=size=176x98:rate=25 -frames:v 40 -pix_fmt yuv420p " + std::string(kind.arguments), path);
  }
  return path;
}

// The pictures that FFmpeg decodes in memory of its own, on one thread.
const std::vector<std::string>& reference(const Kind& kind) {
  static std::map<std::string, std::vector<std::string>> all;
  std::vector<std::string>& pictures = all[kind.name];
  if (pictures.empty()) {
    Film film(film_of(kind));
    Decoder decoder(film.input().stream(), {1, ""}, film.log());
    pictures = film.play(decoder).pictures;
  }
  return pictures;
}

} // namespace

TEST_CASE("with as many blocks as the decoder says that it holds, every picture comes in one") {
  for (const Kind& kind : kKinds) {
    for (const int threads : {1, 2, 4}) {
      INFO(std::string(kind.name), " on ", threads, " threads");
      Film film(film_of(kind));
      auto decoder = std::make_unique<Decoder>(film.input().stream(), DecoderSettings{threads, ""}, film.log());
      Lender lender(decoder->held_max(), decoder->block_bytes(film.pixel(), kWide, kHigh));
      decoder->work_in(&lender, film.pixel(), kWide, kHigh);
      const Decoded decoded = film.play(*decoder, &lender);
      CHECK(decoded.pictures.size() == kDecodedPictures);
      const bool is_the_same = decoded.pictures == reference(kind);
      CHECK(is_the_same);
      CHECK(decoded.in_blocks == kDecodedPictures);
      CHECK(lender.refused() == 0);
      CHECK(decoded.drawn_on == 0);
      CHECK(decoded.aligned);
      decoder.reset();
      CHECK(lender.out() == 0);
      CHECK(lender.wrong_returns() == 0);
      CHECK(lender.guards_intact());
    }
  }
}

TEST_CASE("a lender that has few blocks costs copies and never a wrong picture") {
  for (const Kind& kind : kKinds) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{4}}) {
      for (const int threads : {1, 4}) {
        INFO(std::string(kind.name), " in ", count, " blocks on ", threads, " threads");
        Film film(film_of(kind));
        auto decoder = std::make_unique<Decoder>(film.input().stream(), DecoderSettings{threads, ""}, film.log());
        Lender lender(count, decoder->block_bytes(film.pixel(), kWide, kHigh));
        decoder->work_in(&lender, film.pixel(), kWide, kHigh);
        const Decoded decoded = film.play(*decoder, &lender);
        const bool is_the_same = decoded.pictures == reference(kind);
        CHECK(is_the_same);
        CHECK((decoded.in_blocks > 0) == (count > 0));
        CHECK(decoded.in_blocks + decoded.elsewhere == kDecodedPictures);
        if (count == 0) CHECK(lender.refused() > 0);
        CHECK(decoded.drawn_on == 0);
        decoder.reset();
        CHECK(lender.out() == 0);
        CHECK(lender.wrong_returns() == 0);
        CHECK(lender.guards_intact());
      }
    }
  }
}

TEST_CASE("a reader that keeps pictures keeps them as they are, and the decoder goes on elsewhere") {
  for (const Kind& kind : kKinds) {
    INFO(std::string(kind.name));
    Film film(film_of(kind));
    std::unique_ptr<Lender> lender; // outlives the decoder
    Decoder decoder(film.input().stream(), {2, ""}, film.log());
    lender = std::make_unique<Lender>(12, decoder.block_bytes(film.pixel(), kWide, kHigh));
    decoder.work_in(lender.get(), film.pixel(), kWide, kHigh);
    std::vector<Frame> kept;
    const Packet packet(av_packet_alloc());
    for (bool ended = false; !ended;) {
      Frame frame(av_frame_alloc());
      const int status = decoder.receive(frame.get());
      if (status == 0) kept.push_back(std::move(frame));
      ended = status == AVERROR_EOF;
      if (status != AVERROR(EAGAIN)) continue;
      decoder.send(film.input().read(packet.get()) == 0 ? packet.get() : nullptr);
      av_packet_unref(packet.get());
    }
    REQUIRE(kept.size() == kDecodedPictures);
    int in_blocks = 0, wrong = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
      in_blocks += decoder.block_to_give(*kept[i]) != nullptr;
      wrong += bytes_of_frame(*kept[i]) != reference(kind)[i];
    }
    CHECK(in_blocks > 0);
    CHECK(in_blocks <= 12);
    CHECK(wrong == 0);
    kept.clear();
  }
}

TEST_CASE("pictures that do not fit the blocks, or are of another size or format than planned, lie elsewhere") {
  const Kind& kind = kKinds[0];
  struct Case {
    Pixel pixel;
    uint32_t width, height;
    uint64_t bytes_less;
  };
  for (const Case& c : {Case{Pixel::i420, kWide, kHigh, 64}, Case{Pixel::i420, kWide - 2, kHigh, 0},
                        Case{Pixel::i420, kWide, kHigh + 2, 0}, Case{Pixel::nv12, kWide, kHigh, 0}}) {
    Film film(film_of(kind));
    std::unique_ptr<Lender> lender; // outlives the decoder
    Decoder decoder(film.input().stream(), {2, ""}, film.log());
    const uint64_t bytes = decoder.block_bytes(Pixel::i420, kWide, kHigh);
    // H.264 writes 112 rows of a picture, a little less than it asks for.
    lender = std::make_unique<Lender>(8, c.bytes_less ? uint64_t{kWide} * kHigh * 3 / 2 : bytes);
    decoder.work_in(lender.get(), c.pixel, c.width, c.height);
    const Decoded decoded = film.play(decoder, lender.get());
    CHECK(decoded.in_blocks == 0);
    CHECK(lender->out() == 0);
    const bool is_the_same = decoded.pictures == reference(kind);
    CHECK(is_the_same);
  }
}

TEST_CASE("after a seek and a flush the film begins again at its first picture, in blocks") {
  const Kind& kind = kKinds[0];
  Film film(film_of(kind));
  std::unique_ptr<Lender> lender; // outlives the decoder
  Decoder decoder(film.input().stream(), {4, ""}, film.log());
  lender = std::make_unique<Lender>(decoder.held_max(), decoder.block_bytes(Pixel::i420, kWide, kHigh));
  decoder.work_in(lender.get(), Pixel::i420, kWide, kHigh);
  for (int pass = 0; pass < 3; ++pass) {
    const Decoded decoded = film.play(decoder, lender.get());
    const bool is_the_same = decoded.pictures == reference(kind);
    INFO("pass ", pass);
    CHECK(is_the_same);
    CHECK(decoded.in_blocks == kDecodedPictures);
    REQUIRE(film.input().seek(film.input().start_ns()));
    decoder.flush();
  }
}

TEST_CASE("a decoder that there is not, or of another codec, is refused by its name") {
  Film film(film_of(kKinds[0]));
  const auto refusal = [&](const char* name) -> std::string {
    try {
      Decoder decoder(film.input().stream(), {1, name}, film.log());
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("h265x") == "this FFmpeg has no decoder 'h265x'");
  CHECK(refusal("vp9") == "the decoder 'vp9' does not read h264");
  CHECK(refusal("h264").empty());
}

} // namespace millrace::media
