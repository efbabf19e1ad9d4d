// Takes the least of all limits on this process's memory; see host_memory.h.
#include "embed/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <locale>
#include <optional>
#include <sstream>
#include <string>

namespace millrace::embed {
namespace fs = std::filesystem;

namespace {

class Least {
 public:
  void add(uint64_t bytes) {
    if (bytes > 0) least_ = std::min(least_, bytes);
  }
  uint64_t bytes() const { return least_ == UINT64_MAX ? 0 : least_; }

 private:
  uint64_t least_ = UINT64_MAX;
};

// None if there is no such file, or if it holds a word such as "max".
std::optional<uint64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  stream.imbue(std::locale::classic());
  uint64_t number = 0;
  if (!(stream >> number)) return {};
  return number;
}

void add_machine(const fs::path& proc, Least& least) {
  std::ifstream meminfo(proc / "meminfo");
  std::string line, key, unit;
  while (std::getline(meminfo, line)) {
    uint64_t kib = 0;
    std::istringstream words(line);
    words.imbue(std::locale::classic());
    if (words >> key >> kib && key == "MemTotal:") least.add(kib * 1024);
  }
}

// A group's limit holds for all groups within it, so each on the way up counts.
void add_groups(const fs::path& root, const std::string& group, const char* file, Least& least) {
  for (fs::path folder = fs::path(group).relative_path();; folder = folder.parent_path()) {
    if (const auto limit = number_in(root / folder / file)) least.add(*limit);
    if (folder.empty()) return;
  }
}

// Lines of "id:controllers:group": version 2 has one with no controllers, version 1 names the memory controller.
void add_control_groups(const fs::path& proc, const fs::path& cgroup, Least& least) {
  std::ifstream groups(proc / "self" / "cgroup");
  for (std::string id, controllers, group;
       std::getline(groups, id, ':') && std::getline(groups, controllers, ':') && std::getline(groups, group);) {
    if (group.find("..") != std::string::npos) group = "/"; // seen from within a namespace: only its root is visible
    if (controllers.empty()) add_groups(cgroup, group, "memory.max", least);
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      add_groups(cgroup / "memory", group, "memory.limit_in_bytes", least);
  }
}

void add_own_limits(Least& least) {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) least.add(limit.rlim_cur);
  }
}

} // namespace

uint64_t host_memory_limit(const fs::path& proc, const fs::path& cgroup) {
  Least least;
  add_machine(proc, least);
  add_control_groups(proc, cgroup, least);
  add_own_limits(least);
  return least.bytes();
}

} // namespace millrace::embed
