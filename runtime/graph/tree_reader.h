// The common part of those that read parts of a pipeline file's tree: places, kinds of values, keys by their tables.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graph/keys.h"
#include "graph/limits.h"
#include "graph/quantity.h"
#include "graph/stray_word.h"
#include "observe/error_codes.h"
#include "observe/secrets.h"

namespace millrace::graph {

class TreeReader {
 public:
  // Mistakes that do not end the reading are added to `kept`; null: the first one is thrown.
  TreeReader(const std::string& file, std::vector<Error>* kept) : file_(file), kept_(kept) {}

 protected:
  Place place(Position at) const { return {file_, at.line, at.column}; }
  static std::string words_of(const Place& place) {
    return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  }

  void expect(const Value& value, Value::Kind kind, const std::string& whose, const std::string& expected,
              std::string edit) const {
    if (value.kind == kind) return;
    throw Failure(Error{code::wrong_kind_of_value,
                        whose + " cannot be " + described(value),
                        place(value.at),
                        {"expected " + expected},
                        "",
                        std::move(edit)});
  }

  // Refuses a key that no table has. A forgotten space makes `type:image.blur` one word; the edit then splits it.
  template <class Keys>
  [[noreturn]] void refuse_key(const Name& name, const Value& value, const std::string& where, const Keys& keys) const {
    Error error{code::unknown_key, "'" + shown(name.text) + "' is no key of " + where, place(name.at), {}, "", ""};
    std::string list;
    for (const auto& key : keys)
      if (key.takes != Takes::not_yet) list += key.name + ", ";
    error.notes.push_back("expected " + list + "or x-…");
    const std::string key = without_secrets(name.text); // before it is cut, as in shown()
    const size_t colon = key.find(':');
    error.nearest = nearest_name(key.substr(0, colon), names_of(keys));
    const bool glued = colon != std::string::npos;
    const std::string text = glued ? key.substr(colon + 1) : value.kind == Value::Kind::scalar ? value.text : "…";
    error.edit =
        error.nearest.empty() ? "remove it, or call it x-" + shown(name.text) : error.nearest + ": " + shown(text);
    throw Failure(std::move(error));
  }

  // Refuses a map without a required key; a key that is similar to it is reported as the mistake.
  [[noreturn]] void refuse_missing(const Value& map, const std::string& whose, const KeyInfo& key, Position at) const {
    Error error{code::missing_key,
                whose + " has no '" + key.name + "'",
                place(at),
                {"expected " + key.help},
                "",
                key.name + ": " + key.example};
    for (size_t i = 0; i < map.names.size(); ++i) {
      if (nearest_name(map.names[i].text, {key.name}).empty()) continue;
      error.place = place(map.names[i].at);
      error.notes.push_back("'" + shown(map.names[i].text) + "' is not it");
      error.nearest = key.name;
      if (map.items[i].kind == Value::Kind::scalar) error.edit = key.name + ": " + shown(map.items[i].text);
      break;
    }
    throw Failure(std::move(error));
  }

  const Value& scalar(const KeyInfo& key, const Value& value) const {
    expect(value, Value::Kind::scalar, "'" + key.name + "'", "one value", key.name + ": " + key.example);
    return value;
  }

  // Reads one key by its table; false if the parser has to read it itself.
  template <class Owner>
  bool assign(const Key<Owner>& key, Owner& owner, const Name& name, const Value& value) const {
    if (key.takes == Takes::shape) return false;
    if (key.takes == Takes::not_yet) refuse_not_yet(key, place(name.at));
    if (key.takes == Takes::range && value.kind != Value::Kind::scalar)
      key.assign(owner, read_range(key, value, file_));
    else if (key.takes == Takes::devices && value.kind != Value::Kind::scalar)
      key.assign(owner, read_devices(key, value, file_));
    else
      key.assign(owner, read_setting(key, scalar(key, value).text, place(value.at)));
    return true;
  }

  void check_name(const Name& name, const std::string& whose) const {
    if (is_name(name.text)) return;
    const std::string better = as_name(name.text);
    throw Failure(
        Error{code::bad_name,
              whose + " cannot be called '" + shown(name.text) + "'",
              place(name.at),
              {"expected letters, digits, '_' and '-', a letter first, at most " + std::to_string(kNameLengthMax)},
              "",
              better.empty() ? "" : better + ": …"});
  }

  // The words for what read_nested() reads: "parameter", of "the handler".
  struct NestedWords {
    const char* one;
    const char* owner;
  };
  static constexpr NestedWords kParams{"parameter", "the handler"}, kFields{"field", "the stream"};

  // Adds a value with its name. A map is read by its own names, joined by dots.
  void read_nested(std::vector<Param>& all, const NestedWords& words, const std::string& full_name, const Name& name,
                   const Value& value) const {
    const std::string one = words.one;
    if (!is_type(name.text)) refuse_nested(words, name);
    if (value.kind == Value::Kind::null)
      throw Failure(Error{code::wrong_kind_of_value,
                          "the " + one + " '" + full_name + "' has no value",
                          place(value.at),
                          {"expected a value after the colon"},
                          "",
                          name.text + ": \"\" for an empty text"});
    if (value.kind == Value::Kind::map && !value.items.empty()) {
      for (size_t i = 0; i < value.items.size(); ++i)
        read_nested(all, words, full_name + "." + value.names[i].text, value.names[i], value.items[i]);
      return;
    }
    // `a.b: 1` and `a: {b: 1}` are one name; comparing the keys of one map does not find this.
    for (const Param& earlier : all)
      if (earlier.name == full_name)
        throw Failure(Error{code::duplicate_key,
                            "the " + one + " '" + full_name + "' is given twice",
                            place(name.at),
                            {"first at " + words_of(earlier.name_place)},
                            "",
                            "remove one of the two"});
    if (all.size() == kParamsMax)
      throw Failure(Error{code::text_limit,
                          std::string(words.owner) + " has more than " + std::to_string(kParamsMax) + " " + one + "s",
                          place(name.at),
                          {},
                          "",
                          ""});
    const bool single = value.kind == Value::Kind::scalar;
    all.push_back({full_name, single ? value.text : to_json_text(value), place(value.at), place(name.at)});
  }

  [[noreturn]] void refuse_nested(const NestedWords& words, const Name& name) const {
    if (name.text.find(':') != std::string::npos) {
      const std::string key = without_secrets(name.text); // before it is cut, as in shown()
      const size_t colon = std::min(key.find(':'), key.size());
      throw Failure(Error{code::unknown_key,
                          "'" + shown(key) + "' is no key",
                          place(name.at),
                          {"expected a space after the colon"},
                          "",
                          shown(key.substr(0, colon) + ": " + key.substr(std::min(colon + 1, key.size())))});
    }
    if (name.text == "<<")
      throw Failure(Error{code::unknown_key,
                          "merge keys ('<<') are not read",
                          place(name.at),
                          {"expected the keys themselves"},
                          "",
                          "write the merged keys out"});
    throw Failure(Error{code::bad_name,
                        std::string("a ") + words.one + " cannot be called '" + shown(name.text) + "'",
                        place(name.at),
                        {"expected letters, digits, '_' and '-', a letter first"},
                        "",
                        as_size(name.text, ": ", ", ")});
  }

  const std::string file_;
  std::vector<Error>* const kept_;
};

} // namespace millrace::graph
