// Places the conversions that negotiation inserted, and describes them in the plan (semantics.md 5.6).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include "millrace/payload.h"
#include "plan/domain.h"
#include "plan/draft.h"
#include "plan/explained.h"
#include "plan/format_text.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// The bytes that cross boundaries if a conversion runs in one domain or another. A copy to a domain costs nothing if
// the domain gets one anyway, for another reader.
class Sides {
 public:
  Sides(const Draft& draft, uint32_t handler, const std::set<uint32_t>& unplaced) : convert_(draft.handlers[handler]) {
    const DraftEdge& from = draft.edges[convert_.input_edge[0]];
    source_ = draft.handlers[from.source].domain;
    may_copy_in_ = !from.declared->forbid_copy;
    for (const DraftEdge& edge : draft.edges) {
      if (edge.source == handler) {
        const uint32_t domain = draft.handlers[edge.target].domain;
        if (readers_.insert(domain).second) in_order_.push_back(domain);
        if (edge.declared->forbid_copy) must_be_.insert(domain);
      } else if (edge.source == from.source && edge.source_output == from.source_output &&
                 !unplaced.count(edge.target)) {
        has_it_.insert(draft.handlers[edge.target].domain);
      }
    }
    has_it_.insert(source_);
  }

  // Both sides of the boundary, the readers' first.
  std::vector<uint32_t> domains() const {
    std::vector<uint32_t> all = in_order_;
    if (!readers_.count(source_)) all.push_back(source_);
    return all;
  }
  bool is_source(uint32_t domain) const { return domain == source_; }

  // UINT64_MAX if an edge forbids a copy that this needs.
  uint64_t bytes_in(uint32_t domain) const {
    uint64_t bytes = 0;
    if (!has_it_.count(domain)) bytes += copied_bytes(convert_.inputs[0]);
    if (domain != source_ && !may_copy_in_) return UINT64_MAX;
    for (const uint32_t reader : readers_) {
      if (reader == domain) continue;
      if (must_be_.count(reader)) return UINT64_MAX;
      bytes += copied_bytes(convert_.outputs[0]);
    }
    return bytes;
  }

 private:
  const DraftHandler& convert_;
  uint32_t source_ = 0;
  bool may_copy_in_ = true;
  // Domains. readers_: of its readers; in_order_ has the same in the order of the graph. must_be_: of readers that must
  // not get a copy. has_it_: those that have the conversion's input anyway.
  std::set<uint32_t> readers_, must_be_, has_it_;
  std::vector<uint32_t> in_order_;
};

void place_conversion(Draft& draft, uint32_t h, const std::vector<uint32_t>& choices,
                      const std::set<uint32_t>& unplaced) {
  DraftHandler& handler = draft.handlers[h];
  const Sides sides(draft, h, unplaced);
  std::vector<uint32_t> domains;
  for (const uint32_t domain : sides.domains())
    if (std::find(choices.begin(), choices.end(), domain) != choices.end()) domains.push_back(domain);
  if (domains.empty()) return; // it can run on neither side, and stays where it is
  const auto fewer = [&](uint32_t a, uint32_t b) { return sides.bytes_in(a) < sides.bytes_in(b); };
  std::stable_sort(domains.begin(), domains.end(), fewer);
  handler.domain = domains[0];
  if (domains.size() == 1) {
    const bool both = sides.domains().size() == 1;
    handler.reason = both                          ? "where both its ends are"
                     : sides.is_source(domains[0]) ? "where its picture is made"
                                                   : "where its reader is";
    return;
  }
  const uint64_t here = sides.bytes_in(domains[0]), there = sides.bytes_in(domains[1]);
  const std::string& other = draft.plan.domains[domains[1]].name;
  handler.reason = sides.is_source(domains[0]) ? "before the copy: " : "after the copy: ";
  if (there == UINT64_MAX)
    handler.reason += "an edge forbids the copy that it would need in " + other;
  else
    handler.reason += fmt::format("{} a tick cross, {} if it were in {}", bytes_words(here), bytes_words(there), other);
}

// "64×48", "720×576 of pixels 16:15"
std::string size_of(const mr_format& format) {
  std::string size = fmt::format("{}×{}", format.width, format.height);
  if (format.aspect_num != format.aspect_den && format.aspect_den > 0)
    size += fmt::format(" of pixels {}:{}", format.aspect_num, format.aspect_den);
  return size;
}

