// check.pictures: says of every picture what a test compares: its times, its tags and the MD5 of its rows, a line each.
//
// A plugin of the tests alone, in a folder that only they name.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

extern "C" {
#include <libavutil/md5.h>
#include <libavutil/mem.h>
}

#include "millrace/handler.h"

namespace millrace::check {
namespace {

constexpr const char* kManual = &R"(
Writes a line of JSON for every picture into a file, and flushes it, so that what was counted is there whatever ends
the process.

    test.pattern count=3 ! check.pictures path=pictures.jsonl
)"[1];

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct FreeMemory {
  void operator()(void* memory) const { av_free(memory); }
};

// The bytes of a row that are picture, as ffmpeg's rawvideo packs them.
size_t row_bytes(const ImageView& picture, uint32_t plane) {
  const size_t width = picture.width(), half = (width + 1) / 2;
  if (plane == 0) return width * bytes_per_pixel(picture.pixel());
  switch (picture.pixel()) {
    case Pixel::nv12: return half * 2;
    case Pixel::p010: return half * 4;
    default: return half;
  }
}

class Pictures final : public Handler {
 public:
  Pictures() { blocking(); }

  void start() override {
    file_.reset(std::fopen(path_->c_str(), "we"));
    if (!file_) throw std::runtime_error("cannot write '" + *path_ + "': " + std::strerror(errno));
    md5_.reset(av_md5_alloc());
  }

  void process(Tick& tick, Cpu&) {
    const ImageView picture = video_(tick);
    const mr_image& image = picture.value().as.image;
    const std::string hash = *pixels_ ? hash_of(picture) : std::string();
    std::fprintf(file_.get(),
                 "{\"tick\": %llu, \"media_time\": %lld, \"pts\": %lld, \"duration\": %lld, \"format\": \"%s\", "
                 "\"width\": %u, \"height\": %u, \"color\": %u, \"range\": %u, \"primaries\": %u, \"transfer\": %u, "
                 "\"aspect\": [%u, %u], \"md5\": \"%s\"}\n",
                 static_cast<unsigned long long>(tick.index()), static_cast<long long>(tick.media_time_ns()),
                 static_cast<long long>(picture.header().pts_ns), static_cast<long long>(picture.header().duration_ns),
                 std::string(name_of(picture.pixel())).c_str(), image.width, image.height, image.color, image.range,
                 image.primaries, image.transfer, image.aspect_num, image.aspect_den, hash.c_str());
    std::fflush(file_.get());
  }

  void stop() override { file_.reset(); }

 private:
  std::string hash_of(const ImageView& picture) const {
    av_md5_init(md5_.get());
    for (uint32_t plane = 0; plane < picture.plane_count(); ++plane)
      for (uint32_t y = 0; y < picture.rows(plane); ++y)
        av_md5_update(md5_.get(), picture.row(y, plane), row_bytes(picture, plane));
    std::array<uint8_t, 16> digest{};
    av_md5_final(md5_.get(), digest.data());
    std::string text;
    for (uint8_t byte : digest) {
      std::array<char, 3> two{};
      std::snprintf(two.data(), two.size(), "%02x", byte);
      text += two.data();
    }
    return text;
  }

  Input<Image> video_{*this, "video", on_cpu, help("the pictures")};
  Param<std::string> path_{*this, "path", "", "the file of lines", required, writes_path};
  Param<bool> pixels_{*this, "pixels", true, "looks at the pixels too"};
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::unique_ptr<AVMD5, FreeMemory> md5_;
};

MILLRACE_HANDLER(Pictures, "check.pictures", "Says of every picture what a test compares", kManual)

} // namespace
} // namespace millrace::check

MILLRACE_PLUGIN("check", "0.1.0")
