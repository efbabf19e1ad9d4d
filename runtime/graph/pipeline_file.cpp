// Reads a pipeline file: turns the document's tree into a graph, key by key as the tables say.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "graph/confine.h"
#include "graph/document.h"
#include "graph/file_kind.h"
#include "graph/graph.h"
#include "graph/keys.h"
#include "graph/limits.h"
#include "graph/quantity.h"
#include "graph/read_streams.h"
#include "graph/reference.h"
#include "graph/stray_word.h"
#include "graph/tree_reader.h"
#include "graph/unfold.h"
#include "observe/secrets.h"

namespace millrace::graph {

namespace {

class Reader : TreeReader {
 public:
  Reader(const std::string& file, std::vector<Error>* kept, const Confine* confine)
      : TreeReader(file, kept), confine_(confine) {}

  Graph read(const Value& root) {
    if (root.kind == Value::Kind::null)
      throw Failure(Error{code::empty_pipeline, "the pipeline is empty", {file_, 1, 1}, {}, "", "version: 1"});
    if (root.kind == Value::Kind::scalar && root.text.find(" ! ") != std::string::npos)
      throw Failure(Error{code::wrong_kind_of_value,
                          "this file holds a one-line pipeline",
                          place(root.at),
                          {"a file has keys such as version and handlers; a line is an argument of the command"},
                          "",
                          "millrace run '" + shown(root.text) + "'"});
    expect(root, Value::Kind::map, "the pipeline", "keys such as version and handlers", "version: 1");
    attempt(kept_, [&] { check_version(root); });
    for (size_t i = 0; i < root.names.size(); ++i)
      attempt(kept_, [&] { read_top(root, root.names[i], root.items[i]); });
    const Value* handlers = root.find("handlers");
    if (!handlers) refuse_missing(root, "the pipeline", *find_key(top_keys(), "handlers"), {1, 1});
    read_handlers(*handlers);
    for (const auto& named : clock_places_) // no structured binding: clang 14 does not capture one
      attempt(kept_, [&] { check_clock(graph_, graph_.handlers[named.first], named.second); });
    if (!root.find("streams") || !graph_.streams.empty()) // else they were refused, and are no further mistakes
      for (Handler& handler : graph_.handlers)
        if (handler.batch && !attempt(kept_, [&] { check_batch(graph_, handler, handler.batch->place); }))
          handler.batch.reset();
    const bool nodes_refused = root.find("nodes") && graph_.nodes.empty(); // then the names are no further mistakes
    if (nodes_refused) nodes_named_.clear();
    for (const NodeNamed& named : nodes_named_)
      attempt(kept_, [&] { check_node(graph_, named.by, named.node, named.place); });
    if (root.find("streams") || has_templates()) check_streams();
    return std::move(graph_);
  }

 private:
  bool has_templates() const {
    return std::any_of(graph_.handlers.begin(), graph_.handlers.end(),
                       [](const Handler& handler) { return !handler.for_each.empty(); });
  }
  // Refuses what has no instances. Mistakes of other kinds are told first: they may be the cause.
  void check_streams() const {
    if (!kept_ || kept_->empty()) (void)unfold(graph_, kept_);
  }

  void check_version(const Value& root) const {
    const KeyInfo& key = *find_key(top_keys(), "version");
    const Value* version = root.find("version");
    if (!version) refuse_missing(root, "the pipeline", key, {1, 1});
    if (scalar(key, *version).text == "1") return;
    throw Failure(Error{code::unknown_version,
                        "the file format's version '" + shown(version->text) + "' is not read",
                        place(version->at),
                        {"expected 1"},
                        "",
                        "version: 1"});
  }

