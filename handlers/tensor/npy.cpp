// Reads and writes headers of NumPy's file format .npy; see npy.h.
#include "handlers/tensor/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

namespace millrace::handlers {

namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they are, and called '<'");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
// NumPy writes headers of about a hundred bytes. The format allows 4 GiB, but a header that long does not describe
// numbers.
constexpr size_t kHeaderBytesMax = 1 << 20;

[[noreturn]] void refuse(const std::string& what) { throw std::runtime_error(what); }

// Parses the few of Python's literals that the dictionary is made of.
class Literals {
 public:
  explicit Literals(std::string_view text) : text_(text) {}

  bool take(std::string_view word) {
    while (position_ < text_.size() && std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos)
      ++position_;
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) refuse("its header is damaged: '" + std::string(word) + "' is missing");
  }
  std::string_view string() {
    const char* quote = take("'") ? "'" : "\"";
    if (*quote == '"') expect("\"");
    const size_t end = text_.find(*quote, position_);
    if (end == std::string_view::npos) refuse("its header is damaged: a quote is not closed");
    const std::string_view text = text_.substr(position_, end - position_);
    position_ = end + 1;
    return text;
  }
  bool boolean() {
    if (take("True")) return true;
    expect("False");
    return false;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect("(");
    while (!take(")")) {
      if (!numbers.empty()) {
        expect(",");
        if (take(")")) break;
      }
      numbers.push_back(number());
      if (numbers.size() > kNpyRankMax) refuse("its header is damaged: it says too many dimensions");
    }
    return numbers;
  }
  bool at_end() { return take("") && position_ == text_.size(); }

 private:
  int64_t number() {
    take(""); // the space before it
    int64_t value = 0;
    const auto read = std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
    if (read.ec != std::errc() || value < 0) refuse("its header is damaged: a dimension is no number");
    position_ = static_cast<size_t>(read.ptr - text_.data());
    take("L"); // Python 2 wrote some numbers with it
    return value;
  }

  std::string_view text_;
  size_t position_ = 0;
};

// Parses a type such as '<f4': byte order, kind, bytes.
void set_type(NpyHeader& header, std::string_view descr) {
  const std::string shown = "'" + std::string(descr) + "'";
  if (descr.size() >= 2 && descr[1] == 'O') refuse("it holds Python objects (" + shown + "), not numbers");
  if (descr.size() != 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    refuse("its elements are " + shown + ", which are no plain numbers");
  const auto bytes = static_cast<uint8_t>(descr[2] - '0');
  header.dtype = {0, static_cast<uint8_t>(bytes * 8), 1};
  switch (descr[1]) {
    case 'i': header.dtype.code = MR_DTYPE_INT; break;
    case 'u': header.dtype.code = MR_DTYPE_UINT; break;
    case 'f': header.dtype.code = MR_DTYPE_FLOAT; break;
    case 'b': header.dtype.code = MR_DTYPE_UINT; break; // booleans; True is 1
    default: refuse("its elements are " + shown + ", which are no plain numbers");
  }
  if (!npy_has(header.dtype) || (descr[1] == 'b' && bytes != 1))
    refuse("its elements are " + shown + ", which are of no known size");
  header.big_endian = descr[0] == '>' && bytes > 1;
}

// Throws if the bytes of all elements do not fit 63 bits.
void check_size(const NpyHeader& header) {
  uint64_t bytes = header.element_bytes();
  for (const int64_t extent : header.shape) {
    const auto count = static_cast<uint64_t>(extent);
    if (count > 0 && bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / count)
      refuse("its header is damaged: its shape is larger than any file");
    bytes *= count;
  }
}

} // namespace

uint64_t NpyHeader::element_count() const {
  uint64_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<uint64_t>(extent);
  return count;
}

bool npy_has(DType dtype) {
  if (dtype.lanes != 1) return false;
  const bool whole = dtype.code == MR_DTYPE_INT || dtype.code == MR_DTYPE_UINT;
  if (dtype.bits == 8) return whole;
  return (whole || dtype.code == MR_DTYPE_FLOAT) && (dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64);
}

