// Reads the declaration of a handler type from a prototype, and refuses declarations that other code could not rely on.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "plugin/registry.h"

namespace millrace::plugin {

// Constructs the handler once, copies its declaration with all strings, and destroys it. Throws Failure: MR0504 if the
// table or the declaration is wrong, MR0506 if the constructor fails.
std::unique_ptr<const RegisteredType> read_declaration(const mr_handler_type& table, const std::string& plugin,
                                                       const std::string& path);

// True if a key of the pipeline file has a meaning for the runtime itself: no parameter may have its name.
bool is_reserved_key(std::string_view name);

} // namespace millrace::plugin
