// Formats errors and finds the nearest handler type.
#include "observe/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "observe/printable.h"

namespace millrace {

namespace {

// The part after the last dot. Handlers whose types share it do the same thing in different families.
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

} // namespace

std::string format_code(int code) { return fmt::format("MR{:04}", code); }

std::string format_error(const Error& error) {
  std::string text = fmt::format("error {}: {}", format_code(error.code), printable(error.what));
  const Place& place = error.place;
  if (!place.file.empty() || place.line > 0) {
    text += "\n  at " + (place.file.empty() ? "pipeline" : printable(place.file));
    if (place.line > 0) text += fmt::format(":{}", place.line);
    if (place.line > 0 && place.column > 0) text += fmt::format(":{}", place.column);
  }
  for (const std::string& note : error.notes) text += "\n  " + printable(note);
  if (!error.nearest.empty()) text += fmt::format("\n  did you mean '{}'?", printable(error.nearest));
  if (!error.edit.empty()) text += "\n  try: " + printable(error.edit);
  return text;
}

std::string nearest_type(std::string_view name, const std::vector<std::string>& types) {
  if (std::string whole = nearest_name(name, types); !whole.empty()) return whole;
  const std::string part = detail::in_small_letters(last_part(name));
  const std::string* near = nullptr;
  for (const std::string& type : types) {
    // One letter and no more: acme.invert is not image.convert.
    const size_t distance = detail::edit_distance(part, detail::in_small_letters(last_part(type)));
    if (distance == 0) return type;
    if (distance == 1 && part.size() > 3 && !near) near = &type;
  }
  return near ? *near : "";
}

std::string gpu_meant(std::string_view name) {
  const std::string small = detail::in_small_letters(name);
  for (const char* word : {"gpu", "gpu:0", "gpu0", "cuda", "cuda0", "nvidia", "0"})
    if (small == word) return "cuda:0";
  return "";
}

std::string assignment(const Place& place, const std::string& key, const std::string& value) {
  const bool in_a_line = place.is_one_line() || place.file.rfind("--set", 0) == 0;
  return key + (in_a_line ? "=" : ": ") + value;
}

std::string with_article(const std::string& noun) {
  const bool vowel = !noun.empty() && std::string_view("AEIOUaeiou").find(noun[0]) != std::string_view::npos;
  return (vowel ? "an " : "a ") + noun;
}

void assertion_failed(const char* expression, const char* sentence, const char* file, int line) {
  std::fprintf(stderr, "millrace: assertion failed: %s (%s) at %s:%d\n", sentence, expression, file, line);
  std::fflush(stderr);
  std::abort();
}

} // namespace millrace
