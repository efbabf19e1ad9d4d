// Names of templates, for the printed forms of a plan: "draw@cameras" stands for draw@gate7, draw@hall, … Private to
// runtime/plan.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/step.h"

namespace millrace::plan {

struct EdgePlan;
struct HandlerPlan;
struct Plan;
struct Segment;

struct StreamsOfSet {
  std::string name;
  std::vector<std::string> streams;
};

// Keeps nothing of the plan but names.
class TemplateNames {
 public:
  explicit TemplateNames(const Plan& plan);

  // The sets that have instances in the plan; none if the pipeline has no streams.
  const std::vector<StreamsOfSet>& sets() const { return sets_; }
  bool empty() const { return sets_.empty(); }
  size_t stream_count() const;

  // A stream, by its set and its index in it. kNone: none, or several.
  struct Stream {
    uint32_t set = kNone, index = kNone;
    bool is_one() const { return set != kNone; }
    auto operator<=>(const Stream&) const = default;
  };
  const std::string& name_of(const Stream& stream) const { return sets_[stream.set].streams[stream.index]; }
  Stream stream_of(const HandlerPlan& handler) const;
  // The stream that the clock is there for; none for one that a set shares.
  Stream stream_of_clock(uint32_t clock) const { return clocks_[clock]; }
  Stream stream_of_step(const Plan& plan, const Step& step) const;
  // None also if its steps belong to several streams, or one of them to none.
  Stream stream_of_segment(const Plan& plan, const Segment& segment) const;
  Stream stream_of_edge(const EdgePlan& edge) const;
  // That of all instances in the text, or of the clock that it begins with: "clock gate7: …".
  Stream stream_in(const std::string& text) const;

  // `text` with the stream's instances named by their templates: "entry of draw@gate7" is "entry of draw@cameras".
  // Instances of other streams keep their names, unless the stream is none.
  std::string by_template(const std::string& text, const Stream& own) const;
  // `text` with lists of instances of one template shortened: "draw@gate7.video, draw@hall.video" is
  // "draw@cameras.video (2)". Lists that lack a stream stay as they are if they are short.
  std::string with_short_lists(const std::string& text) const;
  // "cameras (2)", "wall" for the names of these clocks.
  std::vector<std::string> clock_names(const std::vector<uint32_t>& clocks) const;

  // A plan in which everything that is there for one stream has the name that it has for all of them.
  Plan named_by_template(const Plan& plan) const;

 private:
  // An instance's name in a text, from `begin` to `end`.
  struct Found {
    size_t begin = 0, end = 0;
    std::string handler; // "draw"
    Stream stream;
  };
  bool find_next(const std::string& text, size_t from, Found& found) const;
  std::string written(const Found& found) const; // "draw@cameras"
  Stream stream_of_prefix(const std::string& text) const;

  std::vector<StreamsOfSet> sets_;
  std::map<std::string, uint32_t> set_of_template_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> index_of_; // in the set
  std::vector<Stream> clocks_;                                    // by clock
  std::vector<std::string> clock_names_;
  std::map<std::string, Stream> clock_named_;
};

} // namespace millrace::plan
