// Reads the names of a network's classes; see class_names.h.
#include "handlers/file/class_names.h"

#include <algorithm>
#include <string_view>

#include "handlers/file/open.h"
#include "handlers/trimmed.h"

namespace millrace::handlers {
namespace {

constexpr uint64_t kFileBytesMax = kClassNamesMax * (kClassNameBytesMax + 2);

std::string whole_text(const std::string& path) {
  const File file = open_to_read(path);
  const uint64_t size = size_of(file.get());
  if (size > kFileBytesMax) throw cannot_read(path, "it is too large for a list of names");
  std::string text(size, '\0');
  if (std::fread(text.data(), 1, size, file.get()) != size) throw cannot_read(path, "it ends too soon");
  return text;
}

bool is_text(std::string_view line) {
  for (const char c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return true;
}

} // namespace

std::vector<std::string> read_class_names(const std::string& path) {
  const std::string text = whole_text(path);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> names;
  for (size_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view name = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string where = "line " + std::to_string(line) + " ";
    if (!is_text(name)) throw cannot_read(path, where + "is no text; a list of names has one class a line");
    if (name.size() > kClassNameBytesMax)
      throw cannot_read(path, where + "has " + std::to_string(name.size()) + " bytes, and a name has at most " +
                                  std::to_string(kClassNameBytesMax));
    if (line > kClassNamesMax) throw cannot_read(path, "it has more than " + std::to_string(kClassNamesMax) + " lines");
    names.emplace_back(name);
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (names.empty()) throw cannot_read(path, "there is no name in it");
  return names;
}

} // namespace millrace::handlers
