// Checks of odd inputs and parameters: sizes, formats, counts, gaps, ends of ranges. Each check returns the cases that
// it tried, and throws Skip or Fault.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "millrace/check_handler/rig.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {
namespace check {

struct Size {
  uint32_t width, height;
  const char* name;
};

inline bool takes(const Rig& rig, uint32_t kind) {
  for (uint32_t p = 0; p < rig.declared().port_count; ++p) {
    const mr_port& port = rig.declared().ports[p];
    const bool any = port.accepts.kind == MR_KIND_ANY;
    if (port.direction == MR_INPUT && (port.accepts.kind == kind || (any && kind == MR_KIND_IMAGE))) return true;
  }
  return false;
}

inline std::string takes_odd_sizes(const Subject& subject) {
  Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); rig.is_source()) throw Skip("it has no inputs");
  std::string refused;
  for (const Size& size : {Size{1, 1, "1x1"}, Size{1, 7, "1x7"}, Size{7, 1, "7x1"}, Size{2, 3, "2x3"},
                           Size{33, 17, "33x17"}, Size{65, 64, "65x64"}, Size{2051, 1537, "2051x1537"}}) {
    feed.width = size.width;
    feed.height = size.height;
    Rig rig(subject, feed);
    std::string refusal;
    if (!starts(rig, &refusal)) {
      refused += (refused.empty() ? "refuses " : "; ") + std::string(size.name) + ": " + refusal;
      continue;
    }
    if (!rig.small_enough()) continue;
    for (uint64_t k = 0; k < 2; ++k) require_fine(rig, rig.tick(k), std::string("with inputs of ") + size.name);
  }
  return refused;
}

inline std::string takes_every_pixel_format(const Subject& subject) {
  Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); !takes(rig, MR_KIND_IMAGE)) throw Skip("it takes no pictures");
  std::string refused;
  for (uint32_t pixel = 1; pixel < MR_PIXEL_COUNT; ++pixel) {
    feed.pixel = pixel;
    for (const Size& size : {Size{64, 48, "64x48"}, Size{33, 17, "33x17"}}) {
      feed.width = size.width;
      feed.height = size.height;
      Rig rig(subject, feed);
      std::string refusal;
      const std::string name(kPixelNames[pixel]);
      if (!starts(rig, &refusal)) {
        refused += (refused.empty() ? "refuses " : "; ") + name + " " + size.name + ": " + refusal;
        continue;
      }
      require_fine(rig, rig.tick(pixel), "with " + name + " pictures of " + size.name);
    }
  }
  return refused;
}

// Tries each declared element type and number of dimensions. An input that declares neither is skipped.
inline std::string takes_every_tensor_it_declares(const Subject& subject) {
  Feed feed = working_feed(subject);
  uint32_t dtypes = 0, ranks = 0;
  {
    Rig rig(subject, feed);
    for (uint32_t p = 0; p < rig.declared().port_count; ++p) {
      if (rig.declared().ports[p].direction == MR_OUTPUT) continue;
      dtypes |= rig.test.accepts(p).dtypes;
      ranks |= rig.test.accepts(p).ranks;
    }
  }
  if (!dtypes && !ranks) throw Skip("no input declares element types or dimensions of tensors");
  std::string refused;
  for (size_t i = 0; i < kDTypes.size(); ++i)
    for (uint32_t rank = 0; rank <= MR_RANK_MAX; ++rank) {
      if (dtypes ? !(dtypes >> i & 1) : kDTypes[i] != feed.dtype) continue;
      if (ranks ? !(ranks >> rank & 1) : rank != feed.rank) continue;
      Feed declared = feed;
      declared.dtype = kDTypes[i];
      declared.rank = rank;
      Rig rig(subject, declared);
      std::string refusal;
      const std::string name = name_of(kDTypes[i]) + " of " + std::to_string(rank) + " dimensions";
      if (!starts(rig, &refusal)) {
        refused += (refused.empty() ? "refuses " : "; ") + name + ": " + refusal;
        continue;
      }
      require_fine(rig, rig.tick(i), "with " + name);
    }
  return refused;
}

inline std::string takes_any_number_of_records(const Subject& subject) {
  Feed feed = working_feed(subject);
  if (Rig rig(subject, feed); !takes(rig, MR_KIND_RECORDS)) throw Skip("it takes no records");
  Rig rig(subject, feed);
  require_start(rig, "");
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{300}, uint64_t{0}}) {
    feed.records = count;
    for (uint32_t p = 0; p < rig.declared().port_count; ++p) {
      const mr_port& port = rig.declared().ports[p];
      if (port.direction == MR_INPUT) rig.test.input(port.name, *value_for(port, feed, count));
    }
    require_fine(rig, rig.test.tick(), "with " + std::to_string(count) + " records");
  }
  return "";
}

