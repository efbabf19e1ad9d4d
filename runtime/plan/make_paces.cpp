// Finds the handlers that are decoupled (1.6) or have a pace of their own (8.12), and the pace of each handler: one for
// each clock, one for each node, clock and later stage (stages.h), and one for each decoupled group.
#include <algorithm>
#include <map>
#include <tuple>

#include "plan/clock_circles.h"
#include "plan/expand.h"
#include "plan/machine.h"
#include "plan/reachability.h"
#include "plan/stages.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

class MakePaces {
 public:
  explicit MakePaces(Expansion& all)
      : all_(all), draft_(all.draft), plan_(all.plan), decoupled_(all.decoupled), counted_by_(all.counted_by) {}

  void run() {
    find_decoupled();
    find_apart();
    do make_paces();
    while (open_circle() || join_kinds());
    find_far_levels();
  }

 private:
  const DraftHandler& source_of(const DraftEdge& edge) const { return all_.source_of(edge); }
  const DraftHandler& target_of(const DraftEdge& edge) const { return all_.target_of(edge); }

  // 1.6. First marks the handlers that no sync path joins to a source, and non-sources whose outputs all leave by other
  // policies. Then takes back those that a handler which holds the tick open waits for.
  void find_decoupled() {
    const size_t count = draft_.handlers.size();
    std::vector<bool> joined(count), only_leaves(count);
    for (bool changed = true; changed;) { // delay edges run backwards in `order`
      changed = false;
      for (uint32_t h : draft_.order) {
        if (joined[h]) continue;
        joined[h] = draft_.handlers[h].is_source();
        for (uint32_t e : draft_.handlers[h].input_edge)
          if (e != kNone && is_sync(draft_.edges[e]) && joined[draft_.edges[e].source]) joined[h] = true;
        changed = changed || joined[h];
      }
    }
    for (uint32_t h = 0; h < count; ++h) only_leaves[h] = !draft_.handlers[h].is_source();
    std::vector<bool> leaves(count);
    for (const DraftEdge& edge : draft_.edges) {
      leaves[edge.source] = true;
      if (is_sync(edge)) only_leaves[edge.source] = false;
    }
    decoupled_.assign(count, false);
    for (uint32_t h = 0; h < count; ++h) {
      const DraftHandler& handler = draft_.handlers[h];
      const bool may_be = !handler.takes_items && (handler.stage == 0 || plan_.clocks[handler.clock].realtime());
      decoupled_[h] = may_be && (!joined[h] || (only_leaves[h] && leaves[h]));
    }
    for (const DraftEdge& edge : draft_.edges) { // a reader on another node that waits needs every tick
      const bool waits = joins_tick(edge) || !plan_.clocks[target_of(edge).clock].realtime();
      if (source_of(edge).node != target_of(edge).node && waits) decoupled_[edge.source] = false;
    }
    back_out();
  }

