// An owning handle of libjpeg-turbo, and its errors in words.
#pragma once

#include <turbojpeg.h>

#include <memory>
#include <string>

namespace millrace::codec {

struct JpegHandleDeleter {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using JpegHandle = std::unique_ptr<void, JpegHandleDeleter>;

// The last error of a handle; of the thread, if that is null.
inline std::string jpeg_words(tjhandle handle) { return tjGetErrorStr2(handle); }

} // namespace millrace::codec
