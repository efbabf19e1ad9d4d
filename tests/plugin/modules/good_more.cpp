// The second file of the good plugin.
#include "millrace/handler.h"

namespace mr = millrace;

namespace {

struct Pair final : mr::Handler {
  mr::Inputs<mr::Any> in{*this, "in", 2};
  mr::Output<mr::Any> out{*this, "out", mr::forward(in)};
  void process(mr::Tick& tick, mr::Cpu&) { out.forward(tick, in, tick.index() % 2); }
};

} // namespace

MILLRACE_HANDLER(Pair, "good.pair", "Takes turns")
