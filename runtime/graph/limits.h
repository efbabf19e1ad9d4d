// What a pipeline text may not exceed, so that a broken or hostile one cannot take the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::graph {

// 10,000 handlers of 400 letters each; the largest text that a person has a use for is a hundredth of it.
constexpr size_t kTextBytesMax = 4u << 20;
// The deepest thing that a pipeline says by itself is 6; parameters may nest as they like up to here. Far below
// what recursion over the tree can bear.
constexpr int kNestingMax = 32;
// Keys, scalars, lists and maps after aliases are written out: ends a "billion laughs" at some 50 MB.
constexpr size_t kValuesMax = 500'000;
// Passes of the plan are at worst quadratic in handlers: 10,000 stay within seconds.
constexpr size_t kHandlersMax = 10'000;
constexpr size_t kEdgesMax = 100'000;
// Handlers declare a few dozen; the search for double ones is quadratic.
constexpr size_t kParamsMax = 256;
// Names are printed in tables, and are parts of thread names and file names.
constexpr size_t kNameLengthMax = 64;
// How much of a wrong text is repeated in a message.
constexpr size_t kShownLengthMax = 48;

constexpr int64_t kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
// A budget or an alignment of more than an hour is a slip of the unit.
constexpr int64_t kDurationNsMax = 3600 * kSecond;
// A beat of a microsecond is below what a tick costs; numerator and denominator keep products within 64 bits.
constexpr int64_t kRateMax = 1'000'000;
constexpr int64_t kRatePartMax = 1'000'000'000;

} // namespace millrace::graph
