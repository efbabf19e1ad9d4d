// A handler type in words and as JSON: what `inspect` prints.
#pragma once

#include <string>

#include "plugin/registry.h"

namespace millrace::cli {

std::string describe_text(const plugin::HandlerInfo& info);
std::string describe_json(const plugin::HandlerInfo& info);
// One line that a person can paste: the manual's, else one that is made from ports and required parameters.
std::string example_line(const plugin::HandlerInfo& info);

} // namespace millrace::cli
