// Pinned memory whose pages are locked for a real device.
#include "device/pinned_ranges.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <set>

#include "device/cpu/cpu_device.h"

namespace millrace::device::test {
namespace {

constexpr uint64_t kRangeBytes = 1 << 20;

struct FakeLocker final : PageLocker {
  std::set<const std::byte*> locked;
  bool answers = true;
  std::string lock_pages(const std::byte* base, uint64_t) override {
    return locked.insert(base).second ? "" : "already mapped";
  }
  bool unlock_pages(const std::byte* base) override { return answers && locked.erase(base) > 0; }
};

bool is_mapped(std::byte* base) { return msync(base, kRangeBytes, MS_ASYNC) == 0; }

std::byte* pinned_arena(CpuDevice& host) {
  DeviceStatus status;
  const Arena* arena = host.allocate(kRangeBytes, {true}, status);
  REQUIRE_MESSAGE(arena, status.sentence);
  return arena->base;
}

struct LockedRig {
  FakeLocker locker;
  std::shared_ptr<PinnedRanges> pinned = std::make_shared<PinnedRanges>();
  LockedRig() { REQUIRE(pinned->set_locker(&locker) == ""); }

  // The address of the pinned memory of a host that is gone again.
  std::byte* arena_of_gone_host(bool locker_goes_first) {
    CpuDevice host(pinned);
    std::byte* const base = pinned_arena(host);
    CHECK(locker.locked.contains(base));
    if (locker_goes_first) CHECK(pinned->set_locker(nullptr) == "");
    return base;
  }
};

TEST_CASE("4.9: memory whose pages a lost device keeps locked stays mapped, and nobody else gets its addresses") {
  for (const bool locker_goes_first : {false, true}) {
    CAPTURE(locker_goes_first);
    LockedRig rig;
    rig.locker.answers = false;
    std::byte* const base = rig.arena_of_gone_host(locker_goes_first);
    CHECK_FALSE(rig.pinned->contains(base, 1));
    REQUIRE(is_mapped(base));
    base[kRangeBytes - 1] = std::byte{1}; // as the hardware may
    CpuDevice next(rig.pinned);
    CHECK(pinned_arena(next) != base);
    CHECK(munmap(base, kRangeBytes) == 0);
  }
}

TEST_CASE("4.10: memory whose pages are unlocked is given back with its device") {
  for (const bool locker_goes_first : {false, true}) {
    CAPTURE(locker_goes_first);
    LockedRig rig;
    std::byte* const base = rig.arena_of_gone_host(locker_goes_first);
    CHECK(rig.locker.locked.empty());
    CHECK_FALSE(is_mapped(base));
  }
}

TEST_CASE("4.9: pages that stay locked are not locked once more by the next device, others are") {
  LockedRig rig;
  FakeLocker next;
  CpuDevice host(rig.pinned);
  std::byte* const stays = pinned_arena(host);
  next.locked.insert(stays); // to lock it again would be an error
  rig.locker.answers = false;
  CHECK(rig.pinned->set_locker(&next) == "");
  CHECK(next.locked.contains(pinned_arena(host)));
  CHECK_FALSE(rig.pinned->remove(stays));
}

} // namespace
} // namespace millrace::device::test
