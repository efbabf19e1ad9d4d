// Writes a plugin project that builds and passes its own test: what `millrace new` does.
#pragma once

#include <string>

namespace millrace::cli {

// The bodies that the handler of a new project has: one for the CPU that takes one tick or several items a call, and
// one for GPUs.
enum class Bodies { cpu, cpu_for_items, cpu_and_cuda };

// Writes the project of a plugin with one handler, `type_name` ("acme.invert"), into `dir`, which must be empty or not
// there. Throws Failure: MR0105 if the name is not family.name, MR0120 if the folder cannot be used.
void write_plugin_project(const std::string& dir, const std::string& type_name, Bodies bodies);

} // namespace millrace::cli
