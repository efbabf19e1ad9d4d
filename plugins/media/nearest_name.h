// Finds the name that a person probably meant.
#pragma once

#include <string>
#include <vector>

namespace millrace::media {

// The nearest of `names` by edit distance, at most a third of the length (but 1 is always allowed); "" if none is near.
std::string nearest_of(const std::string& given, const std::vector<std::string>& names);
// " (did you mean 'h264'?)" with the nearest name; "" if none is near.
std::string nearest_in_words(const std::string& given, const std::vector<std::string>& names);

// "a, b or c".
std::string listed(const std::vector<std::string>& names, const char* last = " or ");

} // namespace millrace::media
