// Folds rows that are alike for several streams into one; see fold.h.
#include "plan/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plan/format_text.h"

namespace millrace::plan {

std::vector<Group> fold(const std::vector<Row>& rows, const TemplateNames& names) {
  std::vector<Group> groups;
  // A stream may have a row twice. Its second one is grouped with the second ones of others.
  std::map<std::tuple<std::string, uint32_t, uint32_t>, size_t> seen;
  std::map<std::tuple<std::string, uint32_t, size_t>, size_t> group_of;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    size_t group = groups.size();
    if (row.stream.is_one()) {
      const size_t times = seen[{row.key, row.stream.set, row.stream.index}]++;
      group = group_of.try_emplace({row.key, row.stream.set, times}, group).first->second;
    }
    if (group == groups.size()) groups.emplace_back();
    groups[group].rows.push_back(r);
  }
  struct Family {
    size_t rows = 0, largest = 0; // largest: a group
  };
  std::map<std::pair<std::string, uint32_t>, Family> families;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Row& row = rows[groups[g].rows[0]];
    Family& family = families.try_emplace({row.family, row.stream.set}, Family{0, g}).first->second;
    family.rows += groups[g].rows.size();
    if (groups[g].rows.size() > groups[family.largest].rows.size()) family.largest = g;
  }
  for (const auto& [key, family] : families)
    groups[family.largest].is_rest = key.second != kNone && family.rows >= names.sets()[key.second].streams.size();
  return groups;
}

std::string listed(const std::vector<std::string>& streams) {
  constexpr size_t kListedMax = 8;
  std::string words;
  for (size_t i = 0; i < std::min(streams.size(), kListedMax); ++i) words += (i == 0 ? "" : ", ") + streams[i];
  return streams.size() <= kListedMax ? words : words + fmt::format(", … ({})", streams.size());
}

std::string stream_words(const Group& group, const std::vector<Row>& rows, const TemplateNames& names) {
  const std::string count = count_of(group.rows.size(), "stream");
  if (group.is_rest) return count;
  std::vector<std::string> streams;
  for (const size_t r : group.rows) streams.push_back(names.name_of(rows[r].stream));
  return count + ": " + listed(streams);
}

} // namespace millrace::plan
