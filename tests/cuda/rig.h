// The real devices for tests and benchmarks, and handlers whose kernels tests can follow.
#pragma once

#include "harness.h"

namespace millrace::test {

// Handlers: c.index (source: its tick's index; count), c.add (adds 1), c.pair (two inputs), c.paint (in place), c.spin
// (takes `us` microseconds on the device, then adds 1), c.wild (writes to an illegal address at tick `at`), c.waits
// (does what no graph can hold), c.end (a GPU sink), c.move (bytes: a picture of `bytes` that is passed on by a
// kernel), c.make (source: `bytes` of which the first and the last eight are its tick's index; count), c.first (those
// eight, or -1 where the last are others), c.table (lasts; `each`) and c.lookup (an entry of it), c.few (as many boxes
// as its value modulo 8) and c.total (of them), c.climb (two loops on the device) and c.where (adds 1, with all the
// shared memory that its device has for a block).
const mr_plugin& cuda_plugin();

// cpu and cuda:0 (and cuda:1), with the handlers above.
Setup on_gpu(std::vector<std::string> domains = {"cuda:0", "cpu"}, const std::string& faults = "");

} // namespace millrace::test
