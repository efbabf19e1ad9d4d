// Finds nodes, homes and stages; see stages.h.
#include "plan/stages.h"

#include <algorithm>
#include <optional>

#include "millrace/nearest.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/format_text.h"
#include "plan/groups.h"
#include "plan/machine.h"

namespace millrace::plan {

namespace {

class SpreadStages {
 public:
  explicit SpreadStages(Draft& draft)
      : draft_(draft), nodes_(draft.options.nodes), homes_(draft.plan.clocks.size(), 0) {}

  void run() {
    for (const uint32_t h : draft_.order) find_node(h);
    find_homes();
    refuse_groups_over_nodes(draft_);
    refuse_places_elsewhere();
    refuse_led_clocks();
    find_stages();
  }

 private:
  const std::string& node_name(uint32_t node) const { return nodes_[node]; }

  void find_node(uint32_t h) {
    DraftHandler& handler = draft_.handlers[h];
    if (handler.declared->node.empty()) return;
    const auto at = std::find(nodes_.begin(), nodes_.end(), handler.declared->node);
    if (at == nodes_.end())
      refuse_node(handler.declared->name + " is to run on", handler.declared->node, handler.declared->place);
    handler.node = static_cast<uint32_t>(at - nodes_.begin());
  }

  [[noreturn]] void refuse_node(const std::string& what, const std::string& node, const Place& place) const {
    throw Failure(Error{code::unknown_node,
                        what + " \"" + node + "\", which is no node of this pipeline",
                        place,
                        {},
                        nearest_name(node, nodes_),
                        ""});
  }

  // The home of a clock: the node of its sources. Without sources: the one that the clock names, else that of its first
  // handler.
  void find_homes() {
    for (uint32_t c = 0; c < homes_.size(); ++c) {
      const DraftHandler *source = nullptr, *first = nullptr;
      for (const uint32_t h : draft_.order) {
        const DraftHandler& handler = draft_.handlers[h];
        if (handler.clock != c) continue;
        if (!first) first = &handler;
        if (!handler.is_source()) continue;
        if (source && source->node != handler.node) refuse_two_homes(*source, handler);
        source = &handler;
      }
      const std::optional<uint32_t> named = node_of(draft_.clocks[c]);
      if (source && named && *named != source->node) refuse_home(draft_.clocks[c], *source);
      homes_[c] = source ? source->node : named ? *named : first ? first->node : 0;
    }
    draft_.homes = homes_;
  }

  std::optional<uint32_t> node_of(const graph::Clock& clock) const {
    if (clock.node.empty()) return {};
    const auto at = std::find(nodes_.begin(), nodes_.end(), clock.node);
    if (at == nodes_.end()) refuse_node("clock \"" + clock.name + "\" is to begin on", clock.node, clock.node_place);
    return static_cast<uint32_t>(at - nodes_.begin());
  }

  [[noreturn]] void refuse_home(const graph::Clock& clock, const DraftHandler& source) const {
    throw Failure(Error{code::clock_on_two_nodes,
                        "clock \"" + name_of(draft_.plan.clocks[source.clock]) + "\" is to begin on " + clock.node +
                            ", and its sources are elsewhere",
                        clock.node_place,
                        {source.declared->name + " is on " + node_name(source.node)},
                        "",
                        "node: " + node_name(source.node)});
  }

  [[noreturn]] void refuse_two_homes(const DraftHandler& one, const DraftHandler& other) const {
    throw Failure(Error{code::clock_on_two_nodes,
                        "the sources of clock \"" + name_of(draft_.plan.clocks[one.clock]) +
                            "\" are on two nodes, and one has to say when a tick begins",
                        other.declared->place,
                        {one.declared->name + " is on " + node_name(one.node),
                         other.declared->name + " is on " + node_name(other.node)},
                        "",
                        "a clock of its own for " + other.declared->name + ", and latest or align where they meet"});
  }

