// Unfolds templates; see unfold.h.
#include "graph/unfold.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/document.h"
#include "graph/find_groups.h"
#include "graph/keys.h"
#include "graph/limits.h"
#include "graph/params.h"
#include "graph/quantity.h"
#include "observe/error_codes.h"

namespace millrace::graph {

namespace {

constexpr const char* kMainClock = "main"; // that of handlers outside, where the file names none

std::vector<std::string> stream_names(const StreamSet& set) {
  std::vector<std::string> names;
  for (const Stream& stream : set.items)
    if (!stream.is_seat) names.push_back(stream.name);
  return names;
}

// With places for the streams that may be added: planned like the first stream.
StreamSet with_places(StreamSet set) {
  while (set.items.size() < set.max && !set.items.empty()) {
    Stream place = set.items[0];
    place.name = "+" + std::to_string(set.items.size());
    place.is_seat = true;
    set.items.push_back(std::move(place));
  }
  return set;
}

std::string list_of(const std::vector<std::string>& words) {
  constexpr size_t kShownMax = 8;
  std::string list;
  for (size_t i = 0; i < std::min(words.size(), kShownMax); ++i) list += (i == 0 ? "" : ", ") + words[i];
  return words.size() > kShownMax ? list + ", …" : list;
}

// ---- placeholders --------------------------------------------------------------------------------------------------

// A stream of a set, and what a placeholder stands for in it.
class Words {
 public:
  Words(const StreamSet& set, const Stream& stream)
      : set_(set), stream_(stream), index_(std::to_string(&stream - set.items.data())) {}

  // `text` with its placeholders replaced: "{path}" by the field; "{{path}}" is "{path}".
  std::string fill(const std::string& text, const std::string& whose, const Place& place) const {
    std::string filled;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text[at] == '{' ? text.find('}', at) : std::string::npos;
      const bool is_doubled = end != std::string::npos && at + 1 < end && text[at + 1] == '{';
      const std::string word =
          end == std::string::npos ? "" : text.substr(at + 1 + is_doubled, end - at - 1 - is_doubled);
      const bool is_closed = !is_doubled || (end + 1 < text.size() && text[end + 1] == '}');
      if (!is_name(word) || !is_closed) {
        filled += text[at++];
        continue;
      }
      filled += is_doubled ? "{" + word + "}" : value_of(word, whose, place);
      at = end + 1 + is_doubled;
    }
    return filled;
  }

 private:
  const std::string& value_of(const std::string& word, const std::string& whose, const Place& place) const {
    if (word == "stream") return stream_.name;
    if (word == "index") return index_;
    std::vector<std::string> words = {"stream", "index"};
    for (const Param& field : stream_.fields) {
      if (field.name == word) return field.text;
      if (field.name.find('.') == std::string::npos) words.push_back(field.name);
    }
    const std::string nearest = nearest_name(word, words);
    throw Failure(Error{code::unknown_field,
                        whose + " has {" + shown(word) + "}, and the stream '" + stream_.name + "' of '" + set_.name +
                            "' has no such field",
                        place,
                        {"words: " + list_of(words)},
                        nearest,
                        nearest.empty() ? word + ": …, in each item of " + set_.name : "{" + nearest + "}"});
  }

  const StreamSet& set_;
  const Stream& stream_;
  const std::string index_;
};

// ---- the unfolding -------------------------------------------------------------------------------------------------

// "detect@cameras": its ticks are the items that the group takes.
std::string group_clock(const Group& group) { return instance_name(group.name, group.set); }

class Unfolder {
 public:
  Unfolder(const Graph& written, std::vector<Error>* kept) : written_(written), kept_(kept) {
    for (StreamSet& set : written_.streams) set = with_places(std::move(set));
  }

  Graph unfold() {
    graph_.name = written_.name;
    graph_.nodes = written_.nodes;
    graph_.streams = written_.streams;
    for (const Handler& handler : written_.handlers) by_name_[handler.name] = &handler;
    groups_ = find_groups(written_, kept_);
    for (const StreamSet& set : written_.streams) {
      attempt(kept_, [&] { check_set(set); });
      for (const Stream& stream : set.items)
        if (!stream.is_seat) attempt(kept_, [&] { check_own_values(set, stream); });
    }
    make_clocks();
    for (const Handler& handler : written_.handlers) attempt(kept_, [&] { make_handlers(handler); });
    for (const Edge& edge : written_.edges) attempt(kept_, [&] { make_edges(edge); });
    check_sizes();
    number_entries();
    give_clocks();
    return std::move(graph_);
  }

