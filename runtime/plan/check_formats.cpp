// Refuses invalid formats, unknown or excessive sizes, and empty initial values of formats that cannot be empty.
#include "plan/check_formats.h"
#include "graph/params.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/facts.h"
#include "plan/machine.h"
#include "plugin/handler_info.h"

#include <algorithm>
#include <string>

namespace millrace::plan {

DType dtype_of(const mr_format& format) { return {format.dtype_code, format.dtype_bits, format.dtype_lanes}; }

bool takes_dtype(const mr_format& accepts, const mr_format& gives) {
  return !accepts.dtypes || (accepts.dtypes & bit_of(dtype_of(gives)));
}
bool takes_rank(const mr_format& accepts, const mr_format& gives) {
  return !accepts.ranks || (gives.rank <= MR_RANK_MAX && (accepts.ranks >> gives.rank & 1));
}
std::string describe_rank(uint32_t rank) { return std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions"); }

std::string format_fault(const mr_format& format, const mr_port& port) {
  if (port.accepts.kind != MR_KIND_ANY && format.kind != port.accepts.kind) return "is of another kind than its port";
  if (format.size_kind > MR_DIM_UNKNOWN) return "has a size of no known kind";
  if (format.kind != MR_KIND_TENSOR) return "";
  if (format.dtype_bits && !takes_dtype(port.accepts, format))
    return "is of " + name_of(dtype_of(format)) + ", and it declares " + describe_dtypes(port.accepts.dtypes);
  if (format.dtype_bits && !takes_rank(port.accepts, format))
    return "has " + describe_rank(format.rank) + ", and it declares " + describe_ranks(port.accepts.ranks);
  if (format.rank > MR_RANK_MAX)
    return "has " + std::to_string(format.rank) + " dimensions, and a tensor has at most " +
           std::to_string(MR_RANK_MAX);
  for (uint32_t d = 0; d < format.rank; ++d) {
    if (format.shape_kind[d] > MR_DIM_UNKNOWN) return "has a dimension of no known kind";
    if (format.shape[d] < 0) return "has a dimension of " + std::to_string(format.shape[d]);
  }
  return "";
}

TypeEdit edit_to_dtypes(const DraftHandler& writer, uint32_t dtypes) {
  const graph::Handler& declared = *writer.declared;
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (!(dtypes >> i & 1)) continue;
    const std::string name = name_of(kDTypes[i]), brief = name[0] + std::to_string(kDTypes[i].bits);
    for (const auto& param : writer.info->params) {
      const auto choice = std::find_if(param.choices.begin(), param.choices.end(),
                                       [&](const std::string& one) { return one == name || one == brief; });
      if (choice == param.choices.end()) continue;
      if (const graph::Param* const given = graph::find_param(declared.params, param.name))
        return {assignment(given->place, param.name, *choice), given->place};
      return {declared.name + ": { …, " + param.name + ": " + *choice + " }", {}};
    }
  }
  return {};
}

std::string take_both(const mr_format& other, mr_format& gets) {
  if (other.kind != gets.kind) return "kinds";
  if (other.pixel_formats != gets.pixel_formats) return "pixel formats";
  if (other.dtype_code != gets.dtype_code || other.dtype_bits != gets.dtype_bits ||
      other.dtype_lanes != gets.dtype_lanes)
    return "element types";
  if (other.rank != gets.rank) return "numbers of dimensions";
  if (other.schema != gets.schema || other.record_size != gets.record_size) return "record types";
  for (uint32_t d = 0; d < gets.rank && d < MR_RANK_MAX; ++d) {
    if (other.shape[d] != gets.shape[d]) gets.shape_kind[d] = std::max<uint32_t>(gets.shape_kind[d], MR_DIM_BOUNDED);
    gets.shape_kind[d] = std::max(gets.shape_kind[d], other.shape_kind[d]);
    gets.shape[d] = std::max(gets.shape[d], other.shape[d]);
  }
  if (other.width != gets.width || other.height != gets.height)
    gets.size_kind = std::max<uint32_t>(gets.size_kind, MR_DIM_BOUNDED);
  gets.size_kind = std::max(gets.size_kind, other.size_kind);
  gets.width = std::max(gets.width, other.width);
  gets.height = std::max(gets.height, other.height);
  gets.record_count_max = std::max(gets.record_count_max, other.record_count_max);
  gets.bytes_max = std::max(gets.bytes_max, other.bytes_max);
  return "";
}

namespace {

void check_sizes(const Draft& draft) {
  for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
    const DraftHandler& handler = draft.handlers[h];
    for (uint32_t o = 0; o < handler.output_count; ++o) {
      const uint64_t bytes = capacity_of(handler.outputs[o]);
      if (bytes < kBytesMax) continue;
      if (bytes != UINT64_MAX)
        throw Failure(Error{code::memory_exceeded,
                            "a value of " + draft.port_name(h, false, o) + " is larger than any memory",
                            handler.declared->place,
                            {},
                            "",
                            "smaller values"});
      throw Failure(Error{code::unknown_size,
                          "the size of " + draft.port_name(h, false, o) + " is not known",
                          handler.declared->place,
                          {"memory is laid out before the first tick, so its maximum must be"},
                          "",
                          draft.facts.probed ? "give " + handler.info->type + " a size or a bound"
                                             : "run without --no-probe, or give --facts"});
    }
  }
}

// `initial: empty` is a value of the port's format without elements, which not every format has.
void check_initials(const Draft& draft) {
  for (const DraftEdge& edge : draft.edges) {
    if (!edge.declared->initial_empty) continue;
    const mr_format& format = draft.handlers[edge.source].outputs[edge.source_output];
    const char* const kind = format.kind == MR_KIND_OBJECT                       ? "a host object"
                             : format.kind == MR_KIND_TENSOR && format.rank == 0 ? "a tensor without dimensions"
                                                                                 : nullptr;
    if (kind)
      throw Failure(Error{code::missing_initial_value,
                          "initial: empty: " + std::string(kind) + " cannot be empty",
                          edge.declared->place,
                          {draft.port_name(edge.source, false, edge.source_output) + " gives it"},
                          "",
                          "make the input optional, and leave initial: out"});
  }
}

void check_objects(const Draft& draft) {
  for (const DraftEdge& edge : draft.edges) {
    const DraftHandler &source = draft.handlers[edge.source], &target = draft.handlers[edge.target];
    if (source.node == target.node || source.outputs[edge.source_output].kind != MR_KIND_OBJECT) continue;
    const std::string& there = draft.options.nodes[target.node];
    throw Failure(Error{code::object_over_nodes,
                        draft.port_name(edge.source, false, edge.source_output) + " does not cross to " + there +
                            ": it is a host object, a pointer into its process",
                        edge.declared->place,
                        {source.declared->name + " is on " + draft.options.nodes[source.node],
                         target.declared->name + " is on " + there},
                        "",
                        "the same node: for both"});
  }
}

} // namespace

void check_settled(const Draft& draft) {
  check_sizes(draft);
  check_initials(draft);
  check_objects(draft);
}

} // namespace millrace::plan
