// Writes and maps the file of a codebook; see codebook_file.h.
#include "plugins/codebook/codebook_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "plugins/codebook/crc32c.h"
#include "plugins/codebook/whole_file.h"

namespace millrace::codebook {

namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are read as they lie in it");

constexpr char kMagic[8] = {'M', 'R', 'C', 'O', 'D', 'E', 'B', 'K'};
constexpr uint32_t kVersion = 1;
constexpr size_t kAlignment = 64;
constexpr uint32_t kSectionsMax = 16; // more than there are kinds, for later versions' sake

struct Header {
  char magic[8];
  uint32_t version, sections;
  uint64_t bytes;
  uint32_t table_crc, header_crc;
  uint8_t zeros[32];
};
static_assert(sizeof(Header) == kAlignment);
constexpr size_t kHeaderChecked = offsetof(Header, header_crc);

enum class Kind : uint32_t { settings = 1, anchors, deviations, labels };
struct Entry {
  Kind kind;
  uint32_t crc;
  uint64_t offset, bytes;
  uint32_t rows, columns;
};
static_assert(sizeof(Entry) == 32);

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::settings: return "settings";
    case Kind::anchors: return "anchors";
    case Kind::deviations: return "deviations";
    case Kind::labels: return "labels";
  }
  return nullptr;
}

constexpr size_t aligned(size_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }

CodebookFileError damaged(const std::string& path, const std::string& part, const std::string& reason) {
  return CodebookFileError("'" + path + "' is damaged: its " + part + " " + reason);
}

bool all_zeros(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

struct Section {
  Kind kind;
  std::span<const std::byte> bytes;
  uint32_t rows, columns;
};

} // namespace

void write_codebook(const std::string& path, const CodebookView& codebook) {
  const uint32_t rows = codebook.anchor_count, columns = codebook.dimensions;
  std::vector<Section> sections = {
      {Kind::settings, bytes_of(codebook.settings), static_cast<uint32_t>(codebook.settings.size()), 1},
      {Kind::anchors, bytes_of(codebook.anchors), rows, columns}};
  if (!codebook.deviations.empty())
    sections.push_back({Kind::deviations, bytes_of(codebook.deviations), rows, columns});
  if (!codebook.labels.empty())
    sections.push_back({Kind::labels, bytes_of(codebook.labels), static_cast<uint32_t>(codebook.labels.size()), 1});

  std::vector<Entry> table;
  size_t offset = aligned(sizeof(Header) + sections.size() * sizeof(Entry));
  for (const Section& section : sections) {
    table.push_back({section.kind, crc32c(section.bytes), offset, section.bytes.size(), section.rows, section.columns});
    offset = aligned(offset + section.bytes.size());
  }
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.sections = static_cast<uint32_t>(sections.size());
  header.bytes = offset;
  header.table_crc = crc32c(bytes_of(table));
  header.header_crc = crc32c(bytes_of(std::span(&header, 1)).first(kHeaderChecked));

  try {
    WholeFile file(path);
    file.write(bytes_of(std::span(&header, 1)));
    file.write(bytes_of(table));
    for (size_t s = 0; s < sections.size(); ++s) {
      file.fill_to(table[s].offset);
      file.write(sections[s].bytes);
    }
    file.fill_to(offset);
    file.commit();
  } catch (const std::system_error& error) {
    throw CodebookFileError("cannot write '" + path + "': " + error.code().message());
  }
}

CodebookFile::CodebookFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO without a writer is no file
  struct stat status {};
  const bool is_open = file >= 0 && ::fstat(file, &status) == 0;
  const int reason = errno;
  const bool is_file = is_open && S_ISREG(status.st_mode);
  void* mapped = MAP_FAILED;
  if (is_file && status.st_size > 0)
    mapped = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  const bool is_mapped = mapped != MAP_FAILED || !is_file || status.st_size == 0;
  const int map_reason = errno;
  if (file >= 0) ::close(file);
  if (!is_open) throw CodebookFileError("cannot read '" + path + "': " + std::strerror(reason));
  if (!is_file) throw CodebookFileError("cannot read '" + path + "': it is no file");
  if (!is_mapped) throw CodebookFileError("cannot map '" + path + "': " + std::strerror(map_reason));
  if (mapped != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(mapped), static_cast<size_t>(status.st_size)};
  try {
    view_ = read_codebook(bytes_, path);
  } catch (...) {
    if (mapped != MAP_FAILED) ::munmap(mapped, bytes_.size());
    throw;
  }
}

CodebookFile::~CodebookFile() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