  void read_top(const Value& root, const Name& name, const Value& value) {
    if (is_comment_key(name.text)) return;
    const KeyInfo* key = find_key(top_keys(), name.text);
    if (!key) refuse_key(name, value, "the pipeline", top_keys());
    if (key->takes == Takes::not_yet) refuse_not_yet(*key, place(name.at));
    if (name.text == "name") graph_.name = read_setting(*key, scalar(*key, value).text, place(value.at)).text;
    if (name.text == "nodes") read_nodes(value);
    if (name.text == "streams") graph_.streams = read_streams(value, file_, kept_, confine_);
    if (name.text == "clock") graph_.clocks.push_back(read_clock("", name.at, value));
    if (name.text == "clocks") {
      if (root.find("clock"))
        throw Failure(Error{code::conflicting_keys,
                            "'clock' and 'clocks' exclude each other",
                            place(name.at),
                            {},
                            "",
                            "remove one of the two"});
      expect(value, Value::Kind::map, "'clocks'", "clocks by name", "clocks: " + key->example);
      for (size_t i = 0; i < value.names.size(); ++i) {
        check_name(value.names[i], "a clock");
        graph_.clocks.push_back(read_clock(value.names[i].text, value.names[i].at, value.items[i]));
      }
    }
  }

  // The edit for a clock that is written as one value: a rate or a mode.
  static std::string clock_meant(const Value& value) {
    if (value.kind != Value::Kind::scalar) return "{ mode: realtime, rate: 30 }";
    const std::string digits = value.text.substr(0, value.text.find_first_not_of("0123456789./")); // "30fps"
    if (const auto rate = read_rate(digits); rate && rate->numerator > 0) return "{ rate: " + digits + " }";
    const std::vector<std::string>& modes = find_key(clock_keys(), "mode")->words;
    const std::string mode = nearest_name(value.text, modes);
    return mode.empty() ? "{ mode: realtime, rate: 30 }" : "{ mode: " + mode + " }";
  }

  Clock read_clock(const std::string& called, Position at, const Value& value) {
    Clock clock;
    clock.name = called;
    clock.place = place(at);
    const std::string label = called.empty() ? "clock" : called;
    expect(value, Value::Kind::map, "'" + label + "'", "mode, rate, in_flight", label + ": " + clock_meant(value));
    const std::string whose = called.empty() ? "the clock" : "the clock '" + called + "'";
    for (size_t i = 0; i < value.names.size(); ++i) {
      if (is_comment_key(value.names[i].text)) continue;
      const auto* key = find_key(clock_keys(), value.names[i].text);
      if (!key) refuse_key(value.names[i], value.items[i], "a clock", clock_keys());
      assign(*key, clock, value.names[i], value.items[i]);
      if (key->name != "node") continue;
      clock.node_place = place(value.items[i].at);
      nodes_named_.push_back({whose, clock.node, clock.node_place});
    }
    return clock;
  }

  void read_nodes(const Value& value) {
    expect(value, Value::Kind::map, "'nodes'", "nodes by name", "nodes: { edge: {}, gpu: {} }");
    if (value.items.empty())
      throw Failure(Error{code::wrong_kind_of_value,
                          "'nodes' names no node",
                          place(value.at),
                          {"expected the nodes that run the pipeline together, by name"},
                          "",
                          "nodes: { edge: {}, gpu: {} }"});
    if (value.items.size() > kNodesMax)
      throw Failure(Error{code::text_limit,
                          "the pipeline has more than " + std::to_string(kNodesMax) + " nodes",
                          place(value.names[kNodesMax].at),
                          {},
                          "",
                          ""});
    const Node* coordinator = nullptr;
    graph_.nodes.reserve(value.items.size()); // `coordinator` points into it
    for (size_t i = 0; i < value.items.size(); ++i) {
      Node& node = graph_.nodes.emplace_back();
      node.name = value.names[i].text;
      node.place = place(value.names[i].at);
      attempt(kept_, [&] {
        check_name(value.names[i], "a node");
        read_node(node, value.items[i]);
        if (coordinator && node.coordinator)
          throw Failure(Error{code::conflicting_keys,
                              "'" + coordinator->name + "' and '" + node.name + "' cannot both be the coordinator",
                              place(key_at(value.items[i], "coordinator")),
                              {"one node plans for all"},
                              "",
                              "coordinator: false"});
        if (node.coordinator) coordinator = &node;
      });
    }
  }

