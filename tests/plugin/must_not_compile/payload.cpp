// A port of a type that is no payload. expected: a port carries Image, Tensor, Packet
#include "millrace/handler.h"

#ifdef CORRECTED
using Carried = millrace::Image;
#else
using Carried = int;
#endif

struct Probe final : millrace::Handler {
  millrace::Input<Carried> in{*this, "in"};
};
