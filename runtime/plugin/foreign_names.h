// Names of other frameworks for what is here under another name, or needs no handler here.
#pragma once

#include <string>
#include <string_view>

namespace millrace::plugin {

struct ForeignName {
  std::string_view name;   // an element or filter
  std::string_view origin; // whose it is
  std::string_view type;   // the handler type that does it here; "" where none is needed
  std::string_view words;  // how it is done here, where that is no type or more than it
};

// Null where the name is nobody's that is known.
const ForeignName* find_foreign_name(std::string_view name);

} // namespace millrace::plugin
