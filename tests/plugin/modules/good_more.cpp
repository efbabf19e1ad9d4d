// The second file of the good plugin.
#include "millrace/handler.h"

namespace mr = millrace;

namespace {

struct Pair final : mr::Handler {
  mr::Inputs<mr::Any> in{*this, "in", 2};
  mr::Output<mr::Any> out{*this, "out", mr::forward(in)};
  void process(mr::Tick& tick, mr::Cpu&) { out.forward(tick, in, tick.index() % 2); }
};

template <int number>
struct Numbered final : mr::Handler {
  mr::Input<mr::Any> in{*this, "in"};
  void process(mr::Tick&, mr::Cpu&) {}
};
using First = Numbered<1>;
using Second = Numbered<2>;

} // namespace

MILLRACE_HANDLER(Pair, "good.pair", "Takes turns")

// As a macro of a plugin's own would have them: two on one line.
#define GOOD_BOTH(A, B)                         \
  MILLRACE_HANDLER(A, "good.first", "Looks on") \
  MILLRACE_HANDLER(B, "good.second", "Looks on")
GOOD_BOTH(First, Second)
