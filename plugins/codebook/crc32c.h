// CRC-32C, the checksum of the sections of a codebook's file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::codebook {

// The Castagnoli polynomial, reflected, begun and ended with all ones (RFC 3720, B.4): "123456789" gives 0xe3069283.
uint32_t crc32c(std::span<const std::byte> bytes);

} // namespace millrace::codebook
