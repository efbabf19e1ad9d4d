// Reads a one-line pipeline: `test.pattern width=640 ! image.blur sigma=2 ! null.sink`.
//
// Words are separated by spaces. `!` as a word of its own joins the items left and right of it; `;` ends a chain. An
// item is a type followed by key=value words, or a reference to an earlier handler: `name.` refers to any, `name.port`
// to one that name= has named. A reference after an item that no `!` follows begins a new chain.
#include <algorithm>
#include <map>
#include <set>

#include "graph/document.h"
#include "graph/file_kind.h"
#include "graph/graph.h"
#include "graph/keys.h"
#include "graph/limits.h"
#include "graph/quantity.h"
#include "graph/reference.h"
#include "graph/stray_word.h"
#include "observe/error_codes.h"

namespace millrace::graph {

namespace {

// A word with its quotes and backslashes resolved.
struct Word {
  std::string text;
  size_t equals = std::string::npos; // position in `text` of the first '=' that is neither quoted nor escaped
  bool bare = true;                  // no part of it is quoted or escaped
  Place place;                       // place of its first character
  Place value_place;                 // place of the first character after the '='
  Place end;                         // place after its last character

  bool is(const char* mark) const { return bare && text == mark; }
  std::string key() const { return text.substr(0, equals); }
  std::string value() const { return text.substr(equals + 1); }
};

class Lexer {
 public:
  explicit Lexer(const std::string& text) : text_(text) {}

  std::vector<Word> words() {
    std::vector<Word> all;
    for (skip_space(); at_ < text_.size(); skip_space()) all.push_back(word());
    return all;
  }
  Place place() const { return {kOneLineFile, line_, column_}; }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  void advance() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else if (at_ >= text_.size() || (static_cast<unsigned char>(text_[at_]) & 0xC0) != 0x80) {
      ++column_; // columns count characters
    }
  }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) advance();
  }
  Word word() {
    Word word;
    word.place = place();
    while (at_ < text_.size() && !is_space(text_[at_])) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        quoted(word, c);
      } else if (c == '\\') {
        escaped(word);
      } else {
        word.text += c;
        advance();
        if (c != '=' || word.equals != std::string::npos) continue;
        word.equals = word.text.size() - 1;
        word.value_place = place();
      }
    }
    word.end = place();
    return word;
  }
  void quoted(Word& word, char quote) {
    const Place begin = place();
    word.bare = false;
    advance();
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && quote == '"') {
        escaped(word);
      } else {
        word.text += text_[at_];
        advance();
      }
    }
    if (at_ == text_.size())
      throw Failure(Error{code::unclosed_quote,
                          "this quote is not closed",
                          begin,
                          {},
                          "",
                          std::string("another ") + quote + " where the text ends"});
    advance();
  }
  void escaped(Word& word) {
    word.bare = false;
    const Place begin = place();
    advance();
    if (at_ == text_.size())
      throw Failure(Error{code::unclosed_quote,
                          "nothing follows this backslash",
                          begin,
                          {"a backslash takes the next character as it is"},
                          "",
                          "\\\\"});
    word.text += text_[at_];
    advance();
  }

  const std::string& text_;
  size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

class LineReader {
 public:
  LineReader(const std::string& text, std::vector<Error>* kept, const FindType& find_type)
      : lexer_(text), words_(lexer_.words()), kept_(kept), find_type_(find_type) {}

  Graph read() {
    if (std::all_of(words_.begin(), words_.end(), [](const Word& word) { return word.is(";"); }))
      throw Failure(Error{
          code::empty_pipeline, "the pipeline is empty", {kOneLineFile, 1, 1}, {}, "", "test.pattern ! null.sink"});
    while (at_ < words_.size()) read_item();
    if (awaits_item_) refuse_dangling(words_.back(), "after");
    name_unnamed();
    return std::move(graph_);
  }

 private:
  // An item of a chain: `!` joins two of them. Handlers are known by position until all names are known.
  struct Item {
    size_t handler = 0;
    std::string port;
    Place place{};
  };

  void read_item() {
    const Word& word = words_[at_];
    if (word.is("!")) {
      if (!has_previous_ || awaits_item_) refuse_dangling(word, "before");
      awaits_item_ = true;
      ++at_;
    } else if (word.is(";")) {
      if (awaits_item_) refuse_dangling(word, "before");
      has_previous_ = false;
      ++at_;
    } else if (const auto reference = as_reference(word)) {
      read_reference_item(word, *reference);
    } else {
      read_handler(word);
    }
  }