  static Position key_at(const Value& map, const std::string& key) {
    const auto found = std::find_if(map.names.begin(), map.names.end(), [&](const Name& n) { return n.text == key; });
    return found == map.names.end() ? map.at : found->at;
  }

  void read_node(Node& node, const Value& value) const {
    const bool one = value.kind == Value::Kind::scalar; // most likely the address
    expect(value, Value::Kind::map, "the node '" + node.name + "'", "address, devices, id, coordinator",
           node.name + (one ? ": { address: " + shown(value.text) + " }" : ": {}"));
    for (size_t i = 0; i < value.names.size(); ++i) {
      if (is_comment_key(value.names[i].text)) continue;
      const auto* key = find_key(node_keys(), value.names[i].text);
      if (!key) refuse_key(value.names[i], value.items[i], "a node", node_keys());
      assign(*key, node, value.names[i], value.items[i]);
    }
  }

  void read_handlers(const Value& value) {
    expect(value, Value::Kind::map, "'handlers'", "handlers by name", "handlers: { video: { type: test.pattern } }");
    if (value.items.empty())
      throw Failure(Error{code::empty_pipeline,
                          "the pipeline has no handlers",
                          place(value.at),
                          {},
                          "",
                          "video: { type: test.pattern }"});
    if (value.items.size() > kHandlersMax)
      throw Failure(Error{code::text_limit,
                          "the pipeline has more than " + std::to_string(kHandlersMax) + " handlers",
                          place(value.names[kHandlersMax].at),
                          {},
                          "",
                          ""});
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (attempt(kept_, [&] { read_handler(value.names[i], value.items[i]); })) continue;
      Handler refused; // kept, so that references to it are no further mistakes
      refused.name = value.names[i].text;
      refused.refused = true;
      graph_.handlers.push_back(std::move(refused));
    }
  }

  void read_handler(const Name& name, const Value& value) {
    check_name(name, "a handler");
    const std::string type = value.kind == Value::Kind::scalar && is_type(value.text) ? value.text : "image.blur";
    if (value.kind != Value::Kind::null)
      expect(value, Value::Kind::map, "the handler '" + name.text + "'", "a map with its type",
             name.text + ": { type: " + type + " }");
    Handler handler;
    handler.name = name.text;
    handler.place = place(name.at);
    for (size_t i = 0; i < value.names.size(); ++i)
      if (!attempt(kept_, [&] { read_handler_key(handler, value.names[i], value.items[i]); })) handler.refused = true;
    if (handler.type.empty() && !value.find("type") && !attempt(kept_, [&] {
          refuse_missing(value, "the handler '" + name.text + "'", *find_key(handler_keys(), "type"), name.at);
        }))
      handler.refused = true;
    graph_.handlers.push_back(std::move(handler));
  }

  void read_handler_key(Handler& handler, const Name& name, const Value& value) {
    if (is_comment_key(name.text)) return;
    const auto* key = find_key(handler_keys(), name.text);
    if (!key && name.text.starts_with("batch.")) refuse_dotted(name, value);
    // A key that is not reserved is a parameter.
    if (!key) return read_nested(handler.params, kParams, name.text, name, value);
    if (name.text == "clock") clock_places_.emplace_back(graph_.handlers.size(), place(value.at));
    if (assign(*key, handler, name, value)) {
      if (name.text == "node") nodes_named_.push_back({"'" + handler.name + "'", handler.node, place(value.at)});
      return;
    }
    if (name.text == "input") return read_input(handler.name, "", value);
    if (name.text == "inputs") {
      expect(value, Value::Kind::map, "'inputs'", "inputs by port; input: takes one that needs no port's name",
             "input" + (is_reference(value) ? ": " + written(value) : "s: " + key->example));
      for (size_t i = 0; i < value.names.size(); ++i) {
        check_name(value.names[i], "a port");
        read_input(handler.name, value.names[i].text, value.items[i]);
      }
      return;
    }
    if (name.text == "batch") {
      handler.batch = read_batch(*key, value);
      handler.batch->place = place(name.at);
      return;
    }
    if (name.text == "for_each") {
      handler.for_each = scalar(*key, value).text;
      handler.for_each_place = place(value.at);
      return;
    }
    handler.type = scalar(*key, value).text;
    handler.type_place = place(value.at);
    if (!is_type(handler.type))
      throw Failure(Error{code::bad_name,
                          "'" + shown(handler.type) + "' is no name of a handler type",
                          handler.type_place,
                          {"expected family.name"},
                          "",
                          "type: " + key->example});
  }

