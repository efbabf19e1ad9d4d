// Formats: what each output makes and each input takes, settled in the order of the data; where two sides share no
// pixel format, a conversion is asked for.
#include <bit>
#include <cctype>

#include "millrace/payload.h"
#include "plan/draft.h"

namespace millrace::plan {

namespace {

// What an input is told of the output that feeds it, before and after it is known.
mr_format unset(const mr_format& accepts) {
  mr_format format = accepts;
  format.size = sizeof(mr_format);
  return format;
}

std::string described_kind(uint32_t kind) {
  switch (kind) {
    case MR_KIND_IMAGE: return "Image";
    case MR_KIND_TENSOR: return "Tensor";
    case MR_KIND_PACKET: return "Packet";
    case MR_KIND_RECORDS: return "Records";
    case MR_KIND_OBJECT: return "Object";
    default: return "Any";
  }
}

std::string describe_pixels(uint64_t bits) {
  if (bits == 0) return "any pixel format";
  std::string text;
  for (uint32_t i = 1; i < MR_PIXEL_COUNT; ++i)
    if (bits >> i & 1) text += (text.empty() ? "" : ", ") + std::string(kPixelNames[i]);
  return text;
}

// The pixel format of an output that leaves a choice: the first that all readers take, else the first of its own.
void settle_pixels(Draft& draft, uint32_t h, uint32_t output) {
  mr_format& format = draft.handlers[h].outputs[output];
  if (format.kind != MR_KIND_IMAGE || std::popcount(format.pixel_formats) == 1) return;
  uint64_t common = format.pixel_formats ? format.pixel_formats : ~1ull & ((1ull << MR_PIXEL_COUNT) - 1);
  const uint64_t own = common;
  for (const DraftEdge& edge : draft.edges) {
    if (edge.source != h || edge.source_output != output) continue;
    const DraftHandler& target = draft.handlers[edge.target];
    const uint64_t takes = target.info->ports[target.input_port[edge.target_input]].raw.accepts.pixel_formats;
    if (takes && (common & takes)) common &= takes;
  }
  const uint64_t choice = common ? common : own;
  format.pixel_formats = choice & (~choice + 1);
}

// A handler's own words where it refuses formats or parameters; the place is that of the parameter that they name.
[[noreturn]] void refuse_setting(const DraftHandler& handler) {
  const graph::Handler& declared = *handler.declared;
  const std::string sentence = handler.instance->error();
  Error error{402, declared.name + " (" + handler.info->type + ") refuses: " + sentence, declared.place, {}, "", ""};
  for (const graph::Param& param : declared.params) {
    const size_t at = sentence.find(param.name);
    const auto letter = [&](size_t i) {
      return i < sentence.size() && std::isalnum(static_cast<unsigned char>(sentence[i]));
    };
    if (at == std::string::npos || (at > 0 && letter(at - 1)) || letter(at + param.name.size())) continue;
    error.place = param.place;
    if (const auto* known = handler.info->find_param(param.name))
      error.notes.push_back(known->name + ": " + known->help);
    break;
  }
  error.edit = "`millrace inspect " + handler.info->type + "` says what it takes";
  throw Failure(std::move(error));
}

void configure(Draft& draft, uint32_t h) {
  DraftHandler& handler = draft.handlers[h];
  handler.outputs.clear();
  for (uint32_t o = 0; o < handler.output_count; ++o) {
    const auto& port = handler.info->ports[handler.output_port[o]];
    mr_format format = unset(port.raw.accepts);
    if (port.raw.like >= 0) {
      const uint32_t flat = handler.first[static_cast<uint32_t>(port.raw.like)];
      if (flat < handler.inputs.size()) {
        const uint64_t counts = format.record_count_max;
        format = handler.inputs[flat];
        if (format.kind == MR_KIND_RECORDS && !format.record_count_max) format.record_count_max = counts;
      }
    }
    handler.outputs.push_back(format);
  }
  const std::vector<mr_format>& given = draft.facts.handlers[h].outputs;
  if (given.size() == handler.outputs.size() && !given.empty()) {
    handler.outputs = given;
    return;
  }
  if (!draft.facts.probed && handler.is_source()) return;
  if (handler.instance->configure(handler.inputs, handler.outputs) != MR_OK) refuse_setting(handler);
  for (uint32_t o = 0; o < handler.output_count; ++o) settle_pixels(draft, h, o);
}

// Takes the format of an edge into its input; asks for a conversion where the pixel formats do not meet.
void accept(Draft& draft, uint32_t e, std::vector<Conversion>& conversions) {
  const DraftEdge& edge = draft.edges[e];
  const DraftHandler& source = draft.handlers[edge.source];
  DraftHandler& target = draft.handlers[edge.target];
  const auto& port = target.info->ports[target.input_port[edge.target_input]];
  const mr_format& takes = port.raw.accepts;
  const mr_format& gives = source.outputs[edge.source_output];
  target.inputs[edge.target_input] = gives;
  const auto refuse = [&](const std::string& what, const std::string& from, const std::string& to,
                          const std::string& edit) {
    throw Failure(Error{402,
                        what,
                        edge.declared->place,
                        {draft.port_name(edge.source, false, edge.source_output) + " gives " + from,
                         draft.port_name(edge.target, true, edge.target_input) + " takes " + to},
                        "",
                        edit});
  };
  if (takes.kind != MR_KIND_ANY && gives.kind != takes.kind && gives.kind != MR_KIND_ANY)
    refuse("the two ends of an edge carry different payloads", described_kind(gives.kind), port.type_name,
           "a handler between them that takes " + described_kind(gives.kind) + " and gives " + port.type_name);
  if (takes.kind == MR_KIND_IMAGE && takes.pixel_formats && !(takes.pixel_formats & gives.pixel_formats)) {
    if (edge.declared->forbid_convert)
      refuse("the two ends of an edge share no pixel format, and it forbids a conversion",
             describe_pixels(gives.pixel_formats), describe_pixels(takes.pixel_formats), "remove convert: forbid");
    const uint64_t choice = takes.pixel_formats & (~takes.pixel_formats + 1);
    conversions.push_back({e, choice});
    target.inputs[edge.target_input].pixel_formats = choice;
  }
}

void check_sizes(const Draft& draft) {
  for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
    const DraftHandler& handler = draft.handlers[h];
    for (uint32_t o = 0; o < handler.output_count; ++o) {
      if (capacity_of(handler.outputs[o]) != UINT64_MAX) continue;
      throw Failure(Error{403,
                          "the size of " + draft.port_name(h, false, o) + " is not known",
                          handler.declared->place,
                          {"memory is laid out before the first tick, so its maximum must be"},
                          "",
                          draft.facts.probed ? "give " + handler.info->type + " a size or a bound"
                                             : "run without --no-probe, or give --facts"});
    }
  }
}

} // namespace

