// What formats must keep to. Private to runtime/plan.
#pragma once

#include "millrace/payload.h"
#include "plan/draft.h"

namespace millrace::plan {

// Of a tensor: its element type, and whether what an input accepts has it and its number of dimensions.
DType dtype_of(const mr_format& format);
bool takes_dtype(const mr_format& accepts, const mr_format& gives);
bool takes_rank(const mr_format& accepts, const mr_format& gives);
std::string describe_rank(uint32_t rank);

// "" where what a handler said of an output can be read, else what is wrong with it. Everybody reads it: fields that no
// format has would lead beyond its arrays.
std::string format_fault(const mr_format& format, const mr_port& port);

// Once all formats are settled: refuse a value whose size is not known or that fits into no memory (MR0403, MR0404),
// and an empty initial value of a format that has none (MR0407).
void check_sizes(const Draft& draft);
void check_initials(const Draft& draft);

} // namespace millrace::plan
