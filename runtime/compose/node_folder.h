// The folder of this machine's key and of the nodes that it knows.
#pragma once

#include <filesystem>

namespace millrace::compose {

// Throws Failure (MR0815) if there is no place for one.
std::filesystem::path node_folder();

} // namespace millrace::compose
