// Reads and writes the file of shapes; see kept_shapes.h.
#include "plugins/model/kept_shapes.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace millrace::model {
namespace {

namespace fs = std::filesystem;
using Shape = std::vector<int64_t>;

constexpr std::string_view kFirstLine = "millrace network shapes 1", kArrow = " -> ", kScalar = "scalar";
constexpr size_t kLinesMax = 1000;                 // the oldest give way
constexpr uint64_t kFileBytesMax = 1024 * 1024;    // 1000 lines are far below
constexpr int64_t kExtentMax = int64_t{1} << 40;   // no tensor that fits into memory has a larger one
constexpr size_t kRankMax = 64, kOutputsMax = 256; // more is no network's

std::string text_of(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) {
    if (!text.empty()) text += ' ';
    if (shape.empty()) text += kScalar;
    for (size_t d = 0; d < shape.size(); ++d) text += (d ? "x" : "") + std::to_string(shape[d]);
  }
  return text;
}

// Takes the text up to the separator, and the separator, off the front.
std::string_view next_part(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::optional<Shape> shape_of(std::string_view text) {
  Shape shape;
  if (text == kScalar) return shape;
  for (bool goes_on = true; goes_on;) {
    goes_on = text.find('x') != std::string_view::npos;
    const std::string_view number = next_part(text, 'x');
    int64_t extent = -1;
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), extent);
    if (failed != std::errc() || end != number.data() + number.size() || extent < 0 || extent > kExtentMax) return {};
    if (shape.size() == kRankMax) return {};
    shape.push_back(extent);
  }
  return shape;
}

std::optional<std::vector<Shape>> shapes_of(std::string_view text) {
  std::vector<Shape> shapes;
  do {
    const std::optional<Shape> shape = shape_of(next_part(text, ' '));
    if (!shape || shapes.size() == kOutputsMax) return {};
    shapes.push_back(*shape);
  } while (!text.empty());
  return shapes;
}

struct Line {
  std::string key;
  std::vector<Shape> outputs;
};

std::optional<Line> line_of(std::string_view text) {
  const size_t arrow = text.find(kArrow);
  if (arrow == std::string_view::npos) return {};
  std::optional<std::vector<Shape>> outputs = shapes_of(text.substr(arrow + kArrow.size()));
  if (!outputs) return {};
  return Line{std::string(text.substr(0, arrow)), std::move(*outputs)};
}

// The sound lines of the file; none if it is not there.
std::vector<Line> lines_in(const std::string& path, bool& is_damaged) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return {};
  std::vector<Line> lines;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  is_damaged = fs::file_size(path, failed) > kFileBytesMax || failed || !std::getline(file, text) || text != kFirstLine;
  if (is_damaged) return {};
  while (std::getline(file, text)) {
    if (std::optional<Line> line = line_of(text))
      lines.push_back(std::move(*line));
    else
      is_damaged = true;
  }
  return lines;
}

} // namespace

std::string path_of_shapes() {
  constexpr const char* kName = "network_shapes.txt";
  const auto folder_in = [](const char* variable) -> fs::path {
    const char* const value = std::getenv(variable);
    return value ? value : "";
  };
  if (std::getenv("MILLRACE_MACHINE")) {
    const fs::path machine = folder_in("MILLRACE_MACHINE");
    return machine.empty() ? "" : (machine.parent_path() / kName).string();
  }
  if (const fs::path settings = folder_in("XDG_CONFIG_HOME"); !settings.empty())
    return (settings / "millrace" / kName).string();
  const fs::path home = folder_in("HOME");
  return home.empty() ? "" : (home / ".config" / "millrace" / kName).string();
}

std::string key_of_shapes(const std::string& network, const std::vector<std::vector<int64_t>>& inputs) {
  constexpr size_t kPieceBytes = 1 << 16; // a multiple of a word
  std::ifstream file(network, std::ios::binary);
  std::vector<char> piece(kPieceBytes);
  uint64_t hash = 14695981039346656037ull, size = 0; // FNV-1a over words, which is fast enough for large files
  do {
    std::memset(piece.data(), 0, piece.size());
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto count = static_cast<uint64_t>(file.gcount());
    for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, piece.data() + at, sizeof word);
      hash = (hash ^ word) * 1099511628211ull;
      hash ^= hash >> 32;
    }
    size += count;
  } while (file);
  if (!file.eof()) throw std::runtime_error("cannot read '" + network + "'");
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, 16).ptr;
  return std::string(digits.data(), end) + "-" + std::to_string(size) + " " + text_of(inputs);
}

KeptShapes find_shapes(const std::string& path, const std::string& key) {
  KeptShapes kept;
  for (Line& line : lines_in(path, kept.is_damaged))
    if (line.key == key) kept.outputs = std::move(line.outputs);
  return kept;
}

bool keep_shapes(const std::string& path, const std::string& key, const std::vector<std::vector<int64_t>>& outputs) {
  static std::mutex one_writer; // in this process; two processes may lose a line
  const std::lock_guard lock(one_writer);
  bool is_damaged = false;
  std::vector<Line> lines = lines_in(path, is_damaged);
  std::erase_if(lines, [&](const Line& line) { return line.key == key; });
  lines.push_back({key, outputs});
  if (lines.size() > kLinesMax) lines.erase(lines.begin(), lines.end() - kLinesMax);
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  // Other commands see the old file or the new one, never a part.
  const std::string unfinished = path + "." + std::to_string(::getpid());
  {
    std::ofstream file(unfinished, std::ios::binary);
    file << kFirstLine << '\n';
    for (const Line& line : lines) file << line.key << kArrow << text_of(line.outputs) << '\n';
    if (!file.flush()) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) fs::rename(unfinished, path, failed);
  if (!failed) return true;
  std::error_code ignored;
  fs::remove(unfinished, ignored);
  return false;
}

} // namespace millrace::model
