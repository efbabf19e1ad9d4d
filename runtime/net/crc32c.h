// CRC-32C (Castagnoli), the checksum of records on a connection without TLS.
//
// The polynomial is that of RFC 3720 (iSCSI). Processors have an instruction for it: one core checks bytes faster than
// a connection carries them.
#pragma once

#include <cstdint>

#include "net/bytes.h"

namespace millrace::net {

// The checksum of `bytes`. `before` is the checksum of the bytes in front of them: crc32c(b, crc32c(a)) is that of a
// and b joined.
uint32_t crc32c(Bytes bytes, uint32_t before = 0);

// The two ways to compute it; tests compare them.
namespace detail {

// Runs on any processor: tables, eight bytes at a time.
uint32_t crc32c_portable(Bytes bytes, uint32_t before);
// True if this processor has the instruction: x86-64 with SSE 4.2, or an ARM that the compiler was told has CRC32.
bool has_crc32c_instruction();
// Uses the instruction, in three streams. Call it only if has_crc32c_instruction().
uint32_t crc32c_instruction(Bytes bytes, uint32_t before);

} // namespace detail

} // namespace millrace::net
