// A port that carries records of any type: the plan refuses pictures and tensors, the handler looks at the type.
#pragma once

#include <millrace/handler.h>

namespace millrace::handlers {

// An option of a port of Any. Not a payload type of its own, because the type of the records, which a port of
// Records<T> declares, is what is left open.
struct OfRecords {};
inline constexpr OfRecords of_records{};

inline void apply(detail::PortData& data, OfRecords) {
  data.type_name = "Records";
  data.port.accepts.kind = MR_KIND_RECORDS;
}

} // namespace millrace::handlers