 private:
  const StreamSet* set_of(const std::string& handler) const {
    const auto at = by_name_.find(handler);
    return at == by_name_.end() || at->second->for_each.empty() ? nullptr : written_.find_set(at->second->for_each);
  }

  const Group* group_of(const std::string& handler) const {
    const auto at = groups_.find(handler);
    return at == groups_.end() ? nullptr : &at->second;
  }

  // A key by which streams come and go, or begin anew, on their own.
  void check_apart(const StreamSet& set, const std::string& key, const std::string& together) const {
    if (set.shared_clock)
      throw Failure(Error{code::conflicting_keys,
                          "'" + set.name + "' has 'clock: shared' and '" + key + "'",
                          set.place,
                          {"streams that share a clock " + together},
                          "",
                          "leave one of them out"});
  }

  void check_set(const StreamSet& set) const {
    if (set.on_error == OnStreamError::restart) check_apart(set, "on_error: restart", "cannot begin anew one by one");
    if (set.max > 0) check_apart(set, "max", "begin and end together");
    const bool has_template = std::any_of(written_.handlers.begin(), written_.handlers.end(),
                                          [&](const Handler& handler) { return handler.for_each == set.name; });
    if (has_template) return;
    throw Failure(Error{code::unknown_set,
                        "no handler is for each of '" + set.name + "'",
                        set.place,
                        {"a set of streams needs a source for each of them"},
                        "",
                        "for_each: " + set.name});
  }

  // "draw.thickness: 4" in an item.
  void check_own_values(const StreamSet& set, const Stream& stream) const {
    for (const Param& field : stream.fields) {
      const std::string name = field.name.substr(0, field.name.find('.'));
      if (name == field.name || set_of(name) == &set) continue;
      std::vector<std::string> templates;
      for (const Handler& handler : written_.handlers)
        if (handler.for_each == set.name) templates.push_back(handler.name);
      const std::string nearest = nearest_name(name, templates);
      throw Failure(Error{code::unknown_field,
                          "the stream '" + stream.name + "' gives '" + shown(field.name) + "', and '" + shown(name) +
                              "' is no template of '" + set.name + "'",
                          field.name_place,
                          {by_name_.count(name) ? "a handler outside the streams has one value for all of them"
                                                : "templates: " + list_of(templates)},
                          nearest,
                          nearest.empty() ? "leave it out" : nearest + field.name.substr(name.size()) + ": …"});
    }
  }

  // ---- clocks

  // As the file says it for a set.
  Clock clock_for(const StreamSet& set) const {
    Clock clock;
    for (const Clock& said : written_.clocks)
      if (said.name == set.name || said.name.empty()) clock = said;
    return clock;
  }

  void make_clocks() {
    for (const Clock& clock : written_.clocks)
      if (!clock.name.empty() && !written_.find_set(clock.name)) add_clock(clock, clock.place, "the clock");
    for (const StreamSet& set : written_.streams) {
      Clock clock = clock_for(set);
      clock.name = clock.set = set.name;
      clock.fails_alone = set.on_error != OnStreamError::fail && !set.shared_clock;
      clock.restarts = clock.fails_alone && set.on_error == OnStreamError::restart;
      clock.has_room = set.max > 0;
      if (set.shared_clock) add_clock(clock, set.place, "the set");
      for (const Stream& stream : set.items) {
        if (set.shared_clock) break;
        clock.name = clock_name(set, stream);
        clock.is_seat = stream.is_seat;
        add_clock(clock, stream.place, "the stream");
      }
    }
    for (const Handler& handler : written_.handlers) {
      const Group* const group = group_of(handler.name);
      if (!group || group->name != handler.name) continue;
      Clock clock;
      clock.name = group_clock(*group);
      clock.set = group->set;
      clock.is_group = true;
      add_clock(clock, handler.place, "the group");
    }
  }

  void add_clock(const Clock& clock, const Place& place, const std::string& whose) {
    attempt(kept_, [&] {
      if (!clock_names_.insert(clock.name).second)
        throw Failure(Error{code::duplicate_name,
                            whose + " '" + clock.name + "' needs a clock of its own, and another one has this name",
                            place,
                            {"a stream's clock is named like the stream"},
                            "",
                            "rename one of them"});
      graph_.clocks.push_back(clock);
    });
  }

