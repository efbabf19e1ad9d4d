// Makes names of streams from names of files, by one rule after another; see file_names.h.
#include "graph/file_names.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "graph/limits.h"
#include "graph/quantity.h"

namespace millrace::graph {

namespace {

constexpr const char* kHexDigits = "0123456789ABCDEF";

std::string in_hex(uint32_t number, size_t digits) {
  std::string text;
  for (; digits > 0 || number > 0; number >>= 4, digits -= digits > 0 ? 1 : 0)
    text.insert(text.begin(), kHexDigits[number & 0xF]);
  return text;
}

// The code point at `at`, which moves past it; a byte that is no UTF-8 stands for itself.
uint32_t code_point(const std::string& text, size_t& at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const uint32_t first = byte(at++);
  const size_t more = first >= 0xF0 && first < 0xF8 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  if (more == 0 || first >= 0xF8) return first;
  uint32_t code = first & (0x3Fu >> more);
  for (size_t i = 0; i < more; ++i) {
    if ((byte(at + i) & 0xC0u) != 0x80u) return first;
    code = code << 6 | (byte(at + i) & 0x3Fu);
  }
  at += more;
  return code;
}

// Each character that a name may not have as its code point: "ü 1" is u00FCu00201.
std::string coded(const std::string& text) {
  std::string name;
  for (size_t at = 0; at < text.size();) {
    const bool is_part = is_stream_name(text.substr(at, 1));
    name += is_part ? text.substr(at++, 1) : "u" + in_hex(code_point(text, at), 4);
  }
  return name;
}

// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv: the same on every machine.
uint32_t hash_of(const std::string& text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::string with_extension(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  if (extension.size() < 2) return coded(file.stem().string());
  return coded(file.stem().string()) + "_" + coded(extension.substr(1));
}

std::string hashed(const std::filesystem::path& file) {
  constexpr size_t kHashDigits = 8;
  const std::string name = file.filename().string();
  std::string begin = as_name(file.stem().string()).substr(0, kNameLengthMax - kHashDigits - 1);
  if (begin.empty()) begin = "file";
  return begin + "-" + in_hex(hash_of(name), kHashDigits);
}

constexpr size_t kRules = 5;
std::string name_by(size_t rule, const std::filesystem::path& file) {
  switch (rule) {
    case 0: return file.stem().string();
    case 1: return as_name(file.stem().string());
    case 2: return coded(file.stem().string());
    case 3: return with_extension(file);
    default: return hashed(file);
  }
}

} // namespace

std::vector<std::string> names_of_files(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> names(files.size());
  std::set<std::string> taken;
  for (size_t rule = 0; rule < kRules; ++rule) {
    std::map<std::string, std::vector<size_t>> wanted; // the files that would have a name by this rule
    for (size_t i = 0; i < files.size(); ++i)
      if (names[i].empty()) wanted[name_by(rule, files[i])].push_back(i);
    for (const auto& [name, by] : wanted) {
      // as_name() shortens: long names that begin alike would be taken for each other.
      const bool is_cut = rule == 1 && files[by[0]].stem().string().size() >= kNameLengthMax;
      if (by.size() == 1 && !is_cut && is_stream_name(name) && taken.insert(name).second) names[by[0]] = name;
    }
  }
  // Two names with one hash: in the order of the files.
  for (size_t i = 0; i < files.size(); ++i)
    for (size_t number = 2; names[i].empty(); ++number) {
      const std::string name = hashed(files[i]).substr(0, kNameLengthMax - 5) + "-" + std::to_string(number);
      if (taken.insert(name).second) names[i] = name;
    }
  return names;
}

} // namespace millrace::graph