uint64_t capacity_of(const mr_format& format) {
  switch (format.kind) {
    case MR_KIND_IMAGE: {
      if (!format.width || !format.height || std::popcount(format.pixel_formats) != 1) return UINT64_MAX;
      mr_image image{};
      return lay_out_image(static_cast<Pixel>(std::countr_zero(format.pixel_formats)), format.width, format.height,
                           image);
    }
    case MR_KIND_TENSOR: {
      uint64_t count = 1;
      for (uint32_t d = 0; d < format.rank; ++d) {
        if (format.shape[d] < 0 || format.shape_kind[d] == MR_DIM_UNKNOWN) return UINT64_MAX;
        count *= static_cast<uint64_t>(format.shape[d]);
      }
      const uint64_t bits = uint64_t{format.dtype_bits} * format.dtype_lanes;
      return bits ? (count * bits + 7) / 8 : UINT64_MAX;
    }
    case MR_KIND_RECORDS:
      return format.record_count_max && format.record_size ? format.record_count_max * format.record_size : UINT64_MAX;
    case MR_KIND_PACKET: return format.bytes_max ? format.bytes_max : UINT64_MAX;
    case MR_KIND_OBJECT: return 0;
    default: return format.bytes_max ? format.bytes_max : UINT64_MAX;
  }
}

std::vector<Conversion> negotiate(Draft& draft) {
  std::vector<Conversion> conversions;
  for (DraftHandler& handler : draft.handlers) {
    handler.inputs.clear();
    for (uint32_t port : handler.input_port) handler.inputs.push_back(unset(handler.info->ports[port].raw.accepts));
  }
  // Delayed edges come from handlers that are configured later: the second round sees what the first one found.
  bool delayed = false;
  for (const DraftEdge& edge : draft.edges) delayed = delayed || edge.declared->delay > 0;
  for (int round = 0; round < (delayed ? 2 : 1); ++round) {
    conversions.clear();
    for (uint32_t h : draft.order) {
      for (uint32_t e : draft.handlers[h].input_edge) {
        if (e != kNone && (round > 0 || draft.edges[e].declared->delay == 0)) accept(draft, e, conversions);
      }
      configure(draft, h);
    }
  }
  if (conversions.empty()) check_sizes(draft);
  return conversions;
}

} // namespace millrace::plan
