// Gathers and folds the notes of a plan; see notes.h. partition.cpp writes the one of guesses.
#include "plan/notes.h"

#include "plan/fold.h"
#include "plan/plan.h"
#include "plan/template_names.h"

namespace millrace::plan {

namespace {

void add_guesses(const Plan& plan, std::vector<std::string>& notes) {
  if (plan.guessed) notes.push_back(note_of_guesses(plan));
}

} // namespace

std::vector<std::string> all_notes(const Plan& plan) {
  std::vector<std::string> notes = plan.notes;
  notes.insert(notes.end(), plan.said.begin(), plan.said.end());
  add_guesses(plan, notes);
  return notes;
}

std::vector<std::string> notes_by_template(const Plan& plan, const std::vector<std::string>& notes) {
  const TemplateNames names(plan);
  if (names.empty()) return notes;
  std::vector<Row> rows;
  for (const std::string& note : notes) {
    const TemplateNames::Stream own = names.stream_in(note);
    const std::string text = names.by_template(note, own);
    rows.push_back({text, text, own});
  }
  std::vector<std::string> lines;
  for (const Fold& folded : fold(rows, names)) {
    const size_t first = folded.rows[0];
    const std::string line =
        folded.is_one() ? notes[first] : rows[first].key + " (" + stream_words(folded, rows, names) + ")";
    lines.push_back(names.with_short_lists(line));
  }
  return lines;
}

std::vector<std::string> notes_of_run(const Plan& plan, bool verbose) {
  std::vector<std::string> notes = plan.notes;
  if (verbose) add_guesses(plan, notes);
  return notes_by_template(plan, notes);
}

} // namespace millrace::plan