  static std::string written(const Place& place) {
    return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  }

  [[noreturn]] void refuse_dangling(const Word& word, const char* side) const {
    throw Failure(Error{code::bad_one_line_pipeline,
                        std::string("there is no handler ") + side + " this '" + word.text + "'",
                        word.place,
                        {"`!` joins two handlers"},
                        "",
                        word.is("!") ? "remove it" : "null.sink"});
  }

  // None if the word is a type. `blur.x` may be a type of a family "blur", so before a port only names that a person
  // gave count.
  std::optional<Item> as_reference(const Word& word) const {
    const size_t dot = word.text.find('.');
    if (!word.bare || word.equals != std::string::npos || dot == std::string::npos || dot == 0) return {};
    const std::string name = word.text.substr(0, dot), port = word.text.substr(dot + 1);
    const auto given = given_.find(name);
    if (given != given_.end() && (port.empty() || is_name(port))) return Item{given->second, port};
    if (!port.empty()) return {};
    const auto implied = implied_.find(name);
    if (implied != implied_.end()) return Item{implied->second, ""};
    std::vector<std::string> known;
    for (const auto& entry : given_) known.push_back(entry.first);
    for (const auto& entry : implied_) known.push_back(entry.first);
    const std::string nearest = nearest_name(name, known);
    throw Failure(Error{code::reference_before_name,
                        "no handler before this is called '" + shown(name) + "'",
                        word.place,
                        {"`name.` refers to a handler"},
                        nearest,
                        nearest.empty() ? "name=" + as_name(name) + " after its type" : nearest + "."});
  }

  void read_reference_item(const Word& word, const Item& item) {
    ++at_;
    std::vector<Word> keys;
    while (at_ < words_.size() && words_[at_].equals != std::string::npos) keys.push_back(words_[at_++]);
    const bool begins = !awaits_item_;
    if (begins && !keys.empty())
      throw Failure(Error{code::bad_one_line_pipeline,
                          "'" + shown(keys[0].text) + "' follows a reference that begins a chain",
                          keys[0].place,
                          {"parameters follow the handler's type, keys of an edge follow the reference it leads to"},
                          "",
                          "put it after the type that it is for"});
    if (begins && (at_ == words_.size() || !words_[at_].is("!")))
      throw Failure(Error{code::bad_one_line_pipeline,
                          "nothing is joined to '" + shown(word.text) + "'",
                          word.place,
                          {"a reference begins a chain, or ends one after `!`"},
                          "",
                          word.text + " ! null.sink"});
    if (!begins) join(item, word.place, keys);
    // After a reference that a chain led to, the chain goes on with the handler's output: the reference's port is an
    // input.
    previous_ = Item{item.handler, begins ? item.port : "", word.place};
    has_previous_ = true;
    awaits_item_ = false;
  }

  void read_handler(const Word& word) {
    if (has_previous_ && !awaits_item_) refuse_unjoined(word);
    if (word.equals != std::string::npos)
      throw Failure(Error{code::bad_one_line_pipeline,
                          "'" + shown(word.text) + "' belongs to no handler",
                          word.place,
                          {"expected a handler type"},
                          "",
                          "test.pattern " + shown(word.text)});
    if (!is_type(word.text)) refuse_type(word);
    if (word.text.find('.') == std::string::npos && (given_.count(word.text) || implied_.count(word.text)))
      throw Failure(Error{code::bad_one_line_pipeline,
                          "'" + word.text + "' is a handler, not a type",
                          word.place,
                          {"a reference ends in a dot or names a port"},
                          "",
                          word.text + "."});
    if (graph_.handlers.size() == kHandlersMax)
      throw Failure(Error{code::text_limit,
                          "the pipeline has more than " + std::to_string(kHandlersMax) + " handlers",
                          word.place,
                          {},
                          "",
                          ""});
    const size_t position = graph_.handlers.size();
    Handler handler;
    handler.type = word.text;
    handler.place = handler.type_place = word.place;
    graph_.handlers.push_back(std::move(handler));
    if (awaits_item_) join({position, ""}, word.place, {});
    previous_ = {position, "", word.place};
    has_previous_ = true;
    awaits_item_ = false;
    for (++at_; at_ < words_.size() && words_[at_].equals != std::string::npos; ++at_)
      if (!attempt(kept_, [&] { read_key(position, words_[at_]); })) graph_.handlers[position].refused = true;
    if (graph_.handlers[position].name.empty()) imply_name(position);
  }

