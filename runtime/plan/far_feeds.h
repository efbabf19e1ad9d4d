// The feeds of far paces (stages.h): which values go from which pace to which, and the steps at both ends of each feed.
// Part of expand(). Private to runtime/plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/expand.h"
#include "plan/machine.h"
#include "plan/pace.h"

namespace millrace::plan {

// The feed by which the output of a far pace's entry comes.
const Feed& feed_of(const Pace& pace, uint32_t output);
// The crossing that has this channel; null if both ends of the channel are on this node.
const CrossingPlan* crossing_of(const Plan& plan, uint32_t channel);
// The crossing by which an entry's value comes from another node; null if the output is no such value.
const CrossingPlan* arrival_of(const Plan& plan, uint32_t output);
// Gives feeds the places that circles of clocks need (8.3).
void hold_feeds(Plan& plan);

class FarFeeds {
 public:
  // Finds all feeds, also those between other nodes, and makes the far paces that only post values. For each feed that
  // has an end here it makes a channel, with a gate if its ticks leave a pace of this node, and with outputs of the
  // pace's entry if they come into one.
  explicit FarFeeds(Expansion& all);

  // The far pace on the reader's node that only posts the edge's value. kNone: the edge needs none.
  uint32_t posting_pace(uint32_t edge) const;
  // The entry's output that carries the edge's value in a far pace; kNone if the pace is on another node.
  uint32_t value_in(uint32_t pace, uint32_t edge) const;

 private:
  // A value of a feed. Edges that want the same one share it.
  struct Value {
    uint32_t handler, output; // its maker, and the flat output
    uint32_t delay;
    bool initial_empty, repeat_last;
    bool operator==(const Value&) const = default;
  };
  struct Found {
    std::vector<Value> values;
    std::vector<std::pair<uint32_t, uint32_t>> edges; // edge, index of its value
    uint32_t first = 0;                               // its values are the entry's outputs from this one on
  };
  using Ends = std::pair<uint32_t, uint32_t>; // the fed pace, the pace before it

  void add_value(uint32_t pace, uint32_t edge, bool looks_back);
  // kNone: of no edge.
  uint32_t posting_pace_for(uint32_t from, uint32_t node, uint32_t edge);
  void feed_the_unfed();
  void make_feed(const Ends& ends, Found& feed);
  uint32_t ticks_on_the_way(uint32_t pace) const;
  uint32_t make_gate(const Ends& ends, const Found& feed, uint32_t channel);
  void make_outputs(uint32_t pace, Found& feed, bool from_here);
  // Names of steps, as plans and messages show them: "to gpu", "to stage 2"; "from gpu", "join of stage 2".
  graph::Delivery delivery_of(const Clock& clock, const Found& feed) const;
  std::string gate_name(const Ends& ends) const;
  std::string entry_name(uint32_t pace) const;
  const std::string& node_of(uint32_t pace) const { return draft_.options.nodes[plan_.paces[pace].node]; }
  bool is_here(uint32_t pace) const;
  uint32_t output_of(const Value& value) const; // its maker is on this node
  const DraftHandler& source_of(uint32_t edge) const { return all_.source_of(draft_.edges[edge]); }
  const DraftHandler& target_of(uint32_t edge) const { return all_.target_of(draft_.edges[edge]); }

  Expansion& all_;
  Draft& draft_;
  Plan& plan_;
  std::map<Ends, Found> feeds_;
  // Pace, node, handler and output → the pace that posts. Each value has one of its own, because a pace begins as a
  // whole: one value would wait for what only another one waits for.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, uint32_t> posting_;
};

} // namespace millrace::plan
