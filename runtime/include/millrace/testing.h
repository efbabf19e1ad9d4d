// Runs one handler alone, without a runtime: give it inputs, let it tick, look at its outputs.
//
//   mr::testing::HandlerTest<Invert> test({{"strength", "1"}});
//   test.input("video", mr::testing::image(mr::Pixel::rgb8, 4, 2, 0));
//   const mr::testing::Result result = test.tick();
//   assert(result.ok() && result.image("video").row(0)[0] == 255);
//
// The handler is driven through the same C table as in a pipeline: create, set_param, bind, probe, configure, start,
// then process and finish per tick, drain and stop. The first values given set the formats of the inputs. Time is
// virtual and stands still between ticks.
//
// A firing fails if the handler says so, and also if the handler
//   - wrote past the end of a block, or before its beginning,
//   - wrote over an input without permission,
//   - published more than its formats allow.
//
// A handler that takes several items a call:
//
//   for (const mr::testing::Value& patch : patches) {
//     test.input("patch", patch);
//     test.put();
//   }
//   const std::vector<mr::testing::Result> results = test.fire_items();
//
// One thread drives a test; the handler may call publish() and fail() from any thread. A mistake in the test itself
// (a port that does not exist, a required input without a value) throws std::logic_error.
//
// The parts: testing/value.h (inputs and outputs), testing/result.h (one firing), testing/table_test.h (the driver).
#pragma once

#include <functional>
#include <initializer_list>

#include "millrace/handler.h"
#include "millrace/nearest.h"
#include "millrace/param_text.h"
#include "millrace/sound_value.h"
#include "millrace/testing/firing.h"
#include "millrace/testing/host.h"
#include "millrace/testing/items.h"
#include "millrace/testing/result.h"
#include "millrace/testing/table_test.h"
#include "millrace/testing/value.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

// Drives a handler class.
template <class H>
class HandlerTest : public TableTest {
 public:
  explicit HandlerTest(std::initializer_list<Setting> settings = {})
      : TableTest(v1::detail::Type<H>::table("test.handler", "", ""), settings) {}
  H& handler() const { return *static_cast<H*>(self()); }
};

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
