// A pipeline file's text as a tree of values that know their places; other files decide what the values mean.
#pragma once

#include <string>
#include <vector>

#include "observe/error.h"

namespace millrace::graph {

struct Position {
  int line = 0, column = 0; // from 1; columns count characters, not bytes
};

struct Name {
  std::string text;
  Position at;
};

struct Value {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false; // a scalar in quotes, or a block of text: never a number
  Position at;
  std::string text;         // scalar
  std::vector<Name> names;  // map: the keys, beside `items`; no key stands twice
  std::vector<Value> items; // list, map

  const Value* find(const std::string& name) const;
};

// The kind of a value for messages: "a list".
std::string described(const Value& value);
// `text`, shortened so that it fits a message.
std::string shown(const std::string& text);
// A list or map inside a list, as compact JSON. Plain scalars that are JSON numbers, true or false stay as written.
std::string to_json_text(const Value& value);

// Reads YAML 1.1 without tags, merge keys and tabs in the indentation; one document. Throws Failure MR0201-MR0208.
Value read_document(const std::string& text, const std::string& file);
// Throws Failure MR0202, MR0203 if `text` is not UTF-8, has control characters, or is too long.
void check_text(const std::string& text, const std::string& file);

} // namespace millrace::graph