  Batch read_batch(const KeyInfo& batch_key, const Value& value) const {
    const bool is_scalar = value.kind == Value::Kind::scalar, is_duration = is_scalar && read_duration(value.text);
    if (is_scalar && !is_duration) return read_batch_size(value.text, place(value.at));
    const std::string edit = "batch: " + (is_duration ? "{ budget: " + shown(value.text) + " }" : batch_key.example);
    expect(value, Value::Kind::map, "'batch'", "a number of items, or keys such as budget and max", edit);
    Batch batch;
    bool is_empty = true;
    for (size_t i = 0; i < value.names.size(); ++i) {
      if (is_comment_key(value.names[i].text)) continue;
      const auto* key = find_key(batch_keys(), value.names[i].text);
      if (!key) refuse_key(value.names[i], value.items[i], "a batch", batch_keys());
      read_batch_key(batch, *key, scalar(*key, value.items[i]).text, place(value.names[i].at),
                     place(value.items[i].at));
      is_empty = false;
    }
    if (!is_empty) return batch;
    std::string list;
    for (const auto& key : batch_keys()) list += (list.empty() ? "" : ", ") + key.name;
    throw Failure(Error{code::wrong_kind_of_value,
                        "'batch' has no keys",
                        place(value.at),
                        {"expected one or more of " + list},
                        "",
                        edit});
  }

  // Names joined by dots are parameters.
  [[noreturn]] void refuse_dotted(const Name& name, const Value& value) const {
    const std::string key = name.text.substr(name.text.find('.') + 1);
    throw Failure(
        Error{code::unknown_key,
              "'" + shown(name.text) + "' is no key of a handler",
              place(name.at),
              {"the keys of a batch stand in a map of their own"},
              "",
              "batch: { " + shown(key) + ": " + (value.kind == Value::Kind::scalar ? shown(value.text) : "…") + " }"});
  }

  static bool is_reference(const Value& value) {
    if (value.kind == Value::Kind::list)
      return !value.items.empty() && std::all_of(value.items.begin(), value.items.end(), is_reference);
    return value.kind == Value::Kind::scalar && is_type(value.text) &&
           std::count(value.text.begin(), value.text.end(), '.') < 2;
  }

  // A reference, or a list of them, as it stands in a file.
  static std::string written(const Value& value) {
    if (value.kind != Value::Kind::list) return value.text;
    std::string list;
    for (const Value& item : value.items) list += (list.empty() ? "" : ", ") + written(item);
    return "[" + list + "]";
  }

  // One reference, a map with from:, or a list of these.
  void read_input(const std::string& target, const std::string& port, const Value& value) {
    if (value.kind != Value::Kind::list) return read_edge(target, port, 0, value);
    if (value.items.empty())
      throw Failure(Error{code::wrong_kind_of_value,
                          "an input cannot be an empty list",
                          place(value.at),
                          {"expected handler or handler.port"},
                          "",
                          "leave the input out"});
    for (size_t i = 0; i < value.items.size(); ++i) read_edge(target, port, static_cast<uint32_t>(i), value.items[i]);
  }

