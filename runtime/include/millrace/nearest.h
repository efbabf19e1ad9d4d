// Finds the known name that is nearest to an unknown one, for error messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

namespace detail {
// The longest name that a suggestion is sought for. This bounds the time of the search.
inline constexpr size_t kSuggestedLengthMax = 128;

// Insertions, deletions, substitutions and swaps of neighbours: the optimal string alignment form of the
// Damerau-Levenshtein distance (no piece is edited twice), which needs three rows only.
inline size_t edit_distance(std::string_view a, std::string_view b) {
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

// The letters of ASCII only: tolower() makes other letters in some locales.
inline std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

} // namespace detail

// The nearest of `names` by edit distance: at most a third of the length, at least 1. "" if none is near. The case of
// letters does not count.
inline std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  if (name.empty() || name.size() > detail::kSuggestedLengthMax) return "";
  // A third of the letters may differ, but never all of them: 'x' is not near 'y'.
  const size_t limit = std::max<size_t>(1, name.size() / 3);
  const std::string small = detail::in_small_letters(name);
  const std::string* best = nullptr;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : names) {
    if (candidate.size() > name.size() + limit || name.size() > candidate.size() + limit) continue;
    const size_t distance = detail::edit_distance(small, detail::in_small_letters(candidate));
    if (distance >= std::max(name.size(), candidate.size()) || distance >= best_distance) continue;
    best = &candidate;
    best_distance = distance;
  }
  return best ? *best : "";
}

// The names as a list for a sentence, the nearest first: "strength, size, color"; "none" if there are no names.
inline std::string listed_from(std::string_view name, std::vector<std::string> names) {
  if (name.size() <= detail::kSuggestedLengthMax) {
    const std::string small = detail::in_small_letters(name);
    std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
      return detail::edit_distance(small, detail::in_small_letters(a)) <
             detail::edit_distance(small, detail::in_small_letters(b));
    });
  }
  std::string list;
  for (const std::string& one : names) list += (list.empty() ? "" : ", ") + one;
  return list.empty() ? "none" : list;
}

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