std::string npy_header(DType dtype, std::span<const int64_t> shape, size_t bytes_min) {
  const char kind = dtype.code == MR_DTYPE_FLOAT ? 'f' : dtype.code == MR_DTYPE_INT ? 'i' : 'u';
  std::string dictionary = std::string("{'descr': '") + (dtype.bits == 8 ? '|' : '<') + kind +
                           std::to_string(dtype.bits / 8) + "', 'fortran_order': False, 'shape': (";
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d > 0) dictionary += ' ';
    dictionary += std::to_string(shape[d]) + ",";
  }
  if (shape.size() > 1) dictionary.pop_back(); // "(3,)" and "(3, 4)", as Python writes tuples
  dictionary += "), }";
  constexpr size_t kFixed = 10; // magic, version, length
  const size_t least = std::max(kFixed + dictionary.size() + 1, bytes_min);
  const size_t total = (least + kAlignment - 1) / kAlignment * kAlignment;
  dictionary.append(total - kFixed - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xFF);
  header += static_cast<char>(dictionary.size() >> 8); // 8 dimensions of 20 digits need far less than 64 KiB
  return header + dictionary;
}

NpyHeader parse_npy_dictionary(std::string_view text) {
  Literals literals(text);
  NpyHeader header;
  std::optional<std::string_view> descr;
  bool has_order = false, has_shape = false;
  literals.expect("{");
  while (!literals.take("}")) {
    const std::string_view key = literals.string();
    literals.expect(":");
    if (key == "descr") {
      if (literals.take("[")) refuse("its elements are structures, not numbers");
      descr = literals.string();
    } else if (key == "fortran_order") {
      header.fortran_order = literals.boolean();
      has_order = true;
    } else if (key == "shape") {
      header.shape = literals.tuple();
      has_shape = true;
    } else {
      refuse("its header is damaged: it says '" + std::string(key.substr(0, 40)) + "'");
    }
    if (literals.take("}")) break;
    literals.expect(",");
  }
  if (!literals.at_end() || !descr || !has_order || !has_shape) refuse("its header is damaged: something is missing");
  set_type(header, *descr);
  check_size(header);
  return header;
}

NpyHeader read_npy_header(std::FILE* file) {
  std::rewind(file);
  return read_npy_header([file](void* target, size_t bytes) { return std::fread(target, 1, bytes, file) == bytes; });
}

NpyHeader read_npy_header(const std::function<bool(void* target, size_t bytes)>& given) {
  std::array<uint8_t, 12> fixed{};
  const auto read = [&](void* target, size_t bytes) {
    if (!given(target, bytes)) refuse("it breaks off in its header");
  };
  read(fixed.data(), 8);
  if (std::memcmp(fixed.data(), kMagic.data(), kMagic.size()) != 0) refuse("it is no .npy file");
  const uint8_t major = fixed[6];
  if (major < 1 || major > 3) refuse("its format version is " + std::to_string(major) + ", and 1 to 3 are known");
  const size_t length_bytes = major == 1 ? 2 : 4;
  read(fixed.data() + 8, length_bytes);
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= size_t{fixed[8 + i]} << (8 * i);
  if (length > kHeaderBytesMax) refuse("its header is damaged: it says a length of " + std::to_string(length));
  std::string dictionary(length, '\0');
  read(dictionary.data(), length);
  NpyHeader header = parse_npy_dictionary(dictionary);
  header.data_offset = 8 + length_bytes + length;
  return header;
}

void copy_row_major(const uint8_t* source, std::span<const int64_t> shape, std::span<const int64_t> strides,
                    size_t element_bytes, uint8_t* target) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  // The last dimensions, as far as they are dense together, are copied as one piece.
  size_t outer = shape.size();
  int64_t piece = 1; // elements
  while (outer > 0 && (strides[outer - 1] == piece || shape[outer - 1] == 1)) piece *= shape[--outer];
  const size_t piece_bytes = static_cast<size_t>(piece) * element_bytes;
  std::array<int64_t, kNpyRankMax> place{};
  int64_t offset = 0; // in elements
  for (;;) {
    std::memcpy(target, source + offset * static_cast<int64_t>(element_bytes), piece_bytes);
    target += piece_bytes;
    size_t d = outer;
    for (; d > 0; --d) {
      offset += strides[d - 1];
      if (++place[d - 1] < shape[d - 1]) break;
      offset -= shape[d - 1] * strides[d - 1];
      place[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

std::vector<int64_t> fortran_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides;
  int64_t next = 1;
  for (const int64_t extent : shape) {
    strides.push_back(next);
    next *= extent;
  }
  return strides;
}

void swap_bytes(std::span<uint8_t> bytes, size_t element_bytes) {
  for (size_t i = 0; i + element_bytes <= bytes.size(); i += element_bytes)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + element_bytes));
}

} // namespace millrace::handlers
