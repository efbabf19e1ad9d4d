// Builds the tree from the events of the YAML reader: its own tree would lose places, double keys and quotes.
#include "graph/document.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>
#include <nlohmann/json.hpp>

#include "graph/limits.h"
#include "observe/error_codes.h"
#include "observe/secrets.h"

namespace millrace::graph {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Converts the reader's byte columns to columns of characters, in logarithmic time even on one endless line.
class Columns {
 public:
  explicit Columns(const std::string& text) {
    line_starts_.push_back(0);
    for (size_t i = 0; i < text.size(); ++i) {
      if (is_continuation(text[i])) continuations_.push_back(i);
      if (text[i] == '\n') line_starts_.push_back(i + 1);
    }
  }
  Position at(const YAML::Mark& mark) const {
    if (mark.is_null()) return {1, 1};
    const size_t line = std::min(static_cast<size_t>(mark.line), line_starts_.size() - 1);
    const size_t start = line_starts_[line];
    const auto inside = [&](size_t offset) {
      return std::lower_bound(continuations_.begin(), continuations_.end(), offset) - continuations_.begin();
    };
    const auto skipped = inside(start + static_cast<size_t>(mark.column)) - inside(start);
    return {static_cast<int>(line) + 1, mark.column + 1 - static_cast<int>(skipped)};
  }

 private:
  std::vector<size_t> line_starts_, continuations_;
};

Place place_of(const std::string& file, Position at) { return {file, at.line, at.column}; }

// Length of the UTF-8 sequence at `i`, 0 if there is none (RFC 3629: no overlong forms, no surrogates).
size_t sequence_length(const std::string& text, size_t i) {
  const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  const auto follows = [&](size_t k) { return (byte(k) & 0xC0u) == 0x80u; };
  const unsigned first = byte(i), second = byte(i + 1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(i + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && second < 0xA0) return 0;
    if (first == 0xED && second > 0x9F) return 0;
    return follows(i + 1) && follows(i + 2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && second < 0x90) return 0;
    if (first == 0xF4 && second > 0x8F) return 0;
    return follows(i + 1) && follows(i + 2) && follows(i + 3) ? 4 : 0;
  }
  return 0;
}

std::string hex(char c) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// YAML forbids tabs in indentation; the reader's own message for it is no help.
void check_indentation(const std::string& text, const std::string& file) {
  int line = 1;
  for (size_t start = 0; start < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const size_t content = std::min(text.find_first_not_of(" \t\r", start), end);
    const size_t tab = std::min(text.find('\t', start), end);
    if (content < end && tab < content)
      throw Failure(Error{code::not_yaml,
                          "a tab in the indentation",
                          {file, line, static_cast<int>(tab - start) + 1},
                          {"YAML is indented by spaces"},
                          "",
                          "two spaces instead of each tab"});
    start = end + 1;
  }
}

// The usual causes of a message of the reader.
std::vector<std::string> usual_causes(const std::string& reason) {
  if (reason.find("illegal map value") != std::string::npos)
    return {"expected one value; a text that holds ': ' has to be quoted"};
  if (reason.find("end of map not found") != std::string::npos)
    return {"expected another key in the column of the key above, or the map's end"};
  if (reason.find("end of map flow not found") != std::string::npos)
    return {"expected ',' or the closing '}'; a quote may be open before it"};
  if (reason.find("end of sequence flow not found") != std::string::npos)
    return {"expected ',' or the closing ']'; a quote may be open before it"};
  if (reason.find("end of sequence not found") != std::string::npos)
    return {"expected another '- ' in the column of the one above, or the list's end"};
  if (reason.find("illegal flow end") != std::string::npos)
    return {"expected each '[' closed by ']' and each '{' by '}'"};
  return {};
}

// The text's lines, without their ends.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

bool is_blank(std::string_view line) {
  const size_t at = line.find_first_not_of(" \r");
  return at == std::string_view::npos || line[at] == '#';
}

std::string columns_in_words(size_t spaces) { return std::to_string(spaces) + (spaces == 1 ? " space" : " spaces"); }

// The error for a line whose indentation fits no line above it. The reader reports a map that does not end, or a value
// that it took for the continuation of the last one.
std::optional<Error> refuse_indentation(std::string_view text, const std::string& file, Position at) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (at.line < 2 || static_cast<size_t>(at.line) > lines.size()) return {};
  const auto line = static_cast<size_t>(at.line) - 1;
  const size_t indent = indent_of(lines[line]);
  std::vector<size_t> open; // the columns of the lines above that may be continued, innermost first
  for (size_t above = line; above-- > 0;)
    if (!is_blank(lines[above]) && (open.empty() || indent_of(lines[above]) < open.back()))
      open.push_back(indent_of(lines[above]));
  if (open.empty() || std::find(open.begin(), open.end(), indent) != open.end()) return {};
  const auto off = [&](size_t column) { return column > indent ? column - indent : indent - column; };
  const size_t meant = *std::min_element(open.begin(), open.end(), [&](size_t a, size_t b) { return off(a) < off(b); });
  std::string list;
  for (size_t i = open.size(); i-- > 0;) list += (list.empty() ? "" : i == 0 ? " or " : ", ") + std::to_string(open[i]);
  const std::string_view content = lines[line].substr(indent);
  const std::string key(content.substr(0, content.find_first_of(": ")));
  return Error{code::not_yaml,
               "this line begins after " + columns_in_words(indent) + ", and no line above it does",
               {file, at.line, static_cast<int>(indent) + 1},
               {"lines that belong together begin in one column; those above begin after " + list + " spaces"},
               "",
               columns_in_words(meant) + " before '" + shown(key) + "'"};
}

