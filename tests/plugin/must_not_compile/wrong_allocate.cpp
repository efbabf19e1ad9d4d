// A picture asked of an output that carries records. expected: no matching function for call
#include "millrace/handler.h"

struct Probe final : millrace::Handler {
  millrace::Output<millrace::Records<millrace::Box>> boxes{*this, "boxes"};
  void process(millrace::Tick& tick, millrace::Cpu&) {
#ifdef CORRECTED
    boxes.allocate(tick, 3);
#else
    boxes.allocate(tick, millrace::Pixel::gray8, 640, 480);
#endif
  }
};
