// The memory that the process may use, read from folders laid out as the kernel does.
#include "embed/host_memory.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace millrace::embed;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kGiB = 1ull << 30;

class Folders {
 public:
  Folders() {
    fs::remove_all(root_);
    write("proc/meminfo", "MemFree:         1 kB\nMemTotal:       8388608 kB\n");
  }
  ~Folders() { fs::remove_all(root_); }
  Folders(const Folders&) = delete;
  Folders& operator=(const Folders&) = delete;

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  uint64_t limit() const { return host_memory_limit(root_ / "proc", root_ / "cgroup"); }

 private:
  const fs::path root_ = fs::path(MILLRACE_BINARY_DIR) / "host_memory";
};

} // namespace

TEST_CASE("3.2: without control groups the host has the machine's memory, and without anything none is known") {
  CHECK(Folders().limit() == 8 * kGiB);
  CHECK(host_memory_limit("/nowhere", "/nowhere") == 0);
}

TEST_CASE("3.2: a control group of version 2 limits the host, and so does each that it is in") {
  const Folders folders;
  folders.write("proc/self/cgroup", "0::/apps/mill\n");
  folders.write("cgroup/apps/mill/memory.max", "max\n");
  CHECK(folders.limit() == 8 * kGiB);
  folders.write("cgroup/apps/memory.max", std::to_string(3 * kGiB) + "\n");
  CHECK(folders.limit() == 3 * kGiB);
  folders.write("cgroup/apps/mill/memory.max", std::to_string(2 * kGiB) + "\n");
  CHECK(folders.limit() == 2 * kGiB);
  folders.write("cgroup/memory.max", std::to_string(kGiB) + "\n");
  CHECK(folders.limit() == kGiB);
}

TEST_CASE("3.2: a control group of version 1 limits the host, by its memory controller alone") {
  const Folders folders;
  folders.write("proc/self/cgroup", "9:cpu,cpuacct:/other\n7:memory:/apps\n0::/\n");
  folders.write("cgroup/memory/other/memory.limit_in_bytes", std::to_string(kGiB) + "\n");
  folders.write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(folders.limit() == 8 * kGiB);
  folders.write("cgroup/memory/apps/memory.limit_in_bytes", std::to_string(2 * kGiB) + "\n");
  CHECK(folders.limit() == 2 * kGiB);
}

TEST_CASE("3.2: a group named from outside of what is mounted counts as the root that is") {
  const Folders folders;
  folders.write("proc/self/cgroup", "0::/../../outside\n");
  folders.write("cgroup/memory.max", std::to_string(2 * kGiB) + "\n");
  CHECK(folders.limit() == 2 * kGiB);
}

TEST_CASE("3.2: the process's own limit of data counts too") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_DATA, &before) == 0);
  if (before.rlim_cur != RLIM_INFINITY) return; // somebody limits the test itself
  const Folders folders;
  folders.write("proc/meminfo", "MemTotal: 1099511627776 kB\n"); // more than the limit below, which disturbs nobody
  rlimit wanted = before;
  wanted.rlim_cur = 1ull << 46;
  REQUIRE(setrlimit(RLIMIT_DATA, &wanted) == 0);
  const uint64_t limit = folders.limit();
  REQUIRE(setrlimit(RLIMIT_DATA, &before) == 0);
  CHECK(limit == 1ull << 46);
}