// Builds the tree while the reader goes through the text. Refuses early a text that is too deep or too large, and keys
// that are given twice.
class Builder final : public YAML::EventHandler {
 public:
  Builder(const std::string& file, const Columns& columns) : file_(file), columns_(columns) {}

  Value take() { return std::move(root_); }
  // The list or map that was being read when the reader gave up; null if there was none.
  const Value* innermost() const { return open_.empty() ? nullptr : &open_.back().value; }
  // The keys that lead to it: "handlers.video.width".
  std::string path() const {
    std::string path;
    for (const Open& open : open_)
      if (!open.value.names.empty()) path += (path.empty() ? "" : ".") + open.value.names.back().text;
    return path;
  }
  std::vector<std::string> anchors() const { return anchor_names_; }
  void OnAnchor(const YAML::Mark&, const std::string& name) override { anchor_names_.push_back(name); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Value value;
    value.at = columns_.at(mark);
    finish(std::move(value), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Position at = columns_.at(mark);
    const auto known = anchored_.find(anchor);
    if (known == anchored_.end())
      throw Failure(Error{code::alias_limit,
                          "the alias is part of what it stands for",
                          place_of(file_, at),
                          {},
                          "",
                          "write the values out"});
    count_copies(known->second, at, static_cast<int>(open_.size()));
    finish(known->second, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Value value;
    value.kind = Value::Kind::scalar;
    value.at = columns_.at(mark);
    value.quoted = tag == "!";
    value.text = text;
    check_tag(tag, value.at);
    check_escapes(value);
    if (text.find('\0') != std::string::npos)
      throw Failure(Error{code::not_utf8, "a text holds the character 0", place_of(file_, value.at), {}, "", ""});
    finish(std::move(value), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Value::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Value::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Value value;
    YAML::anchor_t anchor;
    std::map<std::string, Position> known; // map: the keys so far
    bool key_next = true;                  // map: a key comes before each value
  };

  // Refuses the escapes \N and \_, from which yaml-cpp makes one byte that is no character.
  void check_escapes(const Value& value) const {
    for (size_t i = 0, length; i < value.text.size(); i += length) {
      length = sequence_length(value.text, i);
      if (length > 0) continue;
      throw Failure(Error{code::not_utf8,
                          "an escape in this text makes the byte " + hex(value.text[i]) + ", which is not UTF-8",
                          place_of(file_, value.at),
                          {},
                          "",
                          "the character itself in place of \\N or \\_"});
    }
  }
  void check_tag(const std::string& tag, Position at) const {
    if (tag.empty() || tag == "!" || tag == "?") return;
    throw Failure(Error{code::not_yaml,
                        "the tag '" + shown(tag) + "' is not read",
                        place_of(file_, at),
                        {"what a value is follows from its key"},
                        "",
                        "leave the tag out"});
  }
  void check_depth(Position at, int depth) const {
    if (depth <= kNestingMax) return;
    throw Failure(Error{code::text_limit,
                        "the text nests more than " + std::to_string(kNestingMax) + " levels",
                        place_of(file_, at),
                        {},
                        "",
                        "a parameter with dots, a.b.c: 1, for maps within maps"});
  }
  void count(Position at, int code) {
    if (++count_ <= kValuesMax) return;
    throw Failure(Error{code,
                        "the text stands for more than " + std::to_string(kValuesMax) + " values",
                        place_of(file_, at),
                        {},
                        "",
                        ""});
  }
  void count_copies(const Value& value, Position at, int depth) {
    if (!value.items.empty()) check_depth(at, depth + 1);
    count(at, code::alias_limit);
    for (size_t i = 0; i < value.names.size(); ++i) count(at, code::alias_limit);
    for (const Value& item : value.items) count_copies(item, at, depth + 1);
  }
  void open(Value::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    const Position at = columns_.at(mark);
    check_tag(tag, at);
    check_depth(at, static_cast<int>(open_.size()) + 1);
    Open opened{{}, anchor, {}, true};
    opened.value.kind = kind;
    opened.value.at = at;
    open_.push_back(std::move(opened));
  }
  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    finish(std::move(closed.value), closed.anchor);
  }
  void finish(Value value, YAML::anchor_t anchor) {
    count(value.at, code::text_limit);
    if (anchor != 0) anchored_[anchor] = value;
    if (open_.empty())
      root_ = std::move(value);
    else if (Open& parent = open_.back(); parent.value.kind == Value::Kind::map && parent.key_next)
      add_key(parent, std::move(value));
    else {
      // The reader gives a missing value the place where it stopped looking for it.
      if (value.kind == Value::Kind::null && !parent.value.names.empty()) value.at = parent.value.names.back().at;
      parent.value.items.push_back(std::move(value));
      parent.key_next = true;
    }
  }
  void add_key(Open& parent, Value key) {
    if (key.kind != Value::Kind::scalar)
      throw Failure(Error{code::wrong_kind_of_value,
                          "a key has to be a name, not " + described(key),
                          place_of(file_, key.at),
                          {},
                          "",
                          ""});
    const auto [earlier, added] = parent.known.emplace(key.text, key.at);
    if (!added)
      throw Failure(Error{code::duplicate_key,
                          "the key '" + shown(key.text) + "' is given twice",
                          place_of(file_, key.at),
                          {"first at " + file_ + ":" + std::to_string(earlier->second.line) + ":" +
                           std::to_string(earlier->second.column)},
                          "",
                          "remove one of the two"});
    parent.value.names.push_back({std::move(key.text), key.at});
    parent.key_next = false;
  }

  const std::string& file_;
  const Columns& columns_;
  Value root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Value> anchored_;
  std::vector<std::string> anchor_names_;
  size_t count_ = 0;
};

// The error for `*wide` without a `&wide` before it.
Error refuse_alias(std::string_view text, Place place, const std::vector<std::string>& anchors) {
  const std::string_view line = lines_of(text)[static_cast<size_t>(place.line) - 1];
  const size_t star = line.find('*', std::min(static_cast<size_t>(place.column) - 1, line.size()));
  const std::string_view rest = star == std::string_view::npos ? "" : line.substr(star + 1);
  const std::string name(rest.substr(0, rest.find_first_of(" ,]}\r")));
  Error error{code::not_yaml, "nothing before this is marked '&" + shown(name) + "'", std::move(place), {}, "", ""};
  error.notes.push_back("'*" + shown(name) + "' stands for a value that '&" + shown(name) + "' has marked");
  error.nearest = nearest_name(name, anchors);
  if (!error.nearest.empty())
    error.edit = "*" + error.nearest;
  else if (name.find_first_of("./*") != std::string::npos)
    error.edit = "\"*" + shown(name) + "\""; // a pattern of files
  else
    error.edit = "the value itself in place of *" + shown(name);
  if (!error.nearest.empty()) error.nearest.insert(0, "*");
  return error;
}

// The error for "${W}", which the reader takes for the beginning of a map.
std::optional<Error> refuse_variable(std::string_view text, const std::string& file, int first, int last,
                                     const std::string& path) {
  const std::vector<std::string_view> lines = lines_of(text);
  for (int number = std::max(first, 1); number <= last && static_cast<size_t>(number) <= lines.size(); ++number) {
    const std::string_view line = lines[static_cast<size_t>(number) - 1];
    const size_t at = line.find("${");
    if (at == std::string_view::npos) continue;
    const std::string name(line.substr(at, std::min(line.find('}', at), line.size() - 1) + 1 - at));
    const std::string handlers = "handlers.";
    const bool is_param = path.rfind(handlers, 0) == 0 && path.find('.', handlers.size()) != std::string::npos;
    const std::string variable = name.size() > 3 ? name.substr(2, name.size() - 3) : "NAME";
    return Error{code::not_yaml,
                 "'" + shown(name) + "' is not replaced: a pipeline knows no variables",
                 {file, number, static_cast<int>(at) + 1},
                 {"the shell gives a value to the command by --set"},
                 "",
                 "the value itself, or --set " + (is_param ? path.substr(handlers.size()) : "handler.key") + "=\"$" +
                     variable + "\""};
  }
  return {};
}

bool is_json_literal(const std::string& text) {
  if (text == "true" || text == "false") return true;
  if (text.empty() || (text[0] != '-' && (text[0] < '0' || text[0] > '9'))) return false;
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  return parsed.is_number();
}

void append_json(const Value& value, std::string& json) {
  const auto quote = [](const std::string& text) { return nlohmann::json(text).dump(); };
  switch (value.kind) {
    case Value::Kind::null: json += "null"; return;
    case Value::Kind::scalar:
      json += !value.quoted && is_json_literal(value.text) ? value.text : quote(value.text);
      return;
    case Value::Kind::list:
    case Value::Kind::map: break;
  }
  const bool map = value.kind == Value::Kind::map;
  json += map ? '{' : '[';
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) json += ',';
    if (map) json += quote(value.names[i].text) + ":";
    append_json(value.items[i], json);
  }
  json += map ? '}' : ']';
}

} // namespace

