// A plugin as it should be: two handlers. twin.cpp has classes of the same names that do something else.
#include "millrace/handler.h"

namespace mr = millrace;

struct Count final : mr::Handler {
  static inline int constructed = 0; // each plugin has its own, or the twins would count together
  mr::Output<mr::Packet> out{*this, "out"};
  mr::Param<int> step{*this, "step", 1, "how far it counts in one tick", mr::range(1, 100), mr::unit("beats")};
  Count() { ++constructed; }
  void probe(mr::Facts& facts) override { facts.tick_count(1000 + constructed); }
  void process(mr::Tick& tick, mr::Cpu&) { tick.end(); }
};
MILLRACE_HANDLER(Count, "good.count", "Counts")

struct Swallow final : mr::Handler {
  mr::Input<mr::Any> in{*this, "in"};
  void process(mr::Tick&, mr::Cpu&) {}
};
MILLRACE_HANDLER(Swallow, "good.swallow", "Takes anything", "Takes anything and makes nothing of it.")

MILLRACE_PLUGIN("good", "1.0")
