// Names in other frameworks, for which millrace has another name or needs no handler.
#pragma once

#include <string>
#include <string_view>

namespace millrace::plugin {

struct ForeignName {
  std::string_view name;   // an element or filter
  std::string_view origin; // the framework, as a possessive: "GStreamer's"
  std::string_view type;   // the handler type that does it here; "" if none is needed
  std::string_view words;  // how it is done here, if not by a type alone
};

// Null if the name is in no framework of the table.
const ForeignName* find_foreign_name(std::string_view name);

} // namespace millrace::plugin