const Value* Value::find(const std::string& name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].text == name) return &items[i];
  return nullptr;
}

std::string described(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null: return "nothing";
    case Value::Kind::scalar: return "'" + shown(value.text) + "'";
    case Value::Kind::list: return "a list";
    case Value::Kind::map: return "a map";
  }
  return "";
}

std::string shown(const std::string& given) {
  const std::string text = without_secrets(given); // before it is cut, since a part of an address shows nothing of it
  std::string line = text.substr(0, text.find_first_of("\r\n"));
  if (line.size() > kShownLengthMax) {
    size_t end = kShownLengthMax;
    while (end > 0 && is_continuation(line[end])) --end;
    line.resize(end);
  }
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return line.size() < text.size() ? line + "…" : line;
}

std::string to_json_text(const Value& value) {
  std::string json;
  append_json(value, json);
  return json;
}

void check_text(const std::string& text, const std::string& file) {
  if (text.size() > kTextBytesMax)
    throw Failure(Error{code::text_limit,
                        "the text has " + std::to_string(text.size()) + " bytes",
                        {file, 0, 0},
                        {"at most " + std::to_string(kTextBytesMax) + " are read"},
                        "",
                        ""});
  int line = 1, column = 1;
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text, i);
    if (length == 0)
      throw Failure(Error{code::not_utf8,
                          "the byte " + hex(text[i]) + " is not UTF-8 here",
                          {file, line, column},
                          {"a pipeline is UTF-8 text"},
                          "",
                          "save the file as UTF-8"});
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F)
      throw Failure(Error{code::not_utf8,
                          "the control character " + hex(text[i]) + " may not stand in a pipeline",
                          {file, line, column},
                          {},
                          "",
                          "remove it"});
    line += c == '\n';
    column = c == '\n' ? 1 : column + 1;
    i += length;
  }
}

