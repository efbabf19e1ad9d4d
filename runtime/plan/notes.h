// Notes of a plan as they are printed: one line for all streams of a template.
#pragma once

#include <string>
#include <vector>

namespace millrace::plan {

struct Plan;

// The handlers whose costs were guessed when the segments were cut (Plan::guessed).
std::string note_of_guesses(const Plan& plan);

// The plan's own notes, then what handlers said while it was made, then the note of guesses if there is one.
std::vector<std::string> all_notes(const Plan& plan);

// Notes that say the same of several streams become one, with the number of streams.
std::vector<std::string> notes_by_template(const Plan& plan, const std::vector<std::string>& notes);

// The notes that a run prints before its first tick. Guessed costs are for people who look at the plan, so only
// `verbose` has them. A run logs itself what its handlers said.
std::vector<std::string> notes_of_run(const Plan& plan, bool verbose);

} // namespace millrace::plan
