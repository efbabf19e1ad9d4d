// A handler type in words and as JSON: what `inspect` prints.
#pragma once

#include <string>
#include <vector>

#include "plugin/registry.h"

namespace millrace::cli {

// One choice that a type offers on this machine, such as an encoder.
struct Offer {
  std::string part, name, words;
};
// Asks the type; empty if it offers nothing.
std::vector<Offer> offers_of(const plugin::RegisteredType& info);

std::string describe_text(const plugin::RegisteredType& info);
std::string describe_json(const plugin::RegisteredType& info);
// The declaration alone, also of a type whose code is elsewhere.
std::string declaration_json(const plugin::HandlerInfo& info);
// One line that a person can paste: that of the manual, else one that is made from ports and required parameters.
std::string example_line(const plugin::HandlerInfo& info);

} // namespace millrace::cli
