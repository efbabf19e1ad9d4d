// The list of all simulated devices' memory.
#include "device/sim/fabric.h"

#include <mutex>
#include <utility>

#include "device/sim/sim.h"

namespace millrace::device {

void SimFabric::add(Range range) {
  const std::unique_lock lock(mutex_);
  ranges_.push_back(std::move(range));
}

void SimFabric::remove(const std::byte* seen) {
  const std::unique_lock lock(mutex_);
  std::erase_if(ranges_, [seen](const Range& range) { return range.seen == seen; });
}

std::byte* SimFabric::find(const std::byte* seen, uint64_t bytes, std::string& domain) const {
  const std::shared_lock lock(mutex_);
  for (const Range& range : ranges_) {
    if (seen < range.seen || seen >= range.seen + range.bytes) continue;
    const uint64_t offset = static_cast<uint64_t>(seen - range.seen);
    if (bytes > range.bytes - offset) return nullptr;
    domain = range.domain;
    return range.working + offset;
  }
  return nullptr;
}

std::shared_ptr<SimFabric> make_fabric() { return std::make_shared<SimFabric>(); }

} // namespace millrace::device