  void back_out() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const DraftEdge& edge : draft_.edges) {
        if (!joins_tick(edge) || !decoupled_[edge.source] || decoupled_[edge.target]) continue;
        decoupled_[edge.source] = false;
        changed = true;
      }
    }
  }

  // 8.12. A handler that owes results gets a pace of its own, together with all that depends on it, if that depends on
  // nothing else. Every tick of the pace is a firing of the handler: a gap in its input holds nothing open, and no
  // handler is drained.
  void find_apart() {
    const auto count = static_cast<uint32_t>(draft_.handlers.size());
    counted_by_.assign(count, kNone);
    counted_by_before_.assign(count, kNone);
    decoupled_alone_ = decoupled_;
    for (const uint32_t h :
         draft_.order) { // one that depends on another comes later, and its pace is within the other's
      const std::vector<uint32_t> group = dependents_alone(h);
      counted_by_before_[h] = counted_by_[h];
      for (const uint32_t member : group) {
        counted_by_[member] = h;
        decoupled_[member] = true;
      }
    }
  }

  // The handler and all that depends on it. Empty if it owes nothing, if a reader waits for a tick of the group, or if
  // a member reads from elsewhere or fires on ticks on which the handler does not.
  std::vector<uint32_t> dependents_alone(uint32_t root) const {
    if (draft_.handlers[root].info->max_pending == 0 || !fires_on_values(root)) return {};
    if (draft_.handlers[root].stage > 0) return {};
    std::vector<uint32_t> group{root};
    const auto has = [&](uint32_t h) { return std::find(group.begin(), group.end(), h) != group.end(); };
    for (size_t i = 0; i < group.size(); ++i) {
      for (const DraftEdge& edge : draft_.edges) {
        if (edge.source != group[i]) continue;
        if (!joins_tick(edge) || edge.declared->delay > 0 || edge.enters) return {};
        if (target_of(edge).stage > 0 || target_of(edge).node != source_of(edge).node) return {};
        if (!has(edge.target)) group.push_back(edge.target);
      }
    }
    for (const uint32_t h : group) {
      bool is_called = h == root;
      for (const DraftEdge& edge : draft_.edges) {
        if (edge.target != h) continue;
        if (has(edge.source) == (h == root)) return {};
        if (edge.crosses_clocks && edge.declared->policy != graph::Policy::latest) return {};
        is_called = is_called || (joins_tick(edge) && (!is_sync(edge) || !all_.is_optional(edge)));
      }
      if (!is_called) return {};
    }
    return group;
  }

  // True if the handler fires on exactly those ticks that have a value of each of its required inputs.
  bool fires_on_values(uint32_t h) const {
    bool requires_one = false;
    for (const DraftEdge& edge : draft_.edges) {
      if (edge.target != h || !joins_tick(edge)) continue;
      if (!is_sync(edge) || edge.declared->delay > 0) return false;
      requires_one = requires_one || !all_.is_optional(edge);
    }
    return requires_one;
  }

  // A group after a gate begins as a whole, once all that feeds it is there. If a path leads out of the group and back
  // to it, the group would wait for itself, so it holds the tick open instead. True if a group did.
  bool open_circle() {
    if (plan_.paces.size() == plan_.clocks.size()) return false;
    const auto handlers = static_cast<uint32_t>(draft_.handlers.size());
    Reachability ways(handlers + plan_.paces.size()); // between handlers, then the paces' gates
    for (const DraftEdge& edge : draft_.edges) {
      if (edge.declared->delay > 0) continue;
      ways.add(edge.source, edge.target);
      const uint32_t pace = target_of(edge).pace;
      if (joins_tick(edge) && decoupled_[edge.target] && all_.pace_from(edge) != pace)
        ways.add(edge.source, handlers + pace);
    }
    for (uint32_t h = 0; h < handlers; ++h)
      if (decoupled_[h]) ways.add(handlers + draft_.handlers[h].pace, h);
    for (uint32_t pace = 0; pace < plan_.paces.size(); ++pace) {
      if (!ways.leads(handlers + pace, handlers + pace)) continue;
      hold_open(pace);
      return true;
    }
    return false;
  }

  // A group after a gate may read from ticks of two kinds: its clock's, and those that another group's gate let in. It
  // could advance only when both have advanced, so it holds the tick open instead, and so do the groups that it reads
  // from. True if a group did.
  bool join_kinds() {
    std::vector<uint32_t> parent(plan_.paces.size(), kNone);
    for (const DraftEdge& edge : draft_.edges) {
      const uint32_t to = target_of(edge).pace;
      if (!joins_tick(edge) || !decoupled_[edge.target] || all_.pace_from(edge) == to) continue;
      const uint32_t from = all_.gate_pace(edge);
      if (parent[to] != kNone && parent[to] != from) {
        plan_.notes.push_back(target_of(edge).declared->name +
                              " holds its tick open: it reads from ticks of two kinds, all of its clock and some");
        hold_open(to);
        return true;
      }
      parent[to] = from;
    }
    return false;
  }

  void hold_open(uint32_t pace) {
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (!decoupled_[h] || draft_.handlers[h].pace != pace) continue;
      if (counted_by_[h] != kNone) return join_again(counted_by_[h]);
      decoupled_[h] = false;
    }
    back_out();
  }

  // Takes the handler's pace of its own away: it and its dependents go back to where they were without it.
  void join_again(uint32_t root) {
    const uint32_t outside = counted_by_before_[root];
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h) {
      if (counted_by_before_[h] == root) counted_by_before_[h] = outside;
      if (counted_by_[h] != root) continue;
      counted_by_[h] = outside;
      decoupled_[h] = outside != kNone || decoupled_alone_[h];
    }
  }

  void make_paces() {
    plan_.paces.clear();
    for (uint32_t c = 0; c < plan_.clocks.size(); ++c) {
      Pace pace;
      pace.clock = c;
      pace.node = draft_.homes[c];
      pace.led_by = plan_.clocks[c].leaders; // a clock's own pace has its number
      if (plan_.clocks[c].is_group) pace.kind = PaceKind::batch;
      plan_.paces.push_back(pace);
    }
    for (uint32_t h = 0; h < draft_.handlers.size(); ++h)
      draft_.handlers[h].pace = decoupled_[h] ? kNone : draft_.handlers[h].clock;
    make_far_paces();
    // Decoupled handlers share a pace if sync edges join them, also through one whose firings its own pace counts.
    for (uint32_t h : draft_.order) {
      if (draft_.handlers[h].pace != kNone) continue;
      Pace pace;
      pace.kind = PaceKind::decoupled;
      pace.clock = draft_.handlers[h].clock;
      pace.node = draft_.handlers[h].node;
      pace.stage = draft_.handlers[h].stage;
      plan_.paces.push_back(pace);
      spread(h, static_cast<uint32_t>(plan_.paces.size() - 1));
    }
  }

  void make_far_paces() {
    const std::vector<bool> on_circle = may_be_on_circle(draft_);
    std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, uint32_t> known; // node, clock, stage, handler
    for (const uint32_t h : draft_.order) {
      DraftHandler& handler = draft_.handlers[h];
      if (handler.stage == 0) continue;
      // A pace begins as a whole. On a circle a handler might so wait for what another one of its pace waits for.
      const uint32_t alone = on_circle[handler.clock] ? first_of_loop(h) : kNone;
      const auto [at, is_new] =
          known.try_emplace({handler.node, handler.clock, handler.stage, alone}, plan_.paces.size());
      handler.base = at->second;
      if (!decoupled_[h]) handler.pace = at->second;
      if (!is_new) continue;
      Pace pace;
      pace.kind = PaceKind::far;
      pace.clock = handler.clock;
      pace.node = handler.node;
      pace.stage = handler.stage;
      plan_.paces.push_back(pace);
    }
  }

  // The first handler that this one reads and that reads this one, by edges within their node, clock and stage; itself
  // if it is in no loop.
  uint32_t first_of_loop(uint32_t h) const {
    const std::vector<bool> before = reached_within(h, false), after = reached_within(h, true);
    for (uint32_t other = 0; other < h; ++other)
      if (before[other] && after[other]) return other;
    return h;
  }

  std::vector<bool> reached_within(uint32_t h, bool forwards) const {
    const auto place_of = [&](uint32_t at) {
      const DraftHandler& handler = draft_.handlers[at];
      return std::tuple(handler.node, handler.clock, handler.stage);
    };
    std::vector<bool> reached(draft_.handlers.size());
    std::vector<uint32_t> todo{h};
    reached[h] = true;
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      for (const DraftEdge& edge : draft_.edges) {
        const uint32_t near = forwards ? edge.source : edge.target, next = forwards ? edge.target : edge.source;
        if (near != at || reached[next] || place_of(next) != place_of(h)) continue;
        reached[next] = true;
        todo.push_back(next);
      }
    }
    return reached;
  }

  // The ticks that are pending before each far pace begins: steps of other nodes are in no plan of this one, so the
  // levels of steps (order.h) cannot say it. A pace begins as a whole, once all that feeds it is there.
  void find_far_levels() {
    if (draft_.options.nodes.size() < 2) return;
    std::vector<uint32_t> owed(draft_.handlers.size(), 0);
    std::vector<uint32_t> begins(plan_.paces.size(), 0); // ticks that are pending before the pace
    size_t looks = draft_.handlers.size() + 1;           // a loop that owes ever more is refused elsewhere
    for (bool changed = true; changed && looks > 0; --looks) {
      changed = false;
      for (const uint32_t h : draft_.order) {
        const uint32_t pace = draft_.handlers[h].pace;
        uint32_t before = begins[pace];
        for (const DraftEdge& edge : draft_.edges)
          if (edge.target == h && !edge.crosses_clocks)
            before = std::max(before, owed[edge.source] - std::min(owed[edge.source], edge.declared->delay));
        for (const DraftEdge& edge : draft_.edges) {
          if (edge.target != h || plan_.paces[pace].kind == PaceKind::clock || !joins_tick(edge) ||
              source_of(edge).pace == pace)
            continue;
          for (const uint32_t gated : {pace, all_.gate_pace(edge)}) // a clock's own pace waits for nothing
            if (gated >= plan_.clocks.size()) begins[gated] = std::max(begins[gated], owed[edge.source]);
        }
        const uint32_t after = std::max(before, begins[pace]) + all_.ticks_owed(h);
        changed = changed || after > owed[h];
        owed[h] = std::max(owed[h], after);
      }
    }
    for (uint32_t p = 0; p < plan_.paces.size(); ++p)
      if (plan_.paces[p].kind == PaceKind::far) plan_.paces[p].level = begins[p];
    for (size_t h = 0; h < owed.size(); ++h) draft_.handlers[h].owed_after = owed[h];
  }

  void spread(uint32_t h, uint32_t pace) {
    draft_.handlers[h].pace = pace;
    for (const DraftEdge& edge : draft_.edges) {
      if (!is_sync(edge)) continue;
      const uint32_t other = edge.source == h ? edge.target : edge.target == h ? edge.source : kNone;
      if (other == kNone || draft_.handlers[other].base != draft_.handlers[h].base) continue;
      if (takes_part(other, counted_by_[h])) spread(other, pace);
      // Two handlers that feed one with a pace of its own share a pace: its gate waits for both.
      if (edge.source != h || counted_by_[other] != other || counted_by_before_[other] != counted_by_[h]) continue;
      for (const DraftEdge& beside : draft_.edges)
        if (beside.target == other && is_sync(beside) && takes_part(beside.source, counted_by_[h]))
          spread(beside.source, pace);
    }
  }

  // True if the handler is decoupled, belongs to the pace of `root` (kNone: its clock's), and has no pace yet.
  bool takes_part(uint32_t h, uint32_t root) const {
    return decoupled_[h] && counted_by_[h] == root && draft_.handlers[h].pace == kNone;
  }

  Expansion& all_;
  Draft& draft_;
  Plan& plan_;
  std::vector<bool>& decoupled_;
  std::vector<uint32_t>& counted_by_;
  std::vector<bool> decoupled_alone_;       // by rule 1.6 alone
  std::vector<uint32_t> counted_by_before_; // by handler: its counted_by_ as it is without a pace of its own
};

} // namespace

void make_paces(Expansion& expansion) { MakePaces(expansion).run(); }

} // namespace millrace::plan
