// How an error is written out, and how the nearest valid name is found.
#include "observe/error.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "observe/printable.h"

namespace millrace {

namespace {

// Names longer than this are no typing mistakes: bounds the time that a suggestion may take.
constexpr size_t kSuggestedLengthMax = 128;

// Insertions, deletions, substitutions and swaps of neighbours: the optimal string alignment form of the
// Damerau-Levenshtein distance (no piece is edited twice), which needs three rows only.
size_t edit_distance(std::string_view a, std::string_view b) {
  if (std::max(a.size(), b.size()) > 2 * kSuggestedLengthMax) return std::max(a.size(), b.size());
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(previous);
    previous.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

// Names that differ in their last part only belong to handlers that do the same thing in another family.
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

} // namespace

std::string format_code(int code) { return fmt::format("MR{:04}", code); }

std::string format_error(const Error& error) {
  std::string text = fmt::format("error {}: {}", format_code(error.code), printable(error.what));
  const Place& place = error.place;
  if (!place.file.empty() || place.line > 0) {
    text += "\n  at " + (place.file.empty() ? "pipeline" : printable(place.file));
    if (place.line > 0) text += fmt::format(":{}", place.line);
    if (place.line > 0 && place.column > 0) text += fmt::format(":{}", place.column);
  }
  for (const std::string& note : error.notes) text += "\n  " + printable(note);
  if (!error.nearest.empty()) text += fmt::format("\n  did you mean '{}'?", printable(error.nearest));
  if (!error.edit.empty()) text += "\n  try: " + printable(error.edit);
  return text;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  if (name.empty() || name.size() > kSuggestedLengthMax) return "";
  // A third of the letters may differ, but never all of them: 'x' is not near 'y'.
  const size_t limit = std::max<size_t>(1, name.size() / 3);
  const std::string small = in_small_letters(name);
  const std::string* best = nullptr;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : names) {
    if (candidate.size() > name.size() + limit || name.size() > candidate.size() + limit) continue;
    const size_t distance = edit_distance(small, in_small_letters(candidate));
    if (distance >= std::max(name.size(), candidate.size()) || distance >= best_distance) continue;
    best = &candidate;
    best_distance = distance;
  }
  return best ? *best : "";
}

std::string nearest_type(std::string_view name, const std::vector<std::string>& types) {
  if (std::string whole = nearest_name(name, types); !whole.empty()) return whole;
  const std::string part = in_small_letters(last_part(name));
  const std::string* near = nullptr;
  for (const std::string& type : types) {
    // One letter and no more: acme.invert is not image.convert.
    const size_t distance = edit_distance(part, in_small_letters(last_part(type)));
    if (distance == 0) return type;
    if (distance == 1 && part.size() > 3 && !near) near = &type;
  }
  return near ? *near : "";
}

std::string gpu_meant(std::string_view name) {
  const std::string small = in_small_letters(name);
  for (const char* word : {"gpu", "gpu:0", "gpu0", "cuda", "cuda0", "nvidia", "0"})
    if (small == word) return "cuda:0";
  return "";
}

std::string assignment(const Place& place, const std::string& key, const std::string& value) {
  const bool in_a_line = place.file == "pipeline" || place.file.rfind("--set", 0) == 0;
  return key + (in_a_line ? "=" : ": ") + value;
}

std::string with_article(const std::string& noun) {
  const bool vowel = !noun.empty() && std::string_view("AEIOUaeiou").find(noun[0]) != std::string_view::npos;
  return (vowel ? "an " : "a ") + noun;
}

void assertion_failed(const char* expression, const char* sentence, const char* file, int line) {
  std::fprintf(stderr, "millrace: assertion failed: %s (%s) at %s:%d\n", sentence, expression, file, line);
  std::fflush(stderr);
  std::abort();
}

} // namespace millrace