namespace {

// Checks the header and the table's bytes. The entries of the table are not checked yet.
std::vector<Entry> read_table(const std::string& path, std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof kMagic || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    throw CodebookFileError("'" + path + "' is not a codebook's file: it does not begin with " +
                            std::string(kMagic, sizeof kMagic));
  if (bytes.size() < sizeof header) throw damaged(path, "header", "breaks off");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.header_crc != crc32c(bytes.first(kHeaderChecked)) || !all_zeros(bytes_of(header.zeros)))
    throw damaged(path, "header", "is not as it was written");
  if (header.version != kVersion)
    throw CodebookFileError("'" + path + "' has version " + std::to_string(header.version) +
                            " of a codebook's file, and this program reads version 1");
  if (header.bytes != bytes.size())
    throw damaged(path, "header",
                  "says " + std::to_string(header.bytes) + " bytes, and there are " + std::to_string(bytes.size()));
  if (header.sections > kSectionsMax || sizeof header + header.sections * sizeof(Entry) > bytes.size())
    throw damaged(path, "table", "is longer than the file");
  std::vector<Entry> table(header.sections);
  const std::span<const std::byte> of_table = bytes.subspan(sizeof header, table.size() * sizeof(Entry));
  if (!table.empty()) std::memcpy(table.data(), of_table.data(), of_table.size());
  if (header.table_crc != crc32c(of_table)) throw damaged(path, "table", "is not as it was written");
  return table;
}

// Checks what checksums cannot: a hostile writer makes them right.
void check(const CodebookView& view, uint32_t deviation_rows, const std::string& path) {
  if (view.anchors.empty()) throw damaged(path, "table", "has no anchors");
  for (size_t i = 0; i < view.labels.size(); ++i)
    if (view.labels[i] >= view.anchor_count && view.labels[i] != kNoLabel)
      throw damaged(path, "section labels",
                    "has label " + std::to_string(view.labels[i]) + " of vector " + std::to_string(i) +
                        ", and there are " + std::to_string(view.anchor_count) + " anchors");
  for (const std::span<const Float16> numbers : {view.anchors, view.deviations})
    if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); }))
      throw damaged(path, numbers.data() == view.anchors.data() ? "section anchors" : "section deviations",
                    "has a number that is not finite");
  if (!view.deviations.empty() &&
      (deviation_rows != view.anchor_count || view.deviations.size() != view.anchors.size()))
    throw damaged(path, "section deviations", "has another shape than the anchors");
}

} // namespace

CodebookView read_codebook(std::span<const std::byte> bytes, const std::string& path) {
  const std::vector<Entry> table = read_table(path, bytes);
  size_t end = sizeof(Header) + table.size() * sizeof(Entry);
  uint32_t kinds = 0; // a bit for each that came
  uint32_t deviation_rows = 0;
  CodebookView view;
  for (const Entry& entry : table) {
    const char* const name = name_of(entry.kind);
    if (!name)
      throw damaged(path, "table", "has a section of kind " + std::to_string(static_cast<uint32_t>(entry.kind)));
    const std::string part = std::string("section ") + name;
    const uint32_t kind = 1u << static_cast<uint32_t>(entry.kind);
    if (kinds & kind) throw damaged(path, part, "comes twice");
    kinds |= kind;
    if (entry.offset != aligned(end) || entry.offset > bytes.size() || entry.bytes > bytes.size() - entry.offset)
      throw damaged(path, part, "lies outside of its place");
    if (!all_zeros(bytes.subspan(end, entry.offset - end)))
      throw damaged(path, "padding before " + part, "is not as it was written");
    const std::span<const std::byte> section = bytes.subspan(entry.offset, entry.bytes);
    if (crc32c(section) != entry.crc) throw damaged(path, part, "is not as it was written");
    end = entry.offset + entry.bytes;
    const bool is_list = entry.kind == Kind::settings || entry.kind == Kind::labels;
    const uint64_t element = entry.kind == Kind::settings ? 1 : entry.kind == Kind::labels ? 4 : 2;
    const uint64_t elements = entry.bytes / element;
    if (entry.bytes % element != 0 || uint64_t{entry.rows} * entry.columns != elements ||
        (is_list && entry.columns != 1))
      throw damaged(path, part, "has another shape than its bytes");
    const auto halves = [&] { return std::span(reinterpret_cast<const Float16*>(section.data()), elements); };
    switch (entry.kind) {
      case Kind::settings: view.settings.assign(reinterpret_cast<const char*>(section.data()), section.size()); break;
      case Kind::anchors:
        view.anchors = halves();
        view.anchor_count = entry.rows;
        view.dimensions = entry.columns;
        break;
      case Kind::deviations:
        view.deviations = halves();
        deviation_rows = entry.rows;
        break;
      case Kind::labels: view.labels = {reinterpret_cast<const uint32_t*>(section.data()), elements}; break;
    }
  }
  if (!all_zeros(bytes.subspan(end))) throw damaged(path, "end", "is not as it was written");
  check(view, deviation_rows, path);
  return view;
}

bool is_codebook_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  char begin[sizeof kMagic] = {};
  const ssize_t count = ::read(file, begin, sizeof begin);
  ::close(file);
  return count == static_cast<ssize_t>(sizeof begin) && std::memcmp(begin, kMagic, sizeof begin) == 0;
}

std::string setting(const std::string& settings, const std::string& key) {
  for (size_t begin = 0; begin < settings.size();) {
    const size_t end = std::min(settings.find('\n', begin), settings.size());
    if (settings.compare(begin, key.size() + 1, key + "=") == 0)
      return settings.substr(begin + key.size() + 1, end - begin - key.size() - 1);
    begin = end + 1;
  }
  return "";
}

} // namespace millrace::codebook
