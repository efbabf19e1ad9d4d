// A handler is copied, though its ports refer to it. expected: use of deleted function
#include "millrace/handler.h"

struct Probe final : millrace::Handler {
  void process(millrace::Tick&, millrace::Cpu&) {}
};
void use(Probe& probe) {
#ifdef CORRECTED
  Probe& same = probe;
  (void)same;
#else
  Probe copy = probe;
#endif
}
