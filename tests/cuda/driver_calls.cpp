// See driver_calls.h. CUPTI is loaded when it is asked for, so that the benchmark runs where it is not.
#include "driver_calls.h"

#include <dlfcn.h>

#include <array>
#include <atomic>

#if __has_include(<cupti.h>)
#include <cupti.h>

namespace millrace::test {
namespace {

struct Count {
  std::atomic<uint64_t> calls{0};
  std::atomic<const char*> name{nullptr};
};
// By the callback's number, some of which newer drivers have added.
std::array<Count, 2048> all;

void CUPTIAPI count(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite != CUPTI_API_ENTER || id >= all.size()) return;
  all[id].name.store(call.functionName, std::memory_order_relaxed);
  all[id].calls.fetch_add(1, std::memory_order_relaxed);
}

void* open_library() {
  for (const char* path : {"libcupti.so.13", "libcupti.so", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                           "/usr/local/cuda/lib64/libcupti.so"})
    if (void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

} // namespace

DriverCalls::DriverCalls() : library_(open_library()) {
  if (!library_) {
    why_not_ = "libcupti is not found";
    return;
  }
  for (Count& one : all) one.calls = 0;
  const auto subscribe = find<decltype(cuptiSubscribe)>(library_, "cuptiSubscribe");
  const auto enable = find<decltype(cuptiEnableDomain)>(library_, "cuptiEnableDomain");
  CUpti_SubscriberHandle subscriber = nullptr;
  CUptiResult result = subscribe && enable ? subscribe(&subscriber, &count, nullptr) : CUPTI_ERROR_NOT_SUPPORTED;
  if (result == CUPTI_SUCCESS) {
    subscriber_ = subscriber;
    result = enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  }
  if (result != CUPTI_SUCCESS) why_not_ = "CUPTI's error " + std::to_string(result);
}

DriverCalls::~DriverCalls() {
  if (!subscriber_) return;
  if (const auto unsubscribe = find<decltype(cuptiUnsubscribe)>(library_, "cuptiUnsubscribe"))
    unsubscribe(static_cast<CUpti_SubscriberHandle>(subscriber_));
}

std::map<std::string, uint64_t> DriverCalls::counts() const {
  std::map<std::string, uint64_t> counts;
  for (const Count& one : all)
    if (const char* name = one.name.load(std::memory_order_relaxed); name && one.calls > 0) counts[name] += one.calls;
  return counts;
}

} // namespace millrace::test

#else

namespace millrace::test {

DriverCalls::DriverCalls() : why_not_("built without cupti.h") {}
DriverCalls::~DriverCalls() = default;
std::map<std::string, uint64_t> DriverCalls::counts() const { return {}; }

} // namespace millrace::test

#endif
