// A plugin that brings a type of its own and one that good.cpp has: neither may be registered beside good.cpp.
#include "millrace/handler.h"

namespace mr = millrace;

struct Swallow final : mr::Handler {
  mr::Input<mr::Any> in{*this, "in"};
  void process(mr::Tick&, mr::Cpu&) {}
};
MILLRACE_HANDLER(Swallow, "clash.fresh", "Is new")
MILLRACE_HANDLER(Swallow, "good.swallow", "Is not new")
MILLRACE_PLUGIN("clash", "1.0")