  // A clock without sources ends by what the queues that feed it hold (8.11), so they have to be where it is.
  void refuse_led_clocks() const {
    for (const DraftEdge& edge : draft_.edges) {
      const DraftHandler& handler = draft_.handlers[edge.target];
      const Clock& clock = draft_.plan.clocks[handler.clock];
      if (clock.leaders.empty() || !edge.crosses_clocks || edge.declared->policy != graph::Policy::queue) continue;
      if (handler.node == homes_[handler.clock]) continue;
      throw Failure(Error{code::not_over_nodes,
                          "clock \"" + name_of(clock) + "\" has no source and begins its ticks on " +
                              node_name(homes_[handler.clock]) + ", and a queue that it ends by is read on " +
                              node_name(handler.node),
                          edge.declared->place,
                          {draft_.port_name(edge.target, true, edge.target_input) + " reads the queue"},
                          "",
                          "node: " + node_name(homes_[handler.clock])});
    }
  }

  // Streams come and go where the coordinator is: no other node hears of that, so none may have to do with them.
  void refuse_places_elsewhere() const {
    const auto has_room = [&](const DraftHandler& handler) { return draft_.plan.clocks[handler.clock].has_room; };
    for (const uint32_t h : draft_.order)
      if (const DraftHandler& handler = draft_.handlers[h]; has_room(handler) && handler.node != 0)
        refuse_place(handler, handler, "");
    for (const DraftEdge& edge : draft_.edges) {
      const DraftHandler &source = draft_.handlers[edge.source], &target = draft_.handlers[edge.target];
      if (has_room(source) && target.node != 0) refuse_place(source, target, " and reads " + written_name(source));
      if (has_room(target) && source.node != 0) refuse_place(target, source, " and is read by " + written_name(target));
    }
  }

  static const std::string& written_name(const DraftHandler& handler) {
    return handler.declared->written_as.empty() ? handler.declared->name : handler.declared->written_as;
  }

  [[noreturn]] void refuse_place(const DraftHandler& of_set, const DraftHandler& elsewhere,
                                 const std::string& how) const {
    throw Failure(Error{code::key_not_available,
                        "'" + draft_.plan.clocks[of_set.clock].set + "' has 'max', and " + written_name(elsewhere) +
                            " runs on node " + node_name(elsewhere.node) + how,
                        elsewhere.declared->place,
                        {"streams come and go on the first node, " + node_name(0) +
                         "; what has to do with them on other nodes is not there yet"},
                        "",
                        "node: " + node_name(0) + ", or leave 'max' out"});
  }

  // True if the reader waits for the edge's value of its own tick.
  bool is_waited_for(const DraftEdge& edge) const {
    if (edge.crosses_clocks) return false;
    const bool joins = edge.declared->policy == graph::Policy::sync || edge.declared->policy == graph::Policy::queue;
    return joins || !draft_.plan.clocks[draft_.handlers[edge.target].clock].realtime();
  }

  uint32_t stage_after(const DraftEdge& edge) const {
    const DraftHandler& source = draft_.handlers[edge.source];
    return source.stage + (source.node != draft_.handlers[edge.target].node ? 1 : 0);
  }

  // The longest ways, by repetition. Without a loop over a link a way visits each handler once, so that its stage is at
  // most their number.
  void find_stages() {
    for (DraftHandler& handler : draft_.handlers) handler.stage = handler.node == homes_[handler.clock] ? 0 : 1;
    const auto most = static_cast<uint32_t>(draft_.handlers.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (const DraftEdge& edge : draft_.edges) {
        DraftHandler& target = draft_.handlers[edge.target];
        if (!is_waited_for(edge) || stage_after(edge) <= target.stage) continue;
        target.stage = stage_after(edge);
        changed = true;
        if (target.stage > most) refuse_loop(edge);
      }
    }
  }

  [[noreturn]] void refuse_loop(const DraftEdge& edge) const {
    const DraftHandler &source = draft_.handlers[edge.source], &target = draft_.handlers[edge.target];
    throw Failure(Error{code::loop_over_nodes,
                        "a loop goes over a link: " + source.declared->name + " and " + target.declared->name +
                            " each wait for the other, and not all of the loop is on one node",
                        edge.declared->place,
                        {source.declared->name + " is on " + node_name(source.node),
                         target.declared->name + " is on " + node_name(target.node)},
                        "",
                        "the same node: for all handlers of the loop"});
  }

  Draft& draft_;
  const std::vector<std::string>& nodes_;
  std::vector<uint32_t> homes_; // by clock
};

} // namespace

void find_stages(Draft& draft) {
  if (draft.options.nodes.size() > 1) SpreadStages(draft).run();
  draft.homes.resize(draft.plan.clocks.size());
}

} // namespace millrace::plan
