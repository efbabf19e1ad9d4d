// Records of a struct that cannot be copied as bytes. expected: is_trivially_copyable
#include <string>

#include "millrace/handler.h"

struct Name {
  static constexpr std::string_view kSchema = "test.Name";
#ifdef CORRECTED
  char text[32];
#else
  std::string text;
#endif
};

struct Probe final : millrace::Handler {
  millrace::Output<millrace::Records<Name>> names{*this, "names"};
};
