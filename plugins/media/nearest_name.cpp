// Levenshtein's distance over a handful of short names.
#include "plugins/media/nearest_name.h"

#include <algorithm>
#include <numeric>

namespace millrace::media {

namespace {

size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

} // namespace

std::string nearest_of(const std::string& given, const std::vector<std::string>& names) {
  const std::string* nearest = nullptr;
  size_t least = std::max<size_t>(1, given.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t apart = distance(given, name);
    if (apart >= least) continue;
    least = apart;
    nearest = &name;
  }
  return nearest ? *nearest : "";
}

std::string nearest_in_words(const std::string& given, const std::vector<std::string>& names) {
  const std::string nearest = nearest_of(given, names);
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

std::string listed(const std::vector<std::string>& names, const char* last) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : ", ";
    text += names[i];
  }
  return text;
}

} // namespace millrace::media