inline std::string takes_lists(const Subject& subject) {
  Feed feed = working_feed(subject);
  uint32_t most = 0;
  {
    const Rig rig(subject, feed);
    for (uint32_t p = 0; p < rig.declared().port_count; ++p)
      if (rig.declared().ports[p].flags & MR_PORT_MANY) most = std::max(most, rig.declared().ports[p].many_max);
  }
  if (most == 0) throw Skip("no input takes a list");
  std::string refused;
  for (const uint32_t edges : {1u, 2u, 3u, most}) {
    feed.edges = edges;
    Rig rig(subject, feed);
    std::string refusal;
    if (!starts(rig, &refusal)) {
      refused += (refused.empty() ? "refuses " : "; ") + std::to_string(edges) + " edges: " + refusal;
      continue;
    }
    require_fine(rig, rig.tick(edges), "with " + std::to_string(edges) + " edges");
  }
  return refused;
}

inline std::string works_without_optional_inputs(const Subject& subject) {
  Feed feed = working_feed(subject);
  bool optional = false;
  {
    const Rig rig(subject, feed);
    for (uint32_t p = 0; p < rig.declared().port_count; ++p)
      optional = optional || (rig.declared().ports[p].flags & MR_PORT_OPTIONAL);
  }
  if (!optional) throw Skip("no input is optional");
  feed.optional_values = false;
  Rig empty(subject, feed);
  require_start(empty, "with its optional inputs connected");
  for (uint64_t k = 0; k < 3; ++k) require_fine(empty, empty.tick(k), "when its optional inputs are empty");
  feed.optional_inputs = false;
  Rig unconnected(subject, feed);
  std::string refusal;
  if (!starts(unconnected, &refusal)) return "refuses no optional input at all: " + refusal;
  for (uint64_t k = 0; k < 3; ++k)
    require_fine(unconnected, unconnected.tick(k), "when its optional inputs are not connected");
  return "";
}

inline std::string takes_gaps(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  if (rig.is_source()) throw Skip("it has no inputs");
  require_start(rig, "");
  for (uint64_t k = 0; k < kTicks; ++k)
    require_fine(rig, rig.tick(k, k % 3 != 1), "when values come at every third tick only");
  return "";
}

inline std::string works_unread(const Subject& subject) {
  const Feed feed = working_feed(subject);
  Rig rig(subject, feed);
  bool outputs = false;
  for (uint32_t p = 0; p < rig.declared().port_count; ++p) {
    if (rig.declared().ports[p].direction == MR_INPUT) continue;
    rig.test.unconnected(rig.declared().ports[p].name);
    outputs = true;
  }
  if (!outputs) throw Skip("it has no outputs");
  require_start(rig, "with no reader");
  for (uint64_t k = 0; k < 3; ++k) require_fine(rig, rig.tick(k), "when nothing reads its outputs");
  return "";
}

inline std::string number_in_words(const mr_param& param, double number) {
  return param.type == MR_PARAM_INT ? std::to_string(static_cast<int64_t>(number)) : v1::detail::number_text(number);
}

// The ends of the range, or all choices, or both truths.
inline std::vector<std::string> edge_values(const mr_param& param) {
  if (param.type == MR_PARAM_BOOL) return {"true", "false"};
  std::vector<std::string> texts;
  if (param.choices) {
    for (const char* const* choice = param.choices; *choice; ++choice) texts.emplace_back(*choice);
    return texts;
  }
  if (!(param.flags & MR_PARAM_HAS_RANGE)) return {};
  for (const double end : {param.min, param.max})
    if (std::isfinite(end)) texts.push_back(number_in_words(param, end));
  return texts;
}

inline std::string takes_its_parameters(const Subject& subject) {
  const Feed feed = working_feed(subject);
  const Rig declared(subject, feed);
  uint32_t tried = 0;
  std::string refused;
  for (uint32_t i = 0; i < declared.declared().param_count; ++i) {
    const mr_param& param = declared.declared().params[i];
    for (const std::string& text : edge_values(param)) {
      const std::string given = std::string(param.name) + "=" + text;
      Rig rig(subject, feed);
      rig.test.set(param.name, text);
      ++tried;
      std::string refusal;
      if (!starts(rig, &refusal)) {
        refused += (refused.empty() ? "refuses " : "; ") + given + ": " + refusal;
        continue;
      }
      if (!rig.small_enough()) continue;
      for (uint64_t k = 0; k < 2; ++k) {
        const Result result = rig.tick(k);
        // A parameter may tell a handler to fail; then it must do so with a sentence.
        if (result.status == MR_ERROR && !result.error.empty() && k == 0) break;
        require_fine(rig, result, "with " + given);
      }
    }
  }
  if (tried == 0) throw Skip("no parameter has a range or choices");
  return refused;
}

inline std::string changes_live(const Subject& subject) {
  Rig rig(subject, working_feed(subject));
  require_start(rig, "");
  uint32_t changed = 0;
  for (uint32_t i = 0; i < rig.declared().param_count; ++i) {
    const mr_param& param = rig.declared().params[i];
    if (!(param.flags & MR_PARAM_LIVE)) continue;
    for (const std::string& text : edge_values(param)) {
      rig.test.set(param.name, text);
      ++changed;
      require_fine(rig, rig.tick(changed), "after " + std::string(param.name) + "=" + text + " while it runs");
    }
  }
  if (changed == 0) throw Skip("no parameter is live");
  return "";
}

} // namespace check
} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