  // Signs that join two things in a shell, a drawing or another language.
  static bool is_foreign_join(const std::string& text) {
    static const std::set<std::string> kJoins = {"|", "->", "=>", ">", ">>", "-->", "|>", "→", "&", "&&", ",", "+"};
    return kJoins.count(text) > 0;
  }

  // Refuses a second item without `!`: most often it was forgotten, sometimes a value lost its '=' or its quotes.
  [[noreturn]] void refuse_unjoined(const Word& word) const {
    const std::string before = words_[at_ - 1].text;
    if (word.bare && word.text.find('.') != std::string::npos && is_type(word.text) && !is_rather_a_file(word.text))
      throw Failure(Error{code::missing_separator,
                          "'!' is missing between '" + shown(before) + "' and '" + word.text + "'",
                          word.place,
                          {"`!` joins two handlers, `;` begins a chain of its own"},
                          "",
                          "! " + word.text});
    Error error{
        code::bad_one_line_pipeline, "'" + shown(word.text) + "' is neither '!' nor key=value", word.place, {}, "", ""};
    error.notes.push_back("expected '!', ';', key=value or a reference such as `name.`");
    const std::string meant = parameters_meant(word, error);
    if (!meant.empty()) {
      error.edit = meant;
    } else if (is_foreign_join(word.text)) {
      error.notes.push_back("`!` joins two handlers");
      error.edit = "!";
    } else if (word.text.find('!') != std::string::npos) {
      error.edit = "spaces around '!'";
    } else if (words_[at_ - 1].equals != std::string::npos) {
      error.edit = words_[at_ - 1].key() + "=\"" + shown(words_[at_ - 1].value() + " " + word.text) + "\"";
    } else if (is_name(word.text)) {
      error.edit = word.text + "=…";
    } else if (file_kind(word.text) != FileKind::other || word.text.find('/') != std::string::npos) {
      error.edit = "path=" + word.text; // as every handler of this tree that opens files calls it
    }
    throw Failure(std::move(error));
  }

  // True for "out.rgb" after a handler that still needs a path, and for a name such as "vtest.avi".
  bool is_rather_a_file(const std::string& word) const {
    if (file_kind(word) != FileKind::other) return true;
    const Handler& handler = graph_.handlers.back();
    const plugin::HandlerInfo* info = find_type_ ? find_type_(handler.type) : nullptr;
    return info && !find_type_(word) && !as_parameters(word, *info, handler, true).empty();
  }

  // `word`, which follows a handler, as parameters of that handler; "" if its type is not known or the word is like
  // none of them. Adds to the error which parameters there are.
  std::string parameters_meant(const Word& word, Error& error) const {
    const Handler& handler = graph_.handlers.back();
    const bool follows_it = previous_.handler + 1 == graph_.handlers.size() && !is_foreign_join(word.text);
    const plugin::HandlerInfo* info = find_type_ && follows_it ? find_type_(handler.type) : nullptr;
    if (!info) return "";
    std::string names;
    for (const auto& param : info->params) names += (names.empty() ? "" : ", ") + param.name;
    error.notes.push_back("parameters of " + info->type + ": " + (names.empty() ? "none" : names));
    const Word& before = words_[at_ - 1];
    const plugin::HandlerInfo::Param* last =
        before.equals == std::string::npos ? nullptr : info->find_param(before.key());
    return as_parameters(word.text, *info, handler, last && is_free_text(*last));
  }

