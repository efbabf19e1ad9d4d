// Changes a graph by "handler.key=value", as --set gives it.
#include <algorithm>
#include <string_view>

#include "graph/document.h"
#include "graph/graph.h"
#include "graph/keys.h"
#include "graph/params.h"
#include "graph/quantity.h"
#include "graph/unfold.h"
#include "observe/error_codes.h"

namespace millrace::graph {

namespace {

constexpr std::string_view kOfBatch = "batch.";

bool is_of_batch(const std::string& key) { return key == "batch" || key.starts_with(kOfBatch); }

// The same words, but the mistake is in the command and not in the text. `whose` has the key that the edit sets.
Error as_of_command(const Error& of_text, const std::string& whose) {
  Error error = as_assignment(of_text);
  if (error.code != code::unknown_clock && error.code != code::unknown_node) error.code = code::bad_assigned_value;
  if (error.edit.find('=') != std::string::npos) error.edit = whose + "." + error.edit;
  return error;
}

Batch with_key(Batch batch, const std::string& name, const std::string& value, const Place& place) {
  if (const auto* key = find_key(batch_keys(), name)) {
    read_batch_key(batch, *key, value, place, place);
    return batch;
  }
  const std::vector<std::string> known = names_of(batch_keys());
  std::string list;
  for (const std::string& key : known) list += (list.empty() ? "" : ", ") + key;
  const std::string nearest = nearest_name(name, known);
  throw Failure(Error{code::unknown_key,
                      "'" + shown(name) + "' is no key of a batch",
                      place,
                      {"expected " + list},
                      nearest,
                      nearest.empty() ? "" : nearest + ": " + shown(value)});
}

// "batch" gives the size and nothing else, as the short form in a file does; "batch.budget" changes one key.
void assign_batch(const Graph& graph, Handler& handler, const std::string& key, const std::string& value,
                  const Place& place) {
  const bool is_whole = key == "batch";
  try {
    check_batch(graph, handler, place);
    Batch batch = is_whole ? read_batch_size(value, place)
                           : with_key(handler.batch.value_or(Batch{}), key.substr(kOfBatch.size()), value, place);
    batch.place = place;
    handler.batch = std::move(batch);
  } catch (const Failure& failure) {
    throw Failure(as_of_command(failure.error(), handler.name + (is_whole ? "" : ".batch")));
  }
}

void assign_key(const Graph& graph, Handler& handler, const std::string& key, const std::string& value,
                const Place& place) {
  if (is_comment_key(key))
    throw Failure(Error{code::assignment_to_fixed_key,
                        "'" + key + "' is a comment for other tools and sets nothing",
                        place,
                        {},
                        "",
                        ""});
  if (is_of_batch(key)) return assign_batch(graph, handler, key, value, place);
  const auto* reserved = find_key(handler_keys(), key);
  if (!reserved) {
    if (!is_type(key))
      throw Failure(Error{code::unreadable_assignment,
                          "'" + shown(key) + "' is no name of a parameter",
                          place,
                          {"expected handler.key=value"},
                          "",
                          ""});
    return set_param(handler.params, {key, value, place, place});
  }
  if (reserved->takes == Takes::shape)
    throw Failure(Error{code::assignment_to_fixed_key,
                        "'" + key + "' shapes the graph and cannot be set",
                        place,
                        {"it is changed in the pipeline itself"},
                        "",
                        ""});
  try {
    if (reserved->takes == Takes::not_yet) refuse_not_yet(*reserved, place);
    reserved->assign(handler, read_setting(*reserved, value, place));
    if (key == "clock") check_clock(graph, handler, place);
    if (key == "node") check_node(graph, "'" + handler.name + "'", handler.node, place);
  } catch (const Failure& failure) {
    throw Failure(as_of_command(failure.error(), handler.name));
  }
}

// "draw@gate7.thickness=3": the stream's own value.
void assign_field(Graph& graph, const Handler& handler, const std::string& stream, const std::string& key,
                  const std::string& value, const Place& place) {
  if (find_key(handler_keys(), key) || is_of_batch(key) || !is_type(key))
    throw Failure(Error{code::assignment_to_fixed_key,
                        "'" + shown(key) + "' cannot be set for one stream",
                        place,
                        {"a stream has values of its own for parameters"},
                        "",
                        is_of_batch(key) ? "" : "--set " + handler.name + "." + shown(key + "=" + value)});
  for (StreamSet& set : graph.streams) {
    if (set.name != handler.for_each) continue;
    for (Stream& item : set.items) {
      if (item.name != stream) continue;
      return set_param(item.fields, {handler.name + "." + key, value, place, place});
    }
    const std::string nearest = nearest_name(stream, names_of(set.items));
    throw Failure(
        Error{code::unknown_stream,
              "'" + set.name + "' has no stream '" + shown(stream) + "'",
              place,
              {},
              nearest,
              nearest.empty() ? "" : "--set " + instance_name(handler.name, nearest) + "." + shown(key + "=" + value)});
  }
  throw Failure(Error{code::unknown_stream,
                      "'" + handler.name + "' is no template, so it has no instance '" + shown(stream) + "'",
                      place,
                      {},
                      "",
                      "--set " + handler.name + "." + shown(key + "=" + value)});
}

} // namespace

void apply_set(Graph& graph, const std::string& assignment) {
  const Place place{"--set " + shown(assignment), 0, 0};
  check_text(assignment, "--set");
  const size_t equals = assignment.find('=');
  const size_t dot = assignment.substr(0, equals).find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot == 0 || dot + 1 == equals)
    throw Failure(Error{code::unreadable_assignment,
                        "'" + shown(assignment) + "' assigns nothing",
                        place,
                        {"expected handler.key=value"},
                        "",
                        "--set blur.sigma=2"});
  const auto [name, stream] = read_instance_name(assignment.substr(0, dot));
  const std::string key = assignment.substr(dot + 1, equals - dot - 1), value = assignment.substr(equals + 1);
  const auto found = std::find_if(graph.handlers.begin(), graph.handlers.end(),
                                  [&wanted = name](const Handler& h) { return h.name == wanted; });
  if (found == graph.handlers.end()) {
    std::vector<std::string> names;
    for (const Handler& handler : graph.handlers) names.push_back(handler.name);
    const std::string nearest = nearest_name(name, names);
    throw Failure(Error{code::assignment_to_unknown_handler,
                        "the pipeline has no handler '" + shown(name) + "'",
                        place,
                        {},
                        nearest,
                        nearest.empty() ? "" : "--set " + nearest + "." + shown(key + "=" + value)});
  }
  if (assignment.substr(0, dot).find('@') == std::string::npos) return assign_key(graph, *found, key, value, place);
  assign_field(graph, *found, stream, key, value, place);
}

} // namespace millrace::graph
