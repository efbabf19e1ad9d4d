// Writes one-line pipelines; see to_line.h. Each handler stands where a chain reaches it first; all other edges lead to
// it by a reference.
#include "graph/to_line.h"

#include <algorithm>
#include <set>
#include <vector>

#include "graph/keys.h"

namespace millrace::graph {

namespace {

// A value as the line has it: in quotes if it holds what would end the word or begin a quote.
std::string value_in_line(const std::string& text) {
  if (!text.empty() && text.find_first_of(" \t\r\n\"'\\") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

template <class Owner>
std::string keys_of(const std::vector<Key<Owner>>& keys, const Owner& owner) {
  std::string words;
  for (const auto& key : keys)
    if (key.written)
      if (const std::string text = key.written(owner); !text.empty())
        words += " " + key.name + "=" + value_in_line(text);
  return words;
}

class LineWriter {
 public:
  explicit LineWriter(const Graph& graph) : graph_(graph), is_written_(graph.edges.size()) {
    for (const Edge& edge : graph.edges) {
      if (!edge.source_port.empty()) referred_.insert(edge.source);
      if (!edge.target_port.empty()) referred_.insert(edge.target);
    }
  }

  std::string line() {
    for (const Handler& handler : graph_.handlers)
      if (!has_input(handler) && !is_there(handler.name)) begin(handler);
    while (write_reference() || write_alone()) {
    }
    return std::move(text_);
  }

 private:
  bool is_there(const std::string& handler) const { return there_.count(handler) > 0; }
  bool has_input(const Handler& handler) const {
    return std::any_of(graph_.edges.begin(), graph_.edges.end(),
                       [&](const Edge& edge) { return edge.target == handler.name; });
  }

  void begin_chain() { text_ += text_.empty() ? "" : " ; "; }

  void write(const Handler& handler) {
    there_.insert(handler.name);
    text_ += handler.type;
    const bool was_named = handler.place.is_one_line() && handler.place.column != handler.type_place.column;
    if (was_named || referred_.count(handler.name) || handler.name != handler.type.substr(handler.type.rfind('.') + 1))
      text_ += " name=" + handler.name;
    for (const Param& param : handler.params) text_ += " " + param.name + "=" + value_in_line(param.text);
    text_ += keys_of(handler_keys(), handler);
  }

  void begin(const Handler& handler) {
    begin_chain();
    write(handler);
    go_on(handler.name);
  }

  // The entries of a list are written in their order.
  bool may_be_next(size_t e) const {
    const Edge& edge = graph_.edges[e];
    for (size_t other = 0; other < graph_.edges.size(); ++other) {
      const Edge& earlier = graph_.edges[other];
      if (earlier.target == edge.target && earlier.target_port == edge.target_port &&
          earlier.target_index < edge.target_index && !is_written_[other])
        return false;
    }
    return !is_written_[e];
  }
  // A handler that a chain comes upon has neither the keys of an edge nor the name of a port.
  bool reaches(const Edge& edge) const {
    return !is_there(edge.target) && edge.target_port.empty() && keys_of(edge_keys(), edge).empty();
  }

  // Follows the edges from `source`, which the chain has come to.
  void go_on(std::string source) {
    for (size_t e = next_from(source); e < graph_.edges.size(); e = next_from(source)) {
      const Edge& edge = graph_.edges[e];
      is_written_[e] = true;
      text_ += " ! ";
      if (is_there(edge.target)) return refer_to(edge);
      write(*graph_.find(edge.target));
      source = edge.target;
    }
  }
  size_t next_from(const std::string& source) const {
    size_t found = graph_.edges.size();
    for (size_t e = graph_.edges.size(); e-- > 0;) {
      const Edge& edge = graph_.edges[e];
      if (edge.source != source || !edge.source_port.empty() || !may_be_next(e)) continue;
      const bool is_new = reaches(edge);
      if (is_new || (is_there(edge.target) && (found == graph_.edges.size() || !reaches(graph_.edges[found]))))
        found = e;
    }
    return found;
  }
  void refer_to(const Edge& edge) { text_ += edge.target + "." + edge.target_port + keys_of(edge_keys(), edge); }

  // An edge between handlers that are there, or from one of them to one that a chain may come upon.
  bool write_reference() {
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      const Edge& edge = graph_.edges[e];
      if (!may_be_next(e) || !is_there(edge.source) || (!is_there(edge.target) && !reaches(edge))) continue;
      begin_chain();
      text_ += edge.source + "." + edge.source_port + " ! ";
      is_written_[e] = true;
      if (is_there(edge.target)) {
        refer_to(edge);
      } else {
        write(*graph_.find(edge.target));
        go_on(edge.target);
      }
      return true;
    }
    return false;
  }
  // A handler that only references lead to.
  bool write_alone() {
    for (const Handler& handler : graph_.handlers) {
      if (is_there(handler.name)) continue;
      begin(handler);
      return true;
    }
    return false;
  }

  const Graph& graph_;
  std::vector<bool> is_written_; // by edge
  std::set<std::string> there_, referred_;
  std::string text_;
};

void sort_handlers(Graph& graph) {
  std::sort(graph.handlers.begin(), graph.handlers.end(),
            [](const Handler& a, const Handler& b) { return a.name < b.name; });
}

} // namespace

std::string to_line(const Graph& graph) {
  for (const Edge& edge : graph.edges)
    if (!graph.find(edge.source) || !graph.find(edge.target)) return "";
  std::string line = LineWriter(graph).line();
  Graph sorted = graph;
  sort_handlers(sorted);
  try { // a graph that no line can say is read as another one, or not at all
    Graph read = parse_line(line);
    sort_handlers(read);
    return same(read, sorted) ? line : "";
  } catch (const Failure&) {
    return "";
  }
}

} // namespace millrace::graph
