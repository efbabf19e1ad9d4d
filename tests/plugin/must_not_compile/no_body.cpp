// A handler without a body. expected: a handler needs process(Tick&, Cpu&) or process(Tick&, Cuda&)
#include "millrace/handler.h"

struct Probe final : millrace::Handler {
#ifdef CORRECTED
  void process(millrace::Tick&, millrace::Cpu&) {}
#endif
};
MILLRACE_HANDLER(Probe, "test.probe", "Does nothing")
