// Finds how much memory this process may really use, which is often less than the machine has.
#pragma once

#include <cstdint>
#include <filesystem>

namespace millrace::embed {

// The limit in bytes; 0 if nothing is known. It is the least of the machine's memory, the limits of the control groups
// that this process is in (version 2 or 1, each group up to the root), and the process's own limits of address space
// and data. The two folders are parameters for the sake of tests. Reads a few small files.
uint64_t host_memory_limit(const std::filesystem::path& proc = "/proc",
                           const std::filesystem::path& cgroup = "/sys/fs/cgroup");

} // namespace millrace::embed
