// Checks of formats: element types, ranks, sizes and initial values. Private to runtime/plan.
#pragma once

#include "millrace/payload.h"
#include "plan/draft.h"

namespace millrace::plan {

// For tensors: dtype_of() is the element type; takes_dtype() and takes_rank() are true if the input accepts the given
// element type or number of dimensions.
DType dtype_of(const mr_format& format);
bool takes_dtype(const mr_format& accepts, const mr_format& gives);
bool takes_rank(const mr_format& accepts, const mr_format& gives);
std::string describe_rank(uint32_t rank);

// The writer's parameter that chooses one of these element types, "float32" or "f32", set to it. "" if it has none.
struct TypeEdit {
  std::string text;
  Place place; // line 0: the file gives no value for it
};
TypeEdit edit_to_dtypes(const DraftHandler& writer, uint32_t dtypes);

// Returns "" if the format that a handler gave for an output is valid, else what is wrong with it. Later passes index
// arrays by its fields, so an invalid format would lead beyond them.
std::string format_fault(const mr_format& format, const mr_port& port);

// For an input that takes values of two formats: makes `gets` large enough for both. Returns "" if they are alike, else
// the name of what differs.
std::string take_both(const mr_format& other, mr_format& gets);

// Call this once all formats are settled. It refuses a value whose size is unknown or that fits into no memory (MR0403,
// MR0404), an empty initial value of a format that cannot be empty (MR0407), and a host object that another node reads
// (MR0811).
void check_settled(const Draft& draft);

} // namespace millrace::plan