  void read_edge(const std::string& target, const std::string& port, uint32_t index, const Value& value) {
    Edge edge;
    edge.target = target;
    edge.target_port = port;
    edge.target_index = index;
    if (graph_.edges.size() == kEdgesMax)
      throw Failure(Error{code::text_limit,
                          "the pipeline has more than " + std::to_string(kEdgesMax) + " edges",
                          place(value.at),
                          {},
                          "",
                          ""});
    if (value.kind != Value::Kind::map) {
      expect(value, Value::Kind::scalar, "an input", "handler, handler.port, or a map with from:", "input: video");
      set_source(edge, value);
    } else {
      read_edge_map(edge, value);
    }
    graph_.edges.push_back(std::move(edge));
  }

  void read_edge_map(Edge& edge, const Value& value) const {
    for (size_t i = 0; i < value.names.size(); ++i) {
      const Name& name = value.names[i];
      if (is_comment_key(name.text)) continue;
      const auto* key = find_key(edge_keys(), name.text);
      if (!key) refuse_key(name, value.items[i], "an input", edge_keys());
      if (!assign(*key, edge, name, value.items[i])) set_source(edge, scalar(*key, value.items[i]));
    }
    if (edge.source.empty()) refuse_missing(value, "the input", *find_key(edge_keys(), "from"), value.at);
    check_edge(edge, value.names, file_);
  }

  void set_source(Edge& edge, const Value& value) const {
    edge.place = place(value.at);
    const Reference reference = read_reference(value.text, edge.place);
    edge.source = reference.handler;
    edge.source_port = reference.port;
  }

  const Confine* const confine_;
  Graph graph_;
  std::vector<std::pair<size_t, Place>> clock_places_; // by handler; checked last, as `clocks` may follow `handlers`
  struct NodeNamed {
    std::string by, node; // a handler or a clock, in words, and the node that it names
    Place place;
  };
  std::vector<NodeNamed> nodes_named_; // checked last, as `nodes` may follow
};

bool is_pipeline_name(const std::filesystem::path& name) {
  const std::string extension = name.extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

// The most entries of a folder that are looked at for a suggestion.
constexpr int kEntriesMax = 1000;

// The names of the pipeline files in a folder, sorted.
std::vector<std::string> pipelines_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, failed), end;
  for (int i = 0; !failed && entry != end && i < kEntriesMax; ++i, entry.increment(failed))
    if (is_pipeline_name(entry->path())) names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string pipeline_in(const std::string& folder) {
  const std::vector<std::string> names = pipelines_in(folder);
  return names.empty() ? "" : (std::filesystem::path(folder) / names[0]).string();
}

[[noreturn]] void refuse_unread(const std::string& path, int cause) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (cause != ENOENT)
    throw Failure(Error{code::file_not_found,
                        "the pipeline file '" + path + "' cannot be read: " +
                            (cause == 0 ? "it is no file" : std::generic_category().message(cause)),
                        {},
                        {},
                        "",
                        cause == EACCES ? "chmod u+r " + path : ""});
  Error error{code::file_not_found, "there is no pipeline file '" + path + "'", {}, {}, "", ""};
  const std::string name = std::filesystem::path(path).filename().string();
  if (!folder.empty() && !std::filesystem::exists(folder, ignored)) {
    error.notes.push_back("there is no folder '" + folder.string() + "'");
  } else {
    error.nearest = nearest_name(name, pipelines_in(folder));
    error.notes.push_back("looked in " + (folder.empty() ? std::filesystem::current_path(ignored) : folder).string());
  }
  if (!error.nearest.empty()) error.nearest = error.edit = (folder / error.nearest).string();
  throw Failure(std::move(error));
}

