// Writes a plugin project that builds and passes its own test: what `millrace new` does.
#pragma once

#include <string>

namespace millrace::cli {

// The handler of a new project: it inverts pictures, in a body that takes one tick or several items a call, or with a
// body for GPUs too; or it makes boxes of what a network gives.
enum class Project { tick, items, cuda, model };

// Writes the project of a plugin with one handler, `type_name` ("acme.invert"), into `dir`, which must be empty or not
// there. Throws Failure: MR0105 if the name is not family.name, MR0120 if the folder cannot be used.
void write_plugin_project(const std::string& dir, const std::string& type_name, Project kind);

} // namespace millrace::cli
