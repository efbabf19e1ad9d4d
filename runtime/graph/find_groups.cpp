// Finds groups of shared handlers; see find_groups.h.
#include "graph/find_groups.h"

#include <algorithm>

#include "graph/unfold.h"
#include "observe/error_codes.h"

namespace millrace::graph {

namespace {

class GroupSearch {
 public:
  GroupSearch(const Graph& written, std::vector<Error>* kept) : written_(written), kept_(kept) {
    for (const Handler& handler : written.handlers) by_name_[handler.name] = &handler;
  }

  std::map<std::string, Group> run() {
    find_shared();
    for (const auto& [handler, set] : set_of_) first_[handler] = handler;
    for (const Edge& edge : written_.edges)
      if (joins(edge)) join(edge.source, edge.target);
    std::map<std::string, Group> groups; // by the first of their handlers in the order of names
    for (const Handler& handler : written_.handlers)
      if (set_of_.count(handler.name))
        add(groups[first_of(handler.name)], handler);
      else if (handler.batch && reads_what_there_is(handler))
        attempt(kept_, [&] { refuse_batch_of_none(handler); });
    std::map<std::string, Group> by_handler;
    for (const auto& [first, group] : groups)
      for (const std::string& handler : group.handlers) by_handler[handler] = group;
    return by_handler;
  }

 private:
  const Handler* handler_of(const std::string& name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : at->second;
  }

  // The set whose items the edge brings to its reader; "": it brings none.
  std::string items_by(const Edge& edge) const {
    const Handler *source = handler_of(edge.source), *target = handler_of(edge.target); // null also for draw@gate7
    if (!source || !target || !target->for_each.empty() || edge.policy != Policy::sync) return "";
    if (const auto shared = set_of_.find(edge.source); shared != set_of_.end()) return shared->second;
    const StreamSet* const set = source->for_each.empty() ? nullptr : written_.find_set(source->for_each);
    // Streams that share a clock are read by a list, as one tick, unless the reader says that it takes items.
    return set && (!set->shared_clock || target->batch) ? set->name : "";
  }

  void find_shared() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Edge& edge : written_.edges) {
        const std::string set = items_by(edge);
        if (set.empty()) continue;
        const auto [at, is_new] = set_of_.try_emplace(edge.target, set);
        changed = changed || is_new;
      }
    }
  }

  // False if an edge of the handler names one that is not there, which is told elsewhere.
  bool reads_what_there_is(const Handler& handler) const {
    return std::all_of(written_.edges.begin(), written_.edges.end(), [&](const Edge& edge) {
      return edge.target != handler.name || handler_of(read_instance_name(edge.source).handler);
    });
  }

  [[noreturn]] static void refuse_batch_of_none(const Handler& handler) {
    throw Failure(Error{code::bad_group,
                        "'" + handler.name + "' has 'batch', and takes no items",
                        handler.batch->place,
                        {"a handler takes items if a single input reads a template or such a handler by policy: sync"},
                        "",
                        "leave 'batch' out"});
  }

  bool joins(const Edge& edge) const {
    const auto source = set_of_.find(edge.source), of = set_of_.find(edge.target);
    if (source == set_of_.end() || of == set_of_.end() || source->second != of->second) return false;
    const Handler& target = *by_name_.at(edge.target);
    return edge.policy == Policy::sync && edge.delay == 0 && !(target.batch && target.batch->of_rows);
  }

  std::string first_of(std::string handler) const {
    while (first_.at(handler) != handler) handler = first_.at(handler);
    return handler;
  }
  void join(const std::string& a, const std::string& b) {
    const auto [first, second] = std::minmax({first_of(a), first_of(b)}); // values: the others would be gone
    first_[second] = first;
  }

  void add(Group& group, const Handler& handler) const {
    group.set = set_of_.at(handler.name);
    if (handler.batch) {
      for (const std::string& other : group.handlers)
        if (by_name_.at(other)->batch) attempt(kept_, [&] { refuse_two_batches(*by_name_.at(other), handler); });
      group.name = handler.name;
    }
    if (group.name.empty()) group.name = handler.name;
    group.handlers.push_back(handler.name);
  }

  [[noreturn]] static void refuse_two_batches(const Handler& one, const Handler& other) {
    throw Failure(Error{code::bad_group,
                        "'" + one.name + "' and '" + other.name + "' are of one group, and both have 'batch'",
                        other.batch->place,
                        {"shared handlers that sync edges join take their items together"},
                        "",
                        "leave 'batch' out"});
  }

  const Graph& written_;
  std::vector<Error>* const kept_;
  std::map<std::string, const Handler*> by_name_;
  std::map<std::string, std::string> set_of_; // shared handlers
  std::map<std::string, std::string> first_;  // shared handlers: itself, or one of its group that comes before it
};

} // namespace

std::map<std::string, Group> find_groups(const Graph& written, std::vector<Error>* kept) {
  return GroupSearch(written, kept).run();
}

} // namespace millrace::graph
