// Folds the rows of a printed plan: rows that are alike for several streams are printed as one. Private to
// runtime/plan.
#pragma once

#include <string>
#include <vector>

#include "plan/template_names.h"

namespace millrace::plan {

struct Row {
  std::string family;           // its subject, by template: "draw@cameras.video"
  std::string key;              // all that rows of a fold have in common, the family too
  TemplateNames::Stream stream; // a row of none, or of several, is a fold of its own
};

// Rows that are printed as one.
struct Fold {
  std::vector<size_t> rows; // one of each stream, in their order
  bool is_rest = false;     // its streams are all that no other fold of the family has
  bool is_one() const { return rows.size() == 1; }
};

// In the order of their first rows.
std::vector<Fold> fold(const std::vector<Row>& rows, const TemplateNames& names);

// "64 streams"; "2 streams: gate7, hall" if nothing else says which.
std::string stream_words(const Fold& folded, const std::vector<Row>& rows, const TemplateNames& names);
// "gate7, hall"; of many the first few and how many there are.
std::string listed(const std::vector<std::string>& streams);

} // namespace millrace::plan
