// FNV-1a of 64 bits, by which the results of a fit are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "millrace/payload/records.h"

namespace millrace::codebook {

inline uint64_t fingerprint(std::span<const std::byte> bytes) {
  return schema_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

} // namespace millrace::codebook