  [[noreturn]] void refuse_type(const Word& word) const {
    Error error{code::bad_one_line_pipeline,
                "'" + shown(word.text) + "' is no handler type",
                word.place,
                {"expected family.name"},
                "",
                ""};
    if (const FileKind kind = file_kind(word.text); kind != FileKind::other) {
      const bool reads = !awaits_item_;
      error.notes.push_back(std::string("it is the name of a ") + (kind == FileKind::video ? "video" : "picture") +
                            ", which a handler " + (reads ? "reads" : "writes"));
      error.edit = reads ? source_of(word.text) : sink_of(word.text);
      throw Failure(std::move(error));
    }
    if (!word.text.empty() && word.text.back() == ';' && is_type(word.text.substr(0, word.text.size() - 1))) {
      error.notes.push_back("`;` is a word of its own");
      error.edit = word.text.substr(0, word.text.size() - 1) + " ;";
    }
    if (word.text.find('!') != std::string::npos) error.edit = "spaces around '!'";
    throw Failure(std::move(error));
  }

  void read_key(size_t position, const Word& word) {
    Handler& handler = graph_.handlers[position];
    const std::string key = word.key(), value = word.value();
    if (std::any_of(keys_.begin(), keys_.end(), [&](const auto& k) { return k.first == position && k.second == key; }))
      throw Failure(Error{code::duplicate_key,
                          "the key '" + shown(key) + "' is given twice",
                          word.place,
                          {},
                          "",
                          "remove one of the two"});
    keys_.insert({position, key});
    if (is_comment_key(key)) return;
    if (key == "name") return set_name(position, word);
    if (key == "for_each" || key == "batch" || key.starts_with("batch."))
      throw Failure(Error{code::conflicting_keys,
                          "'" + shown(key) + "' needs streams, and a one-line pipeline has none",
                          word.place,
                          {"a pipeline file may have 'streams:'"},
                          "",
                          "leave '" + shown(key) + "' out"});
    if (const auto* reserved = find_key(handler_keys(), key)) {
      if (reserved->takes == Takes::not_yet) refuse_not_yet(*reserved, word.place);
      if (reserved->takes == Takes::shape)
        throw Failure(Error{code::bad_one_line_pipeline,
                            "'" + key + "=' shapes the graph, which `!` does here",
                            word.place,
                            {"inputs come from the left of `!`"},
                            "",
                            key == "type" ? shown(value) : shown(value) + " ! " + handler.type});
      try {
        reserved->assign(handler, read_setting(*reserved, value, word.value_place));
      } catch (const Failure& failure) {
        throw Failure(as_assignment(failure.error()));
      }
      if (key == "clock") check_clock(graph_, handler, word.value_place);
      if (key == "node") check_node(graph_, "'" + handler.type + "'", handler.node, word.value_place);
      return;
    }
    if (!is_type(key))
      throw Failure(Error{code::bad_name,
                          "a parameter cannot be called '" + shown(key) + "'",
                          word.place,
                          {"expected letters, digits, '_' and '-', a letter first"},
                          "",
                          is_type(key.substr(std::min(key.find_first_not_of('-'), key.size())))
                              ? key.substr(key.find_first_not_of('-')) + "=" + shown(value)
                              : "quotes around the value that this is part of"});
    if (handler.params.size() == kParamsMax)
      throw Failure(Error{code::text_limit,
                          "the handler has more than " + std::to_string(kParamsMax) + " parameters",
                          word.place,
                          {},
                          "",
                          ""});
    handler.params.push_back({key, value, word.value_place, word.place});
  }

  void set_name(size_t position, const Word& word) {
    const std::string name = word.value();
    if (!is_name(name))
      throw Failure(
          Error{code::bad_name,
                "a handler cannot be called '" + shown(name) + "'",
                word.value_place,
                {"expected letters, digits, '_' and '-', a letter first, at most " + std::to_string(kNameLengthMax)},
                "",
                as_name(name).empty() ? "" : "name=" + as_name(name)});
    if (!given_.emplace(name, position).second)
      throw Failure(Error{code::duplicate_name,
                          "two handlers are called '" + name + "'",
                          word.value_place,
                          {"the first is at " + std::string(kOneLineFile) +
                           ":1:" + std::to_string(graph_.handlers[given_.at(name)].place.column)},
                          "",
                          "name=" + name + "2"});
    graph_.handlers[position].name = name;
    graph_.handlers[position].place = word.value_place;
  }

  // The implied name is the last part of the type, with a number if it repeats: blur, blur2, blur3.
  void imply_name(size_t position) {
    const std::string& type = graph_.handlers[position].type;
    const std::string stem = type.substr(type.rfind('.') + 1).substr(0, kNameLengthMax - kNumberLength);
    std::string name;
    do {
      const size_t count = ++repeats_[stem];
      name = count == 1 ? stem : stem + std::to_string(count);
    } while (!implied_.emplace(name, position).second); // a type may itself end in blur2
  }

