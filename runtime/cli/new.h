// Writes a plugin project that builds and passes its own test: what `millrace new` does.
#pragma once

#include <string>

namespace millrace::cli {

// What the handler of a new project can run on.
enum class Bodies { cpu, cpu_and_cuda };

// Writes the project of a plugin with one handler, `type_name` ("acme.invert"), into `dir`, which must be empty or not
// there. Throws Failure: MR0105 where the name is not family.name, MR0120 where the folder cannot be used.
void write_plugin_project(const std::string& dir, const std::string& type_name, Bodies bodies);

} // namespace millrace::cli
