// Reads what a handler type declares off a prototype of it, and refuses declarations that the rest could not rely on.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "plugin/registry.h"

namespace millrace::plugin {

// Constructs the handler once, copies its declaration with all strings, destroys it. Throws Failure: MR0504 where the
// table or the declaration is wrong, MR0506 where the constructor fails.
std::unique_ptr<const RegisteredType> read_declaration(const mr_handler_type& table, const std::string& plugin,
                                                       const std::string& path);

// Whether a key of the pipeline file means something to the runtime itself, so that no parameter may be called so.
bool is_reserved_key(std::string_view name);

} // namespace millrace::plugin
