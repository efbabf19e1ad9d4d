// Folds rows that are alike for several streams into one; see fold.h.
#include "plan/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plan/format_text.h"

namespace millrace::plan {

std::vector<Fold> fold(const std::vector<Row>& rows, const TemplateNames& names) {
  std::vector<Fold> folds;
  // A stream may have a row twice. Its second one is folded with the second ones of others.
  std::map<std::tuple<std::string, uint32_t, uint32_t>, size_t> seen;
  std::map<std::tuple<std::string, uint32_t, size_t>, size_t> fold_of;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    size_t at = folds.size();
    if (row.stream.is_one()) {
      const size_t times = seen[{row.key, row.stream.set, row.stream.index}]++;
      at = fold_of.try_emplace({row.key, row.stream.set, times}, at).first->second;
    }
    if (at == folds.size()) folds.emplace_back();
    folds[at].rows.push_back(r);
  }
  struct Family {
    size_t rows = 0, largest = 0; // largest: a fold
  };
  std::map<std::pair<std::string, uint32_t>, Family> families;
  for (size_t g = 0; g < folds.size(); ++g) {
    const Row& row = rows[folds[g].rows[0]];
    Family& family = families.try_emplace({row.family, row.stream.set}, Family{0, g}).first->second;
    family.rows += folds[g].rows.size();
    if (folds[g].rows.size() > folds[family.largest].rows.size()) family.largest = g;
  }
  for (const auto& [key, family] : families)
    folds[family.largest].is_rest = key.second != kNone && family.rows >= names.sets()[key.second].streams.size();
  return folds;
}

std::string listed(const std::vector<std::string>& streams) {
  constexpr size_t kListedMax = 8;
  std::string words;
  for (size_t i = 0; i < std::min(streams.size(), kListedMax); ++i) words += (i == 0 ? "" : ", ") + streams[i];
  return streams.size() <= kListedMax ? words : words + fmt::format(", … ({})", streams.size());
}

std::string stream_words(const Fold& folded, const std::vector<Row>& rows, const TemplateNames& names) {
  const std::string count = count_of(folded.rows.size(), "stream");
  if (folded.is_rest) return count;
  std::vector<std::string> streams;
  for (const size_t r : folded.rows) streams.push_back(names.name_of(rows[r].stream));
  return count + ": " + listed(streams);
}

} // namespace millrace::plan
