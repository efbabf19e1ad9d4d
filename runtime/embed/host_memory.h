// How much memory this process may really use, which is often less than the machine has.
#pragma once

#include <cstdint>
#include <filesystem>

namespace millrace::embed {

// In bytes, 0 where nothing is known: the least of the machine's memory, of what the control groups that this process
// is in allow (version 2 or 1, each group up to the root), and of its own limits of address space and data. Where the
// two folders are is asked for the sake of tests. Reads a few small files.
uint64_t host_memory_limit(const std::filesystem::path& proc = "/proc",
                           const std::filesystem::path& cgroup = "/sys/fs/cgroup");

} // namespace millrace::embed
