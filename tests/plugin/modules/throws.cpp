// A plugin with a handler whose constructor throws; its other handler must not be registered either.
#include "millrace/handler.h"

namespace mr = millrace;

struct Fine final : mr::Handler {
  mr::Input<mr::Any> in{*this, "in"};
  void process(mr::Tick&, mr::Cpu&) {}
};
struct Throws final : mr::Handler {
  Throws() { throw std::runtime_error("the moon is in the wrong phase"); }
  void process(mr::Tick&, mr::Cpu&) {}
};
MILLRACE_HANDLER(Fine, "throws.fine", "Would work")
MILLRACE_HANDLER(Throws, "throws.always", "Cannot be constructed")
MILLRACE_PLUGIN("throws", "1.0")
