// Writes a graph as a pipeline file, in one canonical form.
#include <algorithm>
#include <tuple>

#include "graph/graph.h"
#include "graph/keys.h"

namespace millrace::graph {

namespace {

bool is_plain(const std::string& text) {
  static constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:@%";
  if (text.empty() || text.find_first_not_of(kPlain) != std::string::npos) return false;
  if (std::string("-:.@%").find(text[0]) != std::string::npos || text.back() == ':') return false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower != "null";
}

std::string quoted(const std::string& text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7F)
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    else
      out += c;
  }
  return out + '"';
}

// A scalar as YAML has it; negative numbers need no quotes.
std::string scalar(const std::string& text) {
  if (is_plain(text)) return text;
  if (text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9' && is_plain(text.substr(1))) return text;
  return quoted(text);
}

std::string reference(const Edge& edge) {
  // scalar(), because a handler may be called null, the only name that YAML takes for something else.
  return scalar(edge.source + (edge.source_port.empty() ? "" : "." + edge.source_port));
}

// "policy: latest, lag: 2"
template <class Owner>
std::string keys_in_line(const std::vector<Key<Owner>>& keys, const Owner& owner) {
  std::string line;
  for (const auto& key : keys)
    if (key.written)
      if (const std::string text = key.written(owner); !text.empty())
        line += (line.empty() ? "" : ", ") + key.name + ": " + scalar(text);
  return line;
}

std::string entry(const Edge& edge) {
  const std::string keys = keys_in_line(edge_keys(), edge);
  return keys.empty() ? reference(edge) : "{ from: " + reference(edge) + ", " + keys + " }";
}

// One entry, or a list of them.
std::string entries(const std::vector<const Edge*>& edges) {
  if (edges.size() == 1) return entry(*edges[0]);
  std::string list;
  for (const Edge* edge : edges) list += (list.empty() ? "[" : ", ") + entry(*edge);
  return list + "]";
}

auto order(const Edge& edge) {
  return std::tie(edge.target, edge.target_port, edge.target_index, edge.source, edge.source_port);
}
bool stands_before(const Edge* a, const Edge* b) { return order(*a) < order(*b); }

std::vector<const Edge*> sorted(const std::vector<Edge>& edges) {
  std::vector<const Edge*> pointers;
  for (const Edge& edge : edges) pointers.push_back(&edge);
  std::stable_sort(pointers.begin(), pointers.end(), stands_before);
  return pointers;
}

void write_inputs(const Handler& handler, const std::vector<const Edge*>& all, std::string& out) {
  auto at = std::partition_point(all.begin(), all.end(), [&](const Edge* e) { return e->target < handler.name; });
  bool headed = false;
  while (at != all.end() && (*at)->target == handler.name) {
    const std::string& port = (*at)->target_port;
    std::vector<const Edge*> same_port;
    for (; at != all.end() && (*at)->target == handler.name && (*at)->target_port == port; ++at)
      same_port.push_back(*at);
    if (port.empty()) {
      out += "    input: " + entries(same_port) + "\n";
      continue;
    }
    if (!headed) out += "    inputs:\n";
    headed = true;
    out += "      " + scalar(port) + ": " + entries(same_port) + "\n";
  }
}

// True if the key's text is YAML as it is: it may be a list.
bool is_written_out(const KeyInfo& key) { return key.takes == Takes::range || key.takes == Takes::devices; }

template <class Owner>
void write_keys(const std::vector<Key<Owner>>& keys, const Owner& owner, const std::string& indent, std::string& out) {
  for (const auto& key : keys)
    if (key.written)
      if (const std::string text = key.written(owner); !text.empty())
        out += indent + key.name + ": " + (is_written_out(key) ? text : scalar(text)) + "\n";
}

void write_handler_keys(const Handler& handler, const std::string& indent, std::string& out) {
  write_keys(handler_keys(), handler, indent, out);
  const std::string batch = handler.batch ? keys_in_line(batch_keys(), *handler.batch) : "";
  if (!batch.empty()) out += indent + "batch: { " + batch + " }\n";
}

void write_clocks(const Graph& graph, std::string& out) {
  const bool named = !graph.clocks.empty() && !graph.clocks[0].name.empty();
  if (named) out += "clocks:\n";
  for (const Clock& clock : graph.clocks) {
    std::string keys;
    write_keys(clock_keys(), clock, named ? "    " : "  ", keys);
    out += named ? "  " + scalar(clock.name) + ":" : "clock:";
    out += keys.empty() ? " {}\n" : "\n" + keys;
  }
}

void write_nodes(const Graph& graph, std::string& out) {
  if (!graph.nodes.empty()) out += "nodes:\n";
  for (const Node& node : graph.nodes) {
    std::string keys;
    write_keys(node_keys(), node, "    ", keys);
    out += "  " + scalar(node.name) + ":" + (keys.empty() ? " {}\n" : "\n" + keys);
  }
}

// The streams of each set by name: a pattern of files has been resolved.
void write_streams(const Graph& graph, std::string& out) {
  if (!graph.streams.empty()) out += "streams:\n";
  for (const StreamSet& set : graph.streams) {
    out += "  " + scalar(set.name) + ":\n    items:\n";
    for (const Stream& stream : set.items) {
      out += "      " + scalar(stream.name) + ":" + (stream.fields.empty() ? " {}\n" : "\n");
      for (const Param& field : stream.fields)
        out += "        " + scalar(field.name) + ": " + scalar(field.text) + "\n";
    }
    write_keys(stream_keys(), set, "    ", out);
  }
}

// Everything that a handler says, as a file has it: two handlers are the same if these texts are.
std::string all_of(const Handler& handler) {
  std::string text = handler.name + "\n" + handler.type + "\n";
  write_handler_keys(handler, "", text);
  for (const Param& param : handler.params) text += param.name + "=" + quoted(param.text) + "\n";
  return text;
}

} // namespace

std::string to_yaml(const Graph& graph) {
  std::string out = "version: 1\n";
  if (!graph.name.empty()) out += "name: " + scalar(graph.name) + "\n";
  write_nodes(graph, out);
  write_clocks(graph, out);
  write_streams(graph, out);
  out += "handlers:\n";
  const std::vector<const Edge*> edges = sorted(graph.edges);
  for (const Handler& handler : graph.handlers) {
    out += "  " + scalar(handler.name) + ":\n    type: " + scalar(handler.type) + "\n";
    write_inputs(handler, edges, out);
    write_handler_keys(handler, "    ", out);
    for (const Param& param : handler.params) out += "    " + scalar(param.name) + ": " + scalar(param.text) + "\n";
  }
  return out;
}

bool same(const Graph& a, const Graph& b) {
  const auto all_but_handlers = [](const Graph& graph) {
    std::string text;
    write_nodes(graph, text);
    write_clocks(graph, text);
    write_streams(graph, text);
    return text;
  };
  const auto edges_of = [](const Graph& graph) { return sorted(graph.edges); };
  const auto alike = [](const Edge* x, const Edge* y) { return order(*x) == order(*y) && entry(*x) == entry(*y); };
  const std::vector<const Edge*> left = edges_of(a), right = edges_of(b);
  return a.name == b.name && all_but_handlers(a) == all_but_handlers(b) &&
         std::equal(a.handlers.begin(), a.handlers.end(), b.handlers.begin(), b.handlers.end(),
                    [](const Handler& x, const Handler& y) { return all_of(x) == all_of(y); }) &&
         std::equal(left.begin(), left.end(), right.begin(), right.end(), alike);
}

} // namespace millrace::graph
