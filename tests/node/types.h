// Handlers of the nodes in these tests: a source of boxes, a handler that adds them up, and a screen that refuses some.
#pragma once

#include "plugin/registry.h"

namespace millrace::node::test {

// n.boxes gives up to `most` boxes on each of `count` ticks, `rate` ticks a second, and refuses to give none. n.total
// makes a number of them and refuses more than `most`. n.show takes numbers.
const mr_plugin& boxes_plugin();
const mr_plugin& total_plugin();
const mr_plugin& show_plugin();

} // namespace millrace::node::test
