// Drives any handler through odd orders of its life and odd inputs, and compares its behaviour with its declarations.
//
//   for (const mr::testing::HandlerCheck& check : mr::testing::kHandlerChecks)
//     assert(check.run(mr::testing::subject_of<Invert>()).verdict != mr::testing::Verdict::fail);
//
// `millrace check-handler TYPE` runs the same checks, each in a process of its own, so that a crash or a call that
// never returns is a finding too. Nothing here knows a handler: values are made from the declaration of the ports.
// A handler may refuse a size or a value, in words; it may not fail after it has accepted, nor behave otherwise than it
// declared. One thread calls; a check that needs a second one makes it.
//
// The parts: check_handler/subject.h (the verdict), check_handler/feed.h (values from a declaration),
// check_handler/rig.h (a handler with its inputs), and the checks in life.h, inputs.h and promises.h.
#pragma once

#include <array>
#include <stdexcept>
#include <string>

#include "millrace/check_handler/inputs.h"
#include "millrace/check_handler/life.h"
#include "millrace/check_handler/promises.h"
#include "millrace/testing.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

namespace check {

template <std::string (*Body)(const Subject&)>
Finding run(const Subject& subject) {
  return guarded(subject, Body);
}

} // namespace check

// The first ones find what would make the others fail too: a handler that does not start.
inline constexpr std::array kHandlerChecks = {
    HandlerCheck{"described", "it has a summary, and every parameter a help", &check::run<check::described>},
    HandlerCheck{"works", "it starts, ticks, drains and stops", &check::run<check::works>},
    HandlerCheck{"facts", "two probes tell the same, and what can be", &check::run<check::probes_alike>},
    HandlerCheck{"lives-twice", "it can be started again after a stop", &check::run<check::lives_twice>},
    HandlerCheck{"devices", "it starts on the host and where its CPU body stands in for a GPU's",
                 &check::run<check::starts_on_any_device>},
    HandlerCheck{"restart", "stop, reset, start brings it back (on_error: restart)", &check::run<check::restarts>},
    HandlerCheck{"stop", "stop is legal without a start, and twice", &check::run<check::stops_without_start>},
    HandlerCheck{"drain", "drain is legal before the first tick, and twice", &check::run<check::drains_twice>},
    HandlerCheck{"reset", "reset is legal at any time", &check::run<check::resets>},
    HandlerCheck{"forgets", "after a reset it gives what a fresh instance gives", &check::run<check::forgets_the_past>},
    HandlerCheck{"interrupt", "an interrupt in any state does no lasting harm",
                 &check::run<check::interrupted_in_every_state>},
    HandlerCheck{"interrupt-thread", "interrupts from another thread end calls and nothing else",
                 &check::run<check::interrupted_while_it_works>},
    HandlerCheck{"sizes", "inputs of odd sizes, from 1x1 to large, are taken or refused in words",
                 &check::run<check::takes_odd_sizes>},
    HandlerCheck{"pixels", "every pixel format that it declares is taken",
                 &check::run<check::takes_every_pixel_format>},
    HandlerCheck{"tensors", "every element type and number of dimensions that it declares is taken",
                 &check::run<check::takes_every_tensor_it_declares>},
    HandlerCheck{"records", "no record, one and many are taken", &check::run<check::takes_any_number_of_records>},
    HandlerCheck{"lists", "lists of edges are taken up to the declared length", &check::run<check::takes_lists>},
    HandlerCheck{"optional", "it works when optional inputs are empty or not connected",
                 &check::run<check::works_without_optional_inputs>},
    HandlerCheck{"gaps", "it works when values come now and then", &check::run<check::takes_gaps>},
    HandlerCheck{"unread", "it works when nothing reads its outputs", &check::run<check::works_unread>},
    HandlerCheck{"parameters", "the ends of ranges and all choices are taken or refused in words",
                 &check::run<check::takes_its_parameters>},
    HandlerCheck{"live", "live parameters may change between ticks", &check::run<check::changes_live>},
    HandlerCheck{"end", "a source ends where it said, and stays at its end", &check::run<check::ends_as_it_said>},
    HandlerCheck{"max_pending", "late results are at most as many as declared, in order, and settled by drain",
                 &check::run<check::keeps_to_max_pending>},
    HandlerCheck{"keeps", "no earlier input is read that was not declared", &check::run<check::keeps_what_it_declares>},
    HandlerCheck{"stateless", "two instances give what one gives", &check::run<check::has_no_state>},
    HandlerCheck{"items", "an item gives the same whatever else is in its call", &check::run<check::takes_items_alike>},
    HandlerCheck{"in_place", "in place and apart give the same", &check::run<check::writes_in_place_alike>},
    HandlerCheck{"no_allocation", "process allocates nothing from the heap", &check::run<check::allocates_nothing>},
};

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