Value read_document(const std::string& given, const std::string& file) {
  static constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";
  const std::string text = given.rfind(kByteOrderMark, 0) == 0 ? given.substr(3) : given;
  check_text(text, file);
  check_indentation(text, file);
  const Columns columns(text);
  Builder builder(file, columns);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    Value root = builder.take();
    Builder second(file, columns);
    if (parser.HandleNextDocument(second))
      throw Failure(Error{code::not_yaml,
                          "the text holds a second document",
                          place_of(file, second.take().at),
                          {"a pipeline file is one document"},
                          "",
                          "remove the '---' before it"});
    return root;
  } catch (const YAML::Exception& thrown) {
    YAML::Exception error = thrown;
    // yaml-cpp adds the name of the anchor from version 0.8 on; the text at the place has it in any case.
    constexpr std::string_view kNoAnchor = "the referenced anchor is not defined";
    if (error.msg.starts_with(kNoAnchor)) error.msg = kNoAnchor;
    const Position at = columns.at(error.mark);
    if (error.msg == kNoAnchor) throw Failure(refuse_alias(text, place_of(file, at), builder.anchors()));
    const int begin = builder.innermost() ? builder.innermost()->at.line : at.line;
    if (auto refused = refuse_variable(text, file, begin, at.line, builder.path())) throw Failure(std::move(*refused));
    if (error.msg.find("end of map not found") != std::string::npos ||
        error.msg.find("illegal map value") != std::string::npos)
      if (auto refused = refuse_indentation(text, file, at)) throw Failure(std::move(*refused));
    std::vector<std::string> notes = usual_causes(error.msg);
    if (const Value* open = builder.innermost(); open && error.msg.find("flow not found") != std::string::npos)
      notes.push_back("opened at " + file + ":" + std::to_string(open->at.line) + ":" +
                      std::to_string(open->at.column));
    throw Failure(
        Error{code::not_yaml, "this is not YAML: " + error.msg, place_of(file, at), std::move(notes), "", ""});
  }
}

} // namespace millrace::graph
