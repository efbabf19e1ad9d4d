// Finds groups of shared handlers; see find_groups.h.
#include "graph/find_groups.h"

#include <algorithm>

#include "graph/unfold.h"

namespace millrace::graph {

namespace {

class GroupSearch {
 public:
  explicit GroupSearch(const Graph& written) : written_(written) {
    for (const Handler& handler : written.handlers) by_name_[handler.name] = &handler;
  }

  std::map<std::string, Group> run() {
    find_shared();
    for (const auto& [handler, set] : set_of_) first_[handler] = handler;
    for (const Edge& edge : written_.edges)
      if (joins(edge)) join(edge.source, edge.target);
    std::map<std::string, Group> groups; // by the first of their handlers in the order of names
    for (const Handler& handler : written_.handlers)
      if (set_of_.count(handler.name)) add(groups[first_of(handler.name)], handler);
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
        if (!is_new && at->second != set) refuse_two_sets(edge, at->second, set);
        changed = changed || is_new;
      }
    }
  }

  [[noreturn]] static void refuse_two_sets(const Edge& edge, const std::string& one, const std::string& other) {
    throw Failure(Error{code::bad_group,
                        "'" + edge.target + "' takes items of '" + one + "' and of '" + other + "'",
                        edge.place,
                        {"nothing says which of their streams belong together"},
                        "",
                        "policy: latest on one of its inputs, or a handler for each set"});
  }

  bool joins(const Edge& edge) const {
    if (!set_of_.count(edge.source) || !set_of_.count(edge.target)) return false;
    const Handler& target = *by_name_.at(edge.target);
    return edge.policy == Policy::sync && edge.delay == 0 && !(target.batch && target.batch->of_rows);
  }

  std::string first_of(std::string handler) const {
    while (first_.at(handler) != handler) handler = first_.at(handler);
    return handler;
  }
  void join(const std::string& a, const std::string& b) {
    const auto [first, second] = std::minmax(first_of(a), first_of(b));
    first_[second] = first;
  }

  void add(Group& group, const Handler& handler) const {
    group.set = set_of_.at(handler.name);
    if (handler.batch) {
      for (const std::string& other : group.handlers)
        if (by_name_.at(other)->batch) refuse_two_batches(*by_name_.at(other), handler);
      group.name = handler.name;
    }
    if (group.name.empty()) group.name = handler.name;
    group.handlers.push_back(handler.name);
  }

  [[noreturn]] static void refuse_two_batches(const Handler& one, const Handler& other) {
    throw Failure(Error{code::bad_group,
                        "'" + one.name + "' and '" + other.name + "' are of one group, and both say 'batch'",
                        other.batch->place,
                        {"handlers that sync edges join take their items together"},
                        "",
                        "leave one of the two out"});
  }

  const Graph& written_;
  std::map<std::string, const Handler*> by_name_;
  std::map<std::string, std::string> set_of_; // shared handlers
  std::map<std::string, std::string> first_;  // shared handlers: itself, or one of its group that comes before it
};

} // namespace

std::map<std::string, Group> find_groups(const Graph& written) { return GroupSearch(written).run(); }

} // namespace millrace::graph
