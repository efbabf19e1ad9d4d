// The codecs of a Zarr's chunks: blosc, zstd, gzip, zlib, and none. A build without a library lacks its codecs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace millrace::volume {

enum class ChunkCodec { none, blosc, zstd, gzip, zlib };

// The codec of this name; `is_known` is false if there is none of it. The names are those of Zarr 2 and 3.
ChunkCodec chunk_codec(const std::string& name, bool& is_known);
// "blosc, zstd, gzip or zlib"
std::string known_codecs();
// Why this build cannot decode it; "" if it can.
std::string why_not_built(ChunkCodec codec);
// Why blosc cannot decode what a codec of this name inside it packed; "" if it can.
std::string why_not_in_blosc(const std::string& name);

// As many first bytes of a chunk's file look_at_chunk() wants, or all that there are.
inline constexpr size_t kChunkHeadBytes = 32;
// Why a file of `file_bytes` that begins with `head` cannot hold a chunk of `chunk_bytes`; "" if it may.
std::string look_at_chunk(ChunkCodec codec, std::span<const uint8_t> head, uint64_t file_bytes, uint64_t chunk_bytes);
// Decodes a whole chunk. Returns why that failed, or "". It writes nowhere but into `chunk`, which it fills. Any number
// of threads may call it.
std::string decode_chunk(ChunkCodec codec, std::span<const uint8_t> file, std::span<uint8_t> chunk);

} // namespace millrace::volume