  // Handlers outside the streams that nothing gives a clock: sources, and those that read all streams. They share the
  // clock of a file that names none.
  void give_clocks() {
    const bool has_names = !written_.clocks.empty() && !written_.clocks[0].name.empty();
    if (has_names) return;
    bool is_used = false;
    for (Handler& handler : graph_.handlers) {
      if (!handler.stream.empty() || !handler.clock.empty()) continue;
      bool is_fed = false;
      for (const Edge& edge : graph_.edges)
        is_fed = is_fed || (edge.target == handler.name && (edge.over.empty() || edge.policy == Policy::sync));
      if (is_fed) continue;
      handler.clock = kMainClock;
      is_used = true;
    }
    if (!is_used) return;
    Clock clock;
    if (!written_.clocks.empty()) clock = written_.clocks[0];
    clock.name = kMainClock;
    add_clock(clock, clock.place, "the pipeline");
  }

  // ---- handlers

  void make_handlers(const Handler& handler) {
    if (handler.for_each.empty()) {
      graph_.handlers.push_back(handler);
      if (const Group* const group = group_of(handler.name)) join_group(graph_.handlers.back(), *group);
      return;
    }
    check_for_each(written_, handler);
    if (!handler.clock.empty())
      throw Failure(Error{code::conflicting_keys,
                          "'" + handler.name + "' is a template, and cannot name a clock",
                          handler.place,
                          {"each stream has a clock of its own"},
                          "",
                          "leave 'clock' out"});
    const StreamSet& set = *written_.find_set(handler.for_each);
    for (const Stream& stream : set.items) {
      graph_.handlers.push_back(make_instance(handler, set, stream));
      if (graph_.handlers.size() > kHandlersMax) return; // check_sizes() refuses
    }
  }

  void join_group(Handler& handler, const Group& group) const {
    handler.group = group.name;
    if (!handler.clock.empty())
      throw Failure(
          Error{code::conflicting_keys,
                "'" + handler.name + "' takes items of all streams of '" + group.set + "', and cannot name a clock",
                handler.place,
                {"an item has the time of its stream"},
                "",
                "leave 'clock' out"});
    handler.clock = group_clock(group);
  }

  // ---- edges

  void make_edges(const Edge& edge) {
    const auto [source, stream] = read_instance_name(edge.source);
    const StreamSet* const from = set_of_items(source);
    const StreamSet* const to = set_of(edge.target);
    if (!stream.empty()) check_instance(edge, source, stream, from);
    if (group_of(edge.target)) return make_item_edges(edge, source, stream, from);
    if (to && from && from != to && stream.empty()) refuse_other_set(edge, *from, *to);
    if (!to && from && stream.empty()) return make_list(edge, *from);
    if (!to) return add(from_stream(edge, source, stream));
    for (const Stream& one : to->items) {
      Edge own = from_stream(edge, source, from && stream.empty() ? one.name : stream);
      own.target = instance_name(edge.target, one.name);
      add(own);
    }
  }

  // The set of a template, or of a group that takes its items.
  const StreamSet* set_of_items(const std::string& handler) const {
    const Group* const group = group_of(handler);
    return group ? written_.find_set(group->set) : set_of(handler);
  }

  // The edge as it comes from a stream: from an instance of its template, or with its items from a group.
  Edge from_stream(Edge edge, const std::string& source, const std::string& stream) const {
    if (stream.empty()) return edge;
    if (!group_of(source)) {
      edge.source = instance_name(source, stream);
      return edge;
    }
    edge.source = source;
    edge.item_of = stream;
    return edge;
  }

  // Into a group: one edge for each of the set's streams, unless it is within the group.
  void make_item_edges(const Edge& edge, const std::string& source, const std::string& stream, const StreamSet* from) {
    const Group &group = *group_of(edge.target), *const other = group_of(source);
    const StreamSet& set = *written_.find_set(group.set);
    if (!by_name_.count(source)) return add(edge); // the plan refuses it, and knows the names near it
    const bool is_within = other && other->name == group.name && stream.empty();
    if (is_within && edge.policy == Policy::sync && edge.delay == 0) return add(edge);
    const bool is_own = from == &set && stream.empty();
    if (from && from != &set && stream.empty()) refuse_items_of_two_sets(edge, *from, set, other);
    const bool is_allowed = edge.policy == Policy::latest || (is_own && edge.policy == Policy::sync);
    if (!is_allowed || (other && !is_own)) refuse_item_edge(edge, group, is_own, other);
    for (const Stream& one : set.items) {
      Edge own = from_stream(edge, source, is_own ? one.name : stream);
      own.item_of = one.name;
      add(own);
    }
  }

