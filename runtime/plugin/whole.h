// Reads whole numbers of JSON from another machine or another day: the library would cut 1.5 to 1 and 2^32 to 0, and
// takes 1e300 for whatever the processor makes of it.
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <utility>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::plugin {

// Becomes a number of any integer type. Throws Failure (MR0115) if the value is not whole or has no room there, and
// nlohmann::json::exception if it is no number.
struct Whole {
  const nlohmann::json& in;

  template <std::integral Number>
  requires(!std::same_as<Number, bool>) operator Number() const {
    const bool fits = in.is_number_unsigned()  ? std::in_range<Number>(in.get<uint64_t>())
                      : in.is_number_integer() ? std::in_range<Number>(in.get<int64_t>())
                                               : false;
    if (in.is_number() && !fits) throw Failure(code::bad_saved_plan, "a number is not whole, or is too large");
    return in.get<Number>();
  }
};

} // namespace millrace::plugin
