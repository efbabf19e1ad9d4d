// Small handlers whose values tests can follow.
#pragma once

#include <millrace/abi.h>

#include <cstdint>

namespace millrace::test {

// The arithmetic of t.join: an order of inputs, a value in another place, a missing one all change the result.
int64_t mix(int64_t a, int64_t b);
// That of t.need and t.paced, and that of t.keep. Both wrap around: graphs may be deep.
int64_t thousands(int64_t a, int64_t b);
int64_t sum(int64_t a, int64_t b);

// How often t.foreign's memory was given to the last run, and given back.
int64_t foreign_adopted();
int64_t foreign_released();

// Handlers: t.count (source: index; count, rate, step_ns, silent_every, end), t.relay (value + add; silent_every,
// fail_at, fail_every), t.join (list, all optional: mixes), t.need (two required inputs), t.sink (list, optional),
// t.ended (as t.sink, but logs which inputs have ended), t.late (pending: answers `after` firings later), t.paint (in
// place: adds to its input's bytes), t.forward (its input's own buffer), t.keep (sums three values), t.restarting (its
// starts), t.stateless and t.capturable (relays). A value is one number, `size` times over; who reads one looks at all
// of it. With `log` also others than sinks write down what they saw; t.keep its sum.
const mr_plugin& test_plugin();

} // namespace millrace::test
