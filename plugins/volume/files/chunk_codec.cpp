// Looks at chunks and decodes them; see chunk_codec.h.
#include "plugins/volume/files/chunk_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#ifdef VOLUME_BLOSC
#include <blosc.h>
#endif
#ifdef VOLUME_ZLIB
#include <zlib.h>
#endif
#ifdef VOLUME_ZSTD
#include <zstd.h>
#endif

namespace millrace::volume {

namespace {

#ifdef VOLUME_BLOSC
constexpr bool kHasBlosc = true;
#else
constexpr bool kHasBlosc = false;
#endif
#ifdef VOLUME_ZLIB
constexpr bool kHasZlib = true;
#else
constexpr bool kHasZlib = false;
#endif
#ifdef VOLUME_ZSTD
constexpr bool kHasZstd = true;
#else
constexpr bool kHasZstd = false;
#endif

struct Known {
  const char* name;
  ChunkCodec codec;
  bool is_built;
  const char* library;
  uint64_t packs_at_most; // at which ratio; beyond it a header lies
};
// A block of zstd that repeats one byte has 4 bytes for 128 KiB; deflate has two bits for 258 bytes.
constexpr std::array<Known, 5> kCodecs = {{{"none", ChunkCodec::none, true, "", 1},
                                           {"blosc", ChunkCodec::blosc, kHasBlosc, "libblosc-dev", 65536},
                                           {"zstd", ChunkCodec::zstd, kHasZstd, "libzstd-dev", 65536},
                                           {"gzip", ChunkCodec::gzip, kHasZlib, "zlib1g-dev", 1040},
                                           {"zlib", ChunkCodec::zlib, kHasZlib, "zlib1g-dev", 1040}}};

const Known& known(ChunkCodec codec) { return kCodecs[static_cast<size_t>(codec)]; }

std::string other_size(uint64_t said, uint64_t chunk_bytes) {
  return "it says " + std::to_string(said) + " bytes, and a chunk has " + std::to_string(chunk_bytes);
}

// ---- blosc

uint32_t number_at(std::span<const uint8_t> bytes, size_t at) {
  uint32_t number = 0;
  for (size_t n = 4; n-- > 0;) number = number << 8 | bytes[at + n];
  return number;
}

// Version, version of the codec inside, flags, size of an element; sizes of all, of a block, of the file (u32 each).
std::string look_at_blosc(std::span<const uint8_t> head, uint64_t file_bytes, uint64_t chunk_bytes) {
  constexpr size_t kHeader = 16;
  if (head.size() < kHeader) return "it is too short for blosc's header";
  if (number_at(head, 4) != chunk_bytes) return "blosc's header: " + other_size(number_at(head, 4), chunk_bytes);
  if (number_at(head, 12) != file_bytes)
    return "blosc's header: it says a file of " + std::to_string(number_at(head, 12)) + " bytes, and there are " +
           std::to_string(file_bytes);
  return head[0] >= 1 && head[0] <= 2
             ? ""
             : "blosc's header: its version is " + std::to_string(head[0]) + ", and 1 and 2 are known";
}

#ifdef VOLUME_BLOSC
std::string decode_blosc(std::span<const uint8_t> file, std::span<uint8_t> chunk) {
  size_t bytes = 0;
  if (blosc_cbuffer_validate(file.data(), file.size(), &bytes) != 0 || bytes != chunk.size())
    return "blosc's header is damaged";
  const int decoded = blosc_decompress_ctx(file.data(), chunk.data(), chunk.size(), 1);
  return decoded == static_cast<int>(chunk.size()) ? "" : "blosc cannot decode it (" + std::to_string(decoded) + ")";
}
#endif

// ---- zstd

#ifdef VOLUME_ZSTD
std::string look_at_zstd(std::span<const uint8_t> head, uint64_t chunk_bytes) {
  const unsigned long long said = ZSTD_getFrameContentSize(head.data(), head.size());
  if (said == ZSTD_CONTENTSIZE_ERROR) return "it does not begin as zstd does";
  return said == ZSTD_CONTENTSIZE_UNKNOWN || said == chunk_bytes ? ""
                                                                 : "zstd's header: " + other_size(said, chunk_bytes);
}

std::string decode_zstd(std::span<const uint8_t> file, std::span<uint8_t> chunk) {
  const size_t decoded = ZSTD_decompress(chunk.data(), chunk.size(), file.data(), file.size());
  if (ZSTD_isError(decoded)) return std::string("zstd cannot decode it: ") + ZSTD_getErrorName(decoded);
  return decoded == chunk.size() ? "" : other_size(decoded, chunk.size());
}
#endif

// ---- gzip and zlib

std::string look_at_deflated(ChunkCodec codec, std::span<const uint8_t> head) {
  if (head.size() < 8) return "it is too short";
  const bool is_gzip = head[0] == 0x1f && head[1] == 0x8b && head[2] == 8;
  const bool is_zlib = (head[0] & 0x0f) == 8 && (head[0] * 256 + head[1]) % 31 == 0;
  if (codec == ChunkCodec::gzip ? is_gzip : is_zlib) return "";
  return std::string("it does not begin as ") + known(codec).name + " does";
}

#ifdef VOLUME_ZLIB
std::string inflate_chunk(ChunkCodec codec, std::span<const uint8_t> file, std::span<uint8_t> chunk) {
  z_stream stream{};
  constexpr int kWindow = 15, kGzip = 16;
  if (inflateInit2(&stream, codec == ChunkCodec::gzip ? kWindow + kGzip : kWindow) != Z_OK) return "zlib has no memory";
  stream.next_in = const_cast<Bytef*>(file.data());
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = chunk.data();
  stream.avail_out = static_cast<uInt>(chunk.size());
  const int result = inflate(&stream, Z_FINISH);
  const std::string words = stream.msg ? stream.msg : "";
  const uint64_t decoded = chunk.size() - stream.avail_out;
  inflateEnd(&stream);
  if (result == Z_STREAM_END) return decoded == chunk.size() ? "" : other_size(decoded, chunk.size());
  if (decoded == chunk.size()) return "it holds more than a chunk, or its checksum is missing";
  return words.empty() ? "it breaks off" : "zlib cannot decode it: " + words;
}
#endif

} // namespace

ChunkCodec chunk_codec(const std::string& name, bool& is_known) {
  const auto found =
      std::find_if(kCodecs.begin() + 1, kCodecs.end(), [&](const Known& one) { return name == one.name; });
  is_known = found != kCodecs.end();
  return is_known ? found->codec : ChunkCodec::none;
}

std::string known_codecs() {
  std::string names;
  for (size_t n = 1; n < kCodecs.size(); ++n)
    names += (n == 1 ? "" : n + 1 == kCodecs.size() ? " or " : ", ") + std::string(kCodecs[n].name);
  return names;
}

std::string why_not_built(ChunkCodec codec) {
  if (known(codec).is_built) return "";
  return std::string("this millrace was built without ") + known(codec).name + " (" + known(codec).library + ")";
}

std::string why_not_in_blosc([[maybe_unused]] const std::string& name) {
#ifdef VOLUME_BLOSC
  if (blosc_compname_to_compcode(name.c_str()) < 0)
    return "blosc does not have '" + name + "', but " + blosc_list_compressors();
#endif
  return "";
}

std::string look_at_chunk(ChunkCodec codec, std::span<const uint8_t> head, uint64_t file_bytes, uint64_t chunk_bytes) {
  if (file_bytes == 0) return "the file is empty";
  if (codec == ChunkCodec::none)
    return file_bytes == chunk_bytes
               ? ""
               : "it has " + std::to_string(file_bytes) + " bytes, and a chunk has " + std::to_string(chunk_bytes);
  std::string why;
  if (codec == ChunkCodec::blosc) why = look_at_blosc(head, file_bytes, chunk_bytes);
  if (codec == ChunkCodec::gzip || codec == ChunkCodec::zlib) why = look_at_deflated(codec, head);
#ifdef VOLUME_ZSTD
  if (codec == ChunkCodec::zstd) why = look_at_zstd(head, chunk_bytes);
#endif
  if (!why.empty()) return why;
  if (chunk_bytes / known(codec).packs_at_most > file_bytes)
    return "it has " + std::to_string(file_bytes) + " bytes, too few for a chunk of " + std::to_string(chunk_bytes);
  // No codec makes more than a few bytes more of what it cannot pack.
  if (file_bytes / 2 > chunk_bytes + 4096)
    return "it has " + std::to_string(file_bytes) + " bytes, too many for a chunk of " + std::to_string(chunk_bytes);
  return "";
}

std::string decode_chunk(ChunkCodec codec, std::span<const uint8_t> file, std::span<uint8_t> chunk) {
  switch (codec) {
    case ChunkCodec::none:
      if (file.size() != chunk.size()) return other_size(file.size(), chunk.size());
      std::memcpy(chunk.data(), file.data(), chunk.size());
      return "";
#ifdef VOLUME_BLOSC
    case ChunkCodec::blosc: return decode_blosc(file, chunk);
#endif
#ifdef VOLUME_ZSTD
    case ChunkCodec::zstd: return decode_zstd(file, chunk);
#endif
#ifdef VOLUME_ZLIB
    case ChunkCodec::gzip:
    case ChunkCodec::zlib: return inflate_chunk(codec, file, chunk);
#endif
    default: return why_not_built(codec);
  }
}

} // namespace millrace::volume
