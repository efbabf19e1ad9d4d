// The name that somebody probably meant.
#pragma once

#include <string>
#include <vector>

namespace millrace::media {

// The nearest of `names` by edit distance, of at most a third of the length and at least 1; "" where none is near.
std::string nearest_of(const std::string& given, const std::vector<std::string>& names);
// " (did you mean 'h264'?)" with it; "" where none is near.
std::string nearest_in_words(const std::string& given, const std::vector<std::string>& names);

// "a, b or c".
std::string listed(const std::vector<std::string>& names, const char* last = " or ");

} // namespace millrace::media
