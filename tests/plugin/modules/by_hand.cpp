// A plugin that is built without the list of exported symbols and with default visibility, with good.cpp's class name.
#include "millrace/handler.h"

namespace mr = millrace;

struct Count final : mr::Handler {
  static inline int constructed = 0;
  mr::Output<mr::Packet> out{*this, "out"};
  Count() { ++constructed; }
  void probe(mr::Facts& facts) override { facts.tick_count(3000 + constructed); }
  void process(mr::Tick& tick, mr::Cpu&) { tick.end(); }
};
MILLRACE_HANDLER(Count, "by_hand.count", "Counts by hand")
MILLRACE_PLUGIN("by_hand", "1.0")
