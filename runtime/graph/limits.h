// Limits of a pipeline text, so that a broken or hostile one cannot exhaust the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::graph {

// 10,000 handlers of 400 letters each; the largest useful text of a person is a hundredth of it.
constexpr size_t kTextBytesMax = 4u << 20;
// A pipeline's own keys nest up to 6 deep; parameters may nest up to this. It is far below what recursion over the tree
// can bear.
constexpr int kNestingMax = 32;
// The most keys, scalars, lists and maps after aliases are written out: stops a "billion laughs" at some 50 MB.
constexpr size_t kValuesMax = 500'000;
// Passes of the plan are at worst quadratic in handlers: 10,000 take at most seconds.
constexpr size_t kHandlersMax = 10'000;
constexpr size_t kEdgesMax = 100'000;
// Handlers declare a few dozen parameters; the search for double ones is quadratic.
constexpr size_t kParamsMax = 256;
// Each node has a link to each other one, and `check` compiles a plan for each.
constexpr size_t kNodesMax = 64;
// Each stream has an instance of each template, and memory of its own.
constexpr int64_t kStreamsMax = 1024;
// Names are printed in tables, and are parts of thread names and file names.
constexpr size_t kNameLengthMax = 64;
// How much of a wrong text is repeated in a message.
constexpr size_t kShownLengthMax = 48;

constexpr int64_t kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
// A budget or an alignment of more than an hour is a slip of the unit.
constexpr int64_t kDurationNsMax = 3600 * kSecond;
// A tick costs more than the microsecond between such beats. The limit of the parts keeps products within 64 bits.
constexpr int64_t kRateMax = 1'000'000;
constexpr int64_t kRatePartMax = 1'000'000'000;

} // namespace millrace::graph
