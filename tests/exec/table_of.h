// The C table of a handler class that a test registers.
#pragma once

#include <millrace/handler.h>

#include <map>
#include <string>

namespace millrace::test {

template <class H>
const mr_handler_type* table_of(const char* name) {
  static std::map<std::string, mr_handler_type> tables; // tests give one class several names
  return &tables.try_emplace(name, detail::Type<H>::table(name, "a test's", "")).first->second;
}

} // namespace millrace::test