  // A name that a person gives later may be an implied one: then the implied one gets the next free number.
  void name_unnamed() {
    for (const auto& [name, position] : implied_) graph_.handlers[position].name = name;
    for (const auto& [name, position] : implied_) {
      if (!given_.count(name)) continue;
      const std::string& type = graph_.handlers[position].type;
      const std::string stem = type.substr(type.rfind('.') + 1).substr(0, kNameLengthMax - kNumberLength);
      std::string free;
      do free = stem + std::to_string(++repeats_[stem]);
      while (given_.count(free) || implied_.count(free));
      graph_.handlers[position].name = free;
    }
    for (size_t i = 0; i < graph_.edges.size(); ++i) {
      graph_.edges[i].source = graph_.handlers[ends_[i].first].name;
      graph_.edges[i].target = graph_.handlers[ends_[i].second].name;
    }
  }

  void join(const Item& target, const Place& place, const std::vector<Word>& keys) {
    if (graph_.edges.size() == kEdgesMax)
      throw Failure(Error{
          code::text_limit, "the pipeline has more than " + std::to_string(kEdgesMax) + " edges", place, {}, "", ""});
    Edge edge;
    edge.source_port = previous_.port;
    edge.target_port = target.port;
    edge.target_index = entries_[{target.handler, target.port}]++;
    edge.place = place;
    edge.source_place = previous_.place;
    std::vector<Name> given;
    for (const Word& word : keys) {
      const auto* key = find_key(edge_keys(), word.key());
      if (!key || key->takes == Takes::shape) refuse_edge_key(word);
      for (const Name& earlier : given)
        if (earlier.text == key->name)
          throw Failure(Error{code::duplicate_key,
                              "the key '" + key->name + "' is given twice",
                              word.place,
                              {},
                              "",
                              "remove one of the two"});
      try {
        key->assign(edge, read_setting(*key, word.value(), word.value_place));
      } catch (const Failure& failure) {
        throw Failure(as_assignment(failure.error()));
      }
      given.push_back({key->name, {word.place.line, word.place.column}});
    }
    try {
      check_edge(edge, given, kOneLineFile);
    } catch (const Failure& failure) {
      throw Failure(as_assignment(failure.error()));
    }
    graph_.edges.push_back(std::move(edge));
    ends_.emplace_back(previous_.handler, target.handler);
  }

  [[noreturn]] void refuse_edge_key(const Word& word) const {
    std::vector<std::string> known = names_of(edge_keys());
    known.erase(known.begin()); // without `from`, which stands left of the `!`
    std::string list;
    for (const std::string& key : known) list += (list.empty() ? "" : ", ") + key;
    const std::string nearest = nearest_name(word.key(), known);
    throw Failure(Error{code::unknown_key,
                        "'" + shown(word.key()) + "' is no key of an edge",
                        word.place,
                        {"expected " + list},
                        nearest,
                        nearest.empty() ? "remove it" : nearest + "=" + shown(word.value())});
  }

  // Room for the number that is appended to an implied name.
  static constexpr size_t kNumberLength = 6;

  Lexer lexer_;
  std::vector<Word> words_;
  std::vector<Error>* const kept_;
  const FindType& find_type_;
  size_t at_ = 0;
  Graph graph_;
  Item previous_;
  bool has_previous_ = false; // an item that `!` may join stands left
  bool awaits_item_ = false;  // a `!` was read last
  std::map<std::string, size_t> given_, implied_, repeats_;
  std::set<std::pair<size_t, std::string>> keys_;
  std::map<std::pair<size_t, std::string>, uint32_t> entries_; // edges so far, by target and port
  std::vector<std::pair<size_t, size_t>> ends_;                // source and target handler of each edge
};

} // namespace

Graph parse_line(const std::string& text, std::vector<Error>* kept) { return parse_line(text, kept, {}); }

Graph parse_line(const std::string& text, std::vector<Error>* kept, const FindType& find_type) {
  check_text(text, kOneLineFile);
  return LineReader(text, kept, find_type).read();
}

} // namespace millrace::graph