  [[noreturn]] static void refuse_item_edge(const Edge& edge, const Group& group, bool is_own, const Group* other) {
    const bool is_of_a_group = other && !is_own; // draw@gate, where `draw` takes items
    std::string how = is_of_a_group ? ", an item of one stream" : ", which is outside '" + group.set + "'";
    if (is_own) how = ", by policy: " + find_key(edge_keys(), "policy")->written(edge);
    throw Failure(
        Error{code::bad_group,
              "'" + edge.target + "' takes items of '" + group.set + "', and reads '" + edge.source + "'" + how,
              edge.place,
              {is_own          ? "a handler that takes items reads its streams by sync or latest"
               : is_of_a_group ? "a handler that takes items gets that of each stream in turn"
                               : "a value from outside is of no stream, so an item gets the newest one"},
              "",
              is_of_a_group ? edge_text(edge, read_instance_name(edge.source).handler, "sync")
                            : edge_text(edge, edge.source, is_own ? "sync" : "latest")});
  }

  [[noreturn]] static void refuse_items_of_two_sets(const Edge& edge, const StreamSet& from, const StreamSet& set,
                                                    const Group* other) {
    throw Failure(Error{
        code::bad_group,
        "'" + edge.target + "' takes items of '" + set.name + "', and reads '" + edge.source +
            "', of the streams of '" + from.name + "'",
        edge.place,
        {"nothing says which of their streams belong together"},
        "",
        other ? "a handler for each set" : edge_text(edge, instance_name(edge.source, from.items[0].name), "latest")});
  }

  // As a file has it: the edge, but from `source` and by this policy.
  static std::string edge_text(const Edge& edge, const std::string& source, const std::string& policy) {
    const std::string port = edge.source_port.empty() ? "" : "." + edge.source_port;
    return "{ from: " + source + port + ", policy: " + policy + " }";
  }

  void add(Edge edge) {
    if (graph_.edges.size() <= kEdgesMax) graph_.edges.push_back(std::move(edge)); // check_sizes() refuses one more
  }

  // One entry of a list for each stream. It is read by sync where the streams share a clock.
  void make_list(const Edge& edge, const StreamSet& from) {
    const bool waits_for_none = edge.policy == Policy::latest || edge.policy == Policy::align;
    const bool is_in_step = from.shared_clock && edge.policy == Policy::sync;
    if (!waits_for_none && !is_in_step)
      throw Failure(Error{code::bad_stream_edge,
                          "'" + edge.target + "' is outside the streams of '" + from.name + "', and reads '" +
                              edge.source + "' by policy: " + find_key(edge_keys(), "policy")->written(edge),
                          edge.place,
                          {"a list input reads all streams, by policy: latest or align and with a clock of its own",
                           "a single input reads them item by item, by policy: sync"},
                          "",
                          edge_text(edge, edge.source, "sync")});
    for (const Stream& one : from.items) {
      Edge entry = from_stream(edge, edge.source, one.name);
      entry.over = from.name;
      add(entry);
    }
  }

  void check_instance(const Edge& edge, const std::string& source, const std::string& stream,
                      const StreamSet* from) const {
    if (from && from->find(stream)) return;
    const Place& place = edge.source_place.line > 0 ? edge.source_place : edge.place;
    if (!from)
      throw Failure(
          Error{code::unknown_stream,
                "there is no '" + shown(edge.source) + "': '" + shown(source) +
                    (by_name_.count(source) ? "' is no template" : "' is no handler"),
                place,
                {"NAME@STREAM is an instance of a handler with 'for_each:', or a stream's item of a shared one"},
                by_name_.count(source) ? "" : nearest_template(source),
                by_name_.count(source) ? source : ""});
    const std::string nearest = nearest_name(stream, stream_names(*from));
    throw Failure(Error{code::unknown_stream,
                        "'" + from->name + "' has no stream '" + shown(stream) + "'",
                        place,
                        {"streams: " + list_of(stream_names(*from))},
                        nearest,
                        instance_name(source, nearest.empty() ? from->items[0].name : nearest)});
  }

