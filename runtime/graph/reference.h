// The form in which an edge names its source: a handler, or handler.port.
#pragma once

#include <string>

#include "observe/error.h"

namespace millrace::graph {

struct Reference {
  std::string handler, port; // port "": the handler's only output
};

// Throws Failure MR0214.
Reference read_reference(const std::string& text, const Place& place);

} // namespace millrace::graph
