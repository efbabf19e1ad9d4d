// A parameter that would point into somebody else's memory. expected: a parameter is a bool, a number or a string
#include "millrace/handler.h"

#ifdef CORRECTED
using Kind = std::string;
#else
using Kind = const char*;
#endif

struct Probe final : millrace::Handler {
  millrace::Param<Kind> path{*this, "path", "", "where"};
};
