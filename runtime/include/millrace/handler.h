// Everything that a handler author needs. Derive from Handler, declare ports and parameters as members, write one
// `process` per device, and register the class.
//
//   struct Invert final : mr::Handler {
//     mr::Input<mr::Image>  video{*this, "video"};
//     mr::Output<mr::Image> out{*this, "video", mr::like(video)};
//     void process(mr::Tick& tick, mr::Cpu&) { … }
//   };
//   MILLRACE_HANDLER(Invert, "acme.invert", "Inverts every pixel")
//   MILLRACE_PLUGIN("acme", "1.0")
//
// The life of a handler:
//
//   constructor ─► parameters ─► narrow ─► probe ─► configure      while the plan is made
//                                                       │
//          ┌────────────────────────────────────────────┘
//          ▼
//        start ─► process, finish ─► drain ─► stop ─► destructor   while it runs
//          ▲       ▲          │        │        │
//          │       ├── next ──┘        │        │
//          │       └── reset ◄─────────┘        │                  after a long pause
//          └────────── reset ◄──────────────────┘                  on_error: restart
//
//   - An instance is called by one thread at a time, and its ticks come in order. The thread may change from call to
//     call. interrupt() is the exception: it comes from any thread, at any time, more than once.
//   - Different instances of a type are called at the same time by different threads: process() by workers, probe() of
//     sources while the plan is made. What they share, such as a library's state, the plugin guards.
//   - Calls up to start() may block. A blocking `process` belongs to a handler that declares blocking().
//   - finish(Tick&, Cpu&) runs on the host once the GPU body's work of that tick is done.
//   - narrow() may be called several times for a port, and configure() several times until formats are settled.
//   - A second instance of a stateless handler is configured and started, but neither narrowed nor probed.
//   - stop() also comes after a start() that failed in a restart. The destructor may come after any call.
//   - Each function may throw. The exception ends at this boundary, and its text becomes the sentence of the failure.
//     CodedError also gives the failure an error code.
//
// The classes are header-only over the C tables of abi.h, in an inline namespace with hidden visibility: a plugin
// exports one symbol and shares no C++ with the runtime.
//
// The parts: handler/tick.h (arguments of a body), handler/options.h (options of ports and parameters),
// handler/facts.h and handler/formats.h (what probe and configure fill in), handler/base.h (Handler itself),
// handler/inputs.h, handler/output.h, handler/param.h and handler/state.h (its members), handler/table.h (the way to
// the C table).
#pragma once

#include "millrace/handler/base.h"
#include "millrace/handler/facts.h"
#include "millrace/handler/formats.h"
#include "millrace/handler/inputs.h"
#include "millrace/handler/options.h"
#include "millrace/handler/output.h"
#include "millrace/handler/param.h"
#include "millrace/handler/state.h"
#include "millrace/handler/table.h"
#include "millrace/handler/tick.h"
#include "millrace/payload.h"

#define MILLRACE_JOIN_(a, b) a##b
#define MILLRACE_JOIN(a, b) MILLRACE_JOIN_(a, b)

// Registers a handler class under "family.name" with a one-sentence summary and, optionally, its manual.
#define MILLRACE_HANDLER(Class, type, ...) MILLRACE_HANDLER_(Class, type, __VA_ARGS__, "", "")
#define MILLRACE_HANDLER_(Class, type, summary, manual, ...)   \
  static const ::millrace::detail::Registration MILLRACE_JOIN( \
      millrace_registration_, __COUNTER__)(::millrace::detail::Type<Class>::table(type, summary, manual));

// The one symbol of a plugin; once per shared library.
#define MILLRACE_PLUGIN(plugin_name, plugin_version)                                                       \
  extern "C" MR_EXPORT const mr_plugin* millrace_plugin() {                                                \
    static const mr_plugin plugin = {sizeof(mr_plugin),                                                    \
                                     MR_ABI_VERSION,                                                       \
                                     plugin_name,                                                          \
                                     plugin_version,                                                       \
                                     ::millrace::detail::registered_types().data(),                        \
                                     static_cast<uint32_t>(::millrace::detail::registered_types().size()), \
                                     0};                                                                   \
    return &plugin;                                                                                        \
  }