// Refuses a film or a picture that was given as the pipeline, and other bytes that are no text. UTF-16 begins with a
// mark, and has a message of its own.
void refuse_media(const std::string& path, const std::string& text) {
  constexpr size_t kHead = 4096; // enough for the first box of a container, which has a zero byte
  const size_t zero = text.substr(0, kHead).find('\0');
  const bool is_utf16 = text.rfind("\xFF\xFE", 0) == 0 || text.rfind("\xFE\xFF", 0) == 0;
  const FileKind kind = file_kind(path);
  if (kind != FileKind::other)
    throw Failure(Error{code::file_not_found,
                        "'" + path + "' is a " + (kind == FileKind::video ? "video" : "picture") + ", not a pipeline",
                        {},
                        {"a pipeline is a text that says what becomes of it"},
                        "",
                        "'" + source_of(path) + " ! null.sink'"});
  if (zero != std::string::npos && !is_utf16)
    throw Failure(Error{code::file_not_found,
                        "'" + path + "' is no text: byte " + std::to_string(zero) + " is 0",
                        {},
                        {"a pipeline is UTF-8 text; of video and pictures it is a source: video.file, image.file"},
                        "",
                        "'video.file path=" + path + " ! null.sink'"});
}

bool ends_like_a_file(const std::string& text) { return is_pipeline_name(text); }

// "left, right"
bool is_list_of_references(const std::string& text) {
  if (text.find(',') == std::string::npos) return false;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos || !is_type(part.substr(begin, part.find_last_not_of(' ') - begin + 1)))
      return false;
  }
  return true;
}

} // namespace

Reference read_reference(const std::string& text, const Place& place) {
  const size_t dot = text.find('.');
  Reference reference{text.substr(0, dot), dot == std::string::npos ? "" : text.substr(dot + 1)};
  const size_t at = reference.handler.find('@'); // "draw@gate7": the instance for one stream
  const bool is_handler = is_name(reference.handler.substr(0, at)) &&
                          (at == std::string::npos || is_stream_name(reference.handler.substr(at + 1)));
  if (is_handler && (dot == std::string::npos || is_name(reference.port))) return reference;
  Error error{code::bad_reference,
              "'" + shown(text) + "' names no handler and port",
              place,
              {"expected handler or handler.port"},
              "",
              ""};
  if (is_list_of_references(text)) { // the brackets of a list are missing
    error.notes[0] += ", or a list of them";
    error.edit = "[" + text + "]";
    throw Failure(std::move(error));
  }
  const bool is_address = without_secrets(text) != text; // its parts would show it
  if (const std::string better = is_address ? "" : as_name(reference.handler); !better.empty())
    error.edit = better + (as_name(reference.port).empty() ? "" : "." + as_name(reference.port));
  throw Failure(std::move(error));
}

namespace {

// `confine`: patterns of files look nowhere else; null: anywhere.
Graph read_file(const std::string& path, std::vector<Error>* kept, const Confine* confine) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Failure(
        Error{code::file_not_found, "'" + path + "' is a folder, not a pipeline file", {}, {}, "", pipeline_in(path)});
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse_unread(path, errno);
  // Reads one byte more than is allowed: that shows that a file is too long without reading an endless one.
  std::string text(kTextBytesMax + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  refuse_media(path, text);
  return Reader(path, kept, confine).read(read_document(text, path));
}

} // namespace

Graph parse_yaml(const std::string& text, const std::string& file, std::vector<Error>* kept) {
  return Reader(file, kept, nullptr).read(read_document(text, file));
}

Graph parse_file(const std::string& path, std::vector<Error>* kept) { return read_file(path, kept, nullptr); }

Graph load(const std::string& pipeline, std::vector<Error>* kept) { return load(pipeline, kept, {}); }

Graph load(const std::string& pipeline, std::vector<Error>* kept, const FindType& find_type) {
  return load_confined(pipeline, nullptr, kept, find_type);
}

Graph load_confined(const std::string& pipeline, const Confine* confine, std::vector<Error>* kept,
                    const FindType& find_type) {
  std::error_code ignored; // a one-line string may be no path at all: too long, for example
  if (ends_like_a_file(pipeline) || std::filesystem::exists(pipeline, ignored))
    return read_file(pipeline, kept, confine);
  return parse_line(pipeline, kept, find_type);
}

} // namespace millrace::graph
