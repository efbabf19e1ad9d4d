// libFuzzer: whatever a codebook's file holds, it is refused in words, or all that it shows lies within it and means
// something. Its checksums are made right first, as somebody who wants to do harm makes them.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "plugins/codebook/codebook_file.h"
#include "plugins/codebook/crc32c.h"

namespace {

using millrace::codebook::crc32c;

constexpr size_t kHeader = 64, kEntry = 32;

template <class T>
T take(const std::vector<std::byte>& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <class T>
void put(std::vector<std::byte>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void make_right(std::vector<std::byte>& bytes) {
  if (bytes.size() < kHeader) return;
  std::memcpy(bytes.data(), "MRCODEBK", 8);
  put(bytes, 8, uint32_t{1});
  put(bytes, 16, uint64_t{bytes.size()});
  std::memset(bytes.data() + kEntry, 0, kHeader - kEntry);
  const uint64_t sections = take<uint32_t>(bytes, 12), end = kHeader + sections * kEntry;
  if (end > bytes.size()) return;
  for (size_t entry = kHeader; entry < end; entry += kEntry) {
    const auto offset = take<uint64_t>(bytes, entry + 8), count = take<uint64_t>(bytes, entry + 16);
    if (offset <= bytes.size() && count <= bytes.size() - offset)
      put(bytes, entry + 4, crc32c(std::span(bytes).subspan(offset, count)));
  }
  put(bytes, 24, crc32c(std::span(bytes).subspan(kHeader, end - kHeader)));
  put(bytes, 28, crc32c(std::span(bytes).first(28)));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace::codebook;
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  make_right(bytes);
  CodebookView view;
  try {
    view = read_codebook(bytes, "a.codebook");
  } catch (const CodebookFileError&) {
    return 0;
  }
  if (view.anchors.size() != uint64_t{view.anchor_count} * view.dimensions || view.anchors.empty()) std::abort();
  if (!view.deviations.empty() && view.deviations.size() != view.anchors.size()) std::abort();
  for (const auto numbers : {view.anchors, view.deviations})
    for (const float number : numbers)
      if (!std::isfinite(number)) std::abort();
  for (const uint32_t label : view.labels)
    if (label >= view.anchor_count && label != kNoLabel) std::abort();
  return 0;
}
