// Finds the parts in which the rows of several streams differ; see variants.h.
#include "plan/variants.h"

#include <algorithm>

#include "plan/fold.h"
#include "plan/format_text.h"

namespace millrace::plan {

namespace {

constexpr size_t kOthersMax = 4; // variants that are told; `--json` has all

// The part of `words` that `main` does not have: it begins with a word and ends with a part of the sentence.
std::string difference(const std::string& words, const std::string& main) {
  const size_t shorter = std::min(words.size(), main.size());
  size_t begin = 0;
  for (size_t i = 0; i < shorter && words[i] == main[i]; ++i)
    if (words[i] == ' ') begin = i + 1;
  size_t end = words.size();
  for (size_t i = 1; i <= shorter - begin && words[words.size() - i] == main[main.size() - i]; ++i)
    if (const char c = words[words.size() - i]; c == ',' || c == ';') end = words.size() - i;
  return end > begin ? words.substr(begin, end - begin) : words;
}

} // namespace

void Variants::add(const std::string& stream, const std::string& words) {
  auto at = std::find_if(variants_.begin(), variants_.end(), [&](const Variant& one) { return one.words == words; });
  if (at == variants_.end()) at = variants_.insert(at, {words, {}});
  at->streams.push_back(stream);
}

std::string Variants::words() const {
  const auto main = std::max_element(variants_.begin(), variants_.end(), [](const Variant& a, const Variant& b) {
    return a.streams.size() < b.streams.size();
  });
  std::string others;
  size_t told = 0, untold = 0;
  for (const Variant& variant : variants_) {
    if (&variant == &*main) continue;
    if (++told > kOthersMax) {
      untold += variant.streams.size();
      continue;
    }
    others += (others.empty() ? "" : "; ") + listed(variant.streams) + ": " + difference(variant.words, main->words);
  }
  if (untold > 0) others += "; " + count_of(untold, "other") + (untold == 1 ? " differs" : " differ") + " too";
  return others.empty() ? main->words : main->words + (main->words.empty() ? "(" : " (") + others + ")";
}

} // namespace millrace::plan