  std::string nearest_template(const std::string& name) const {
    std::vector<std::string> templates;
    for (const Handler& handler : written_.handlers)
      if (!handler.for_each.empty()) templates.push_back(handler.name);
    return nearest_name(name, templates);
  }

  [[noreturn]] static void refuse_other_set(const Edge& edge, const StreamSet& from, const StreamSet& to) {
    throw Failure(Error{code::bad_stream_edge,
                        "'" + edge.target + "', a template of '" + to.name + "', reads '" + edge.source +
                            "', a template of '" + from.name + "'",
                        edge.place,
                        {"nothing says which of their streams belong together"},
                        "",
                        "one instance: " + instance_name(edge.source, from.items[0].name)});
  }

  // The entries of a list are numbered anew, since one that was written may have become many.
  void number_entries() {
    std::map<std::pair<std::string, std::string>, uint32_t> counts;
    for (Edge& edge : graph_.edges) edge.target_index = counts[{edge.target, edge.target_port}]++;
  }

  void check_sizes() const {
    const bool handlers = graph_.handlers.size() > kHandlersMax;
    if (!handlers && graph_.edges.size() <= kEdgesMax) return;
    throw Failure(Error{code::text_limit,
                        "the pipeline has more than " + (handlers ? std::to_string(kHandlersMax) + " handlers"
                                                                  : std::to_string(kEdgesMax) + " edges"),
                        written_.streams[0].place,
                        {"each stream has an instance of each template"},
                        "",
                        ""});
  }

  Graph written_;
  std::vector<Error>* const kept_;
  std::map<std::string, const Handler*> by_name_;
  std::map<std::string, Group> groups_;
  std::set<std::string> clock_names_;
  Graph graph_;
};

} // namespace

std::string clock_name(const StreamSet& set, const Stream& stream) {
  if (set.shared_clock) return set.name;
  return stream.is_seat ? set.name + stream.name : stream.name; // "cameras+8"
}

Handler make_instance(const Handler& handler, const StreamSet& set, const Stream& stream) {
  Handler made = handler;
  made.name = instance_name(handler.name, stream.name);
  made.written_as = handler.name;
  made.stream = stream.name;
  made.clock = clock_name(set, stream);
  const std::string own = handler.name + ".";
  for (const Param& field : stream.fields) {
    if (field.name == "node" && made.node.empty()) made.node = field.text;
    if (!field.name.starts_with(own)) continue;
    Param param = field;
    param.name = field.name.substr(own.size());
    set_param(made.params, std::move(param));
  }
  const Words words(set, stream);
  for (Param& param : made.params) param.text = words.fill(param.text, handler.name + "." + param.name, param.place);
  made.device = words.fill(made.device, handler.name + ".device", made.place);
  return made;
}

std::string instance_name(const std::string& handler, const std::string& stream) { return handler + "@" + stream; }

bool is_place_name(const std::string& stream) { return stream.starts_with('+'); }

namespace {

// The words with `replace` called for each stream's name in them, with what it gives in the place of "@name".
template <class Replace>
std::string replaced(const std::string& words, const Replace& replace) {
  std::string out;
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] != '@') {
      out += words[at];
      continue;
    }
    const size_t begin = at + 1; // up to what a stream's name does not have
    while (at + 1 < words.size() && (is_stream_name(words.substr(at + 1, 1)) || words[at + 1] == '+')) ++at;
    out += replace(words.substr(begin, at + 1 - begin));
  }
  return out;
}

} // namespace

std::string written_name(const std::string& name) {
  return replaced(name, [](const std::string&) { return std::string(); });
}

std::string with_stream(const std::string& words, const std::string& planned, const std::string& now) {
  return replaced(words, [&](const std::string& stream) { return "@" + (stream == planned ? now : stream); });
}

InstanceName read_instance_name(const std::string& name) {
  const size_t at = name.find('@');
  return {name.substr(0, at), at == std::string::npos ? "" : name.substr(at + 1)};
}

Graph unfold(const Graph& written, std::vector<Error>* kept) {
  for (const Handler& handler : written.handlers)
    if (written.streams.empty()) check_for_each(written, handler);
  if (written.streams.empty()) return written;
  return Unfolder(written, kept).unfold();
}

} // namespace millrace::graph
