// The keys of the pipeline file, each declared once: the parser, --set, the one-line form, the writer, the schema
// and the reference are all made from these tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/document.h"
#include "graph/graph.h"

namespace millrace::graph {

enum class Takes {
  text,      // any scalar
  name,      // a name without dots
  whole,     // a whole number within min…max
  range,     // one such number, or [least, most]
  duration,  // 40ms, within min…max ns
  durations, // one, or two as 40ms/2m
  rate,      // 30000/1001, above 0 and at most max
  word,      // one of `words`
  flag,      // true or false
  devices,   // one device, or a list of them: cpu, cuda:0, sim:1
  shape,     // read by the parser itself: it shapes the graph
  not_yet,   // refused: reserved for a part that does not exist yet; `help` says which
};

struct KeyInfo {
  std::string name;
  Takes takes;
  std::string help;    // a sentence without its full stop
  std::string example; // a valid value
  int64_t min = 0, max = 0;
  std::vector<std::string> words = {};
  std::string word_not_yet = {}; // one more word, refused: reserved for a part that does not exist yet
};

// A value that was read as its key takes it.
struct Setting {
  std::string text;   // text, name
  int64_t number = 0; // whole; the most of a range; duration in ns; position among the words; 1 for true
  int64_t least = 0;  // range; 0: one number was given
  int64_t second = 0; // durations; 0: one was given
  Rational rate;
  std::vector<std::string> devices;
};

template <class Owner>
struct Key : KeyInfo {
  void (*assign)(Owner&, const Setting&) = nullptr;
  std::string (*written)(const Owner&) = nullptr; // as a file has it; "" if it is the default
};

// The top of the file has no owner of its own: its keys shape the graph.
const std::vector<KeyInfo>& top_keys();
const std::vector<Key<Handler>>& handler_keys();
// The keys of a handler's `batch:`.
const std::vector<Key<Batch>>& batch_keys();
const std::vector<Key<Edge>>& edge_keys();
const std::vector<Key<Clock>>& clock_keys();
const std::vector<Key<Node>>& node_keys();
const std::vector<Key<StreamSet>>& stream_keys();

template <class Keys>
auto find_key(const Keys& keys, const std::string& name) -> decltype(keys.data()) {
  for (const auto& key : keys)
    if (key.name == name) return &key;
  return nullptr;
}
template <class Keys>
std::vector<std::string> names_of(const Keys& keys) {
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(key.name);
  return names;
}
// Keys that begin with x- are comments for other tools.
inline bool is_comment_key(const std::string& name) { return name.rfind("x-", 0) == 0; }

// Reads `text` as `key` takes it. Throws Failure MR0208, MR0210-MR0213 at `place`.
Setting read_setting(const KeyInfo& key, const std::string& text, const Place& place);
// Reads the list [least, most] of a key that takes a range. Throws Failure MR0208, MR0211 in `file`.
Setting read_range(const KeyInfo& key, const Value& list, const std::string& file);
// Reads the list of a key that takes devices. Throws Failure MR0208 in `file`.
Setting read_devices(const KeyInfo& key, const Value& list, const std::string& file);
// Refuses a key of a part that is not there yet (MR0216).
[[noreturn]] void refuse_not_yet(const KeyInfo& key, const Place& place);
// Refuses keys of an edge that mean nothing without their policy (MR0215), and a policy without a key that it needs.
// `given`: the names of the keys.
void check_edge(const Edge& edge, const std::vector<Name>& given, const std::string& file);
// Reads `text` as a key of `batch:`, and refuses what does not go with the keys that were read before. `name` and
// `value` are the places of the key and of its value. Throws Failure MR0208, MR0211-MR0213, MR0215.
void read_batch_key(Batch& batch, const Key<Batch>& key, const std::string& text, const Place& name,
                    const Place& value);
// Reads the short form `batch: 16`, which gives the size alone. Throws Failure MR0208, MR0211 at `place`.
Batch read_batch_size(const std::string& text, const Place& place);
// Refuses the `batch:` at `place` of a handler that takes no items: a template, or any where there are no streams
// (MR0215).
void check_batch(const Graph& graph, const Handler& handler, const Place& place);
// Refuses a handler that names a clock which is not there (MR0315 at `place`, the place of the clock's name).
void check_clock(const Graph& graph, const Handler& handler, const Place& place);
// Refuses `node:` if the graph has no such node (MR0318 at `place`, the place of the node's name). `whose` is what has
// the key: "'blur'", "the clock 'left'".
void check_node(const Graph& graph, const std::string& whose, const std::string& node, const Place& place);
// Refuses `for_each:` if the graph has no such set (MR0320).
void check_for_each(const Graph& graph, const Handler& handler);
// The same error for a text in which keys are set by '=': rewrites its edit to that form.
Error as_assignment(Error error);

} // namespace millrace::graph
