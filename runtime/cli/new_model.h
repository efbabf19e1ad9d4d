// The texts of a project that makes boxes of what a network gives (new.cpp).
#pragma once

#include <string_view>

namespace millrace::cli {

// With the places of new.cpp: @type@, @Class@, @name@, @family@.
extern const std::string_view kDecoder, kDecoderTest, kDecoderPipeline;

} // namespace millrace::cli
