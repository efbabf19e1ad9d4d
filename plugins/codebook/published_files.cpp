// See published_files.h.
#include "plugins/codebook/published_files.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "plugins/codebook/whole_file.h"

namespace millrace::codebook {

namespace {

constexpr uint32_t kIdxMagic = 0x564c4341;
constexpr uint16_t kIdxVersion = 1;
constexpr size_t kIdxBytes = 19;
constexpr std::string_view kIdxEnd = ".idx";

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  try {
    WholeFile file(path);
    file.write(bytes);
    file.commit();
  } catch (const std::system_error& error) {
    throw CodebookFileError("cannot write '" + path + "': " + error.code().message());
  }
}

// The bytes of a file, which must be so many.
template <class T>
std::vector<T> read_file(const std::string& path, uint64_t count) {
  std::error_code failed;
  const uint64_t there = std::filesystem::file_size(path, failed);
  if (failed) throw CodebookFileError("cannot read '" + path + "': " + failed.message());
  if (there % sizeof(T) != 0 || there / sizeof(T) != count)
    throw CodebookFileError("'" + path + "' has " + std::to_string(there) + " bytes, and its .idx says " +
                            std::to_string(count) + " numbers of " + std::to_string(sizeof(T)));
  std::vector<T> values(count);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(T))))
    throw CodebookFileError("cannot read '" + path + "': " + std::strerror(errno));
  return values;
}

template <class T>
void put(std::array<std::byte, kIdxBytes>& header, size_t& at, T value) {
  std::memcpy(header.data() + at, &value, sizeof value);
  at += sizeof value;
}
template <class T>
T take(const std::vector<std::byte>& header, size_t& at) {
  T value;
  std::memcpy(&value, header.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

} // namespace

bool names_published(const std::string& path) { return path.size() > kIdxEnd.size() && path.ends_with(kIdxEnd); }
bool is_published_index(const std::string& path) { return names_published(path) && !is_codebook_file(path); }

std::array<std::string, 3> published_paths(const std::string& path) {
  if (!names_published(path))
    throw CodebookFileError("the published files are named by one that ends with .idx, and '" + path + "' does not");
  const std::string base = path.substr(0, path.size() - kIdxEnd.size());
  return {path, base + ".anchors.bin", base + ".assign.bin"};
}

void write_published(const std::string& path, const CodebookView& codebook) {
  const auto [idx, anchors, labels] = published_paths(path);
  for (size_t i = 0; i < codebook.labels.size(); ++i)
    if (codebook.labels[i] >= codebook.anchor_count)
      throw CodebookFileError("vector " + std::to_string(i) +
                              " has no anchor, because it was left out of the fit, and '" + path +
                              "' cannot say so; a codebook's own file can");
  std::array<std::byte, kIdxBytes> header{};
  size_t at = 0;
  put(header, at, kIdxMagic);
  put(header, at, kIdxVersion);
  put(header, at, codebook.anchor_count);
  put(header, at, codebook.dimensions);
  put(header, at, static_cast<uint32_t>(codebook.labels.size()));
  put(header, at, uint8_t{0});
  write_file(anchors, std::as_bytes(codebook.anchors));
  write_file(labels, std::as_bytes(codebook.labels));
  write_file(idx, header);
}

PublishedCodebook read_published(const std::string& path) {
  const auto [idx, anchors, labels] = published_paths(path);
  std::error_code failed;
  const uint64_t bytes = std::filesystem::file_size(path, failed);
  if (failed) throw CodebookFileError("cannot read '" + path + "': " + failed.message());
  if (bytes != kIdxBytes)
    throw CodebookFileError("'" + path + "' is no published index: it has " + std::to_string(bytes) +
                            " bytes, and such a file has 19");
  const auto header = read_file<std::byte>(path, kIdxBytes);
  size_t at = 0;
  if (take<uint32_t>(header, at) != kIdxMagic)
    throw CodebookFileError("'" + path + "' is no published index: it does not begin with ACLV");
  if (const auto version = take<uint16_t>(header, at); version != kIdxVersion)
    throw CodebookFileError("'" + path + "' has version " + std::to_string(version) +
                            ", and this program reads version 1");
  PublishedCodebook codebook;
  codebook.anchor_count = take<uint32_t>(header, at);
  codebook.dimensions = take<uint32_t>(header, at);
  const auto vectors = take<uint32_t>(header, at);
  if (take<uint8_t>(header, at) > 3) throw CodebookFileError("'" + path + "' is damaged: its flags are unknown");
  if (codebook.anchor_count == 0 || codebook.dimensions == 0)
    throw CodebookFileError("'" + path + "' is damaged: it says " + std::to_string(codebook.anchor_count) +
                            " anchors of " + std::to_string(codebook.dimensions) + " dimensions");
  codebook.anchors = read_file<Float16>(anchors, uint64_t{codebook.anchor_count} * codebook.dimensions);
  codebook.labels = read_file<uint32_t>(labels, vectors);
  for (size_t i = 0; i < codebook.anchors.size(); ++i)
    if (!std::isfinite(float{codebook.anchors[i]}))
      throw CodebookFileError("'" + anchors + "' is damaged: anchor " + std::to_string(i / codebook.dimensions) +
                              " has a number that is not finite");
  for (size_t i = 0; i < codebook.labels.size(); ++i)
    if (codebook.labels[i] >= codebook.anchor_count)
      throw CodebookFileError("'" + labels + "' is damaged: vector " + std::to_string(i) + " has label " +
                              std::to_string(codebook.labels[i]) + " of " + std::to_string(codebook.anchor_count));
  return codebook;
}

double size_ratio(uint64_t anchors, uint64_t dimensions, uint64_t vectors, uint32_t element_bytes) {
  const auto files = static_cast<double>(2 * anchors * dimensions + 4 * vectors);
  return files / static_cast<double>(element_bytes * vectors * dimensions);
}

} // namespace millrace::codebook