// The reason for a conversion of sizes: "boxes takes square pixels".
std::string wish_of_size(const DraftHandler& conversion, const std::string& reader, const std::string& source) {
  const graph::Param& first = conversion.declared->params.at(0);
  if (conversion.info->converts(MR_ROLE_TURN)) return source + " asks for " + first.name + "=" + first.text;
  return reader + " takes square pixels";
}

// "boxes takes rgb8"
std::string wish_of(const Draft& draft, const DraftEdge& edge, uint64_t from, const std::string& to) {
  const DraftHandler& reader = draft.handlers[edge.target];
  const mr_format& accepts = reader.accepts[reader.input_port[edge.target_input]];
  const bool takes_both = accepts.kind != MR_KIND_IMAGE || !accepts.pixel_formats || (accepts.pixel_formats & from);
  if (takes_both) return "what " + reader.declared->name + " passes on is wanted in " + to;
  return reader.declared->name + " takes " + describe_pixels(accepts.pixel_formats);
}

bool has_alpha(uint64_t pixels) { return pixels & (1ull << MR_PIXEL_RGBA8 | 1ull << MR_PIXEL_BGRA8); }

// True for a handler at an end of the graph that writes files: what it does not get is lost.
bool writes_files(const DraftHandler& handler) {
  return handler.output_count == 0 &&
         std::any_of(handler.info->params.begin(), handler.info->params.end(),
                     [](const auto& param) { return param.raw.flags & MR_PARAM_WRITES_PATH; });
}

} // namespace

void place_conversions(Draft& draft, const std::vector<std::vector<uint32_t>>& choices) {
  std::set<uint32_t> unplaced; // conversions that a price placed stay there
  for (uint32_t h = 0; h < draft.handlers.size(); ++h)
    if (draft.handlers[h].declared->inserted && draft.handlers[h].reason.empty()) unplaced.insert(h);
  for (const uint32_t h : std::set(unplaced)) {
    place_conversion(draft, h, choices[h], unplaced);
    unplaced.erase(h);
  }
}

void describe_conversions(Draft& draft) {
  Plan& plan = draft.plan;
  for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
    const DraftHandler& handler = draft.handlers[h];
    if (!handler.declared->inserted) continue;
    const auto name_of = [](uint64_t bits) {
      return std::string(kPixelNames[static_cast<size_t>(std::countr_zero(bits))]);
    };
    InsertedPlan shown;
    shown.handler = h;
    shown.declared = *handler.declared;
    const bool of_pixels = handler.info->converts(MR_ROLE_PIXELS);
    shown.from = of_pixels ? name_of(handler.inputs[0].pixel_formats) : size_of(handler.inputs[0]);
    shown.to = of_pixels ? name_of(handler.outputs[0].pixel_formats) : size_of(handler.outputs[0]);
    shown.source = plan.edges[handler.input_edge[0]].from;
    for (uint32_t e = 0; e < draft.edges.size(); ++e) {
      if (draft.edges[e].source != h) continue;
      shown.readers.push_back(plan.edges[e].to);
      const std::string& reader = draft.handlers[draft.edges[e].target].declared->name;
      const std::string& source = draft.handlers[draft.edges[handler.input_edge[0]].source].declared->name;
      const DraftHandler& target = draft.handlers[draft.edges[e].target];
      if (of_pixels && has_alpha(handler.inputs[0].pixel_formats) && !has_alpha(handler.outputs[0].pixel_formats) &&
          writes_files(target))
        plan.notes.push_back(reader + " writes no transparency: that of " + shown.source + " (" + shown.from +
                             ") is lost");
      const std::string wish = of_pixels ? wish_of(draft, draft.edges[e], handler.inputs[0].pixel_formats, shown.to)
                                         : wish_of_size(handler, reader, source);
      if (shown.reason == wish) continue;
      shown.reason += (shown.reason.empty() ? "" : " and ") + wish;
    }
    const auto elsewhere = draft.elsewhere.find(handler.declared->name);
    if (elsewhere != draft.elsewhere.end()) shown.elsewhere = elsewhere->second;
    shown.predicted_us = static_cast<double>(plan.handlers[h].cost_ns) / 1000;
    shown.width = handler.outputs[0].width;
    shown.height = handler.outputs[0].height;
    shown.bytes = capacity_of(handler.outputs[0]);
    plan.inserted.push_back(std::move(shown));
  }
}

} // namespace millrace::plan
