// A plugin whose class has the name of one in good.cpp, and is another.
#include "millrace/handler.h"

namespace mr = millrace;

struct Count final : mr::Handler {
  static inline int constructed = 0;
  mr::Output<mr::Packet> out{*this, "out"};
  mr::Param<std::string> word{*this, "word", "twin", "nothing like a step"};
  Count() { ++constructed; }
  void probe(mr::Facts& facts) override { facts.tick_count(2000 + constructed); }
  void process(mr::Tick& tick, mr::Cpu&) { tick.end(); }
};
MILLRACE_HANDLER(Count, "twin.count", "Counts otherwise")
MILLRACE_PLUGIN("twin", "1.0")
