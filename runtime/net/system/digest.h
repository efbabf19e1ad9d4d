// SHA-256 of bytes.
#pragma once

#include <array>
#include <cstddef>

#include "net/bytes.h"

namespace millrace::net {

// Throws std::bad_alloc.
std::array<std::byte, 32> sha256(Bytes bytes);

} // namespace millrace::net
