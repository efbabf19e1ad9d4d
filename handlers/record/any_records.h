// Makes ports that carry records of any type: the plan refuses pictures and tensors, and the handler checks the type.
#pragma once

#include <millrace/handler.h>

namespace millrace::handlers {

// An option of a port of Any. It is not a payload type of its own, because a payload type Records<T> declares the type
// of the records, which is left open here.
struct OfRecords {};
inline constexpr OfRecords of_records{};

inline void apply(detail::PortData& data, OfRecords) {
  data.type_name = "Records";
  data.port.accepts.kind = MR_KIND_RECORDS;
}

} // namespace millrace::handlers
