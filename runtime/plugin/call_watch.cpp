// The list of calls and the thread that looks at it; see call_watch.h.
#include "plugin/call_watch.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "observe/start_thread.h"
#include "plugin/registry.h"

namespace millrace::plugin {

namespace {

constexpr std::chrono::milliseconds kLookEvery{100};
// An interrupt that comes just before its call blocks is lost, so it is given again after this long.
constexpr std::chrono::milliseconds kInterruptAgain{10};
// Once the run is to end, a call is interrupted after this time, even if it may take longer.
constexpr std::chrono::seconds kStandstill{10};

std::string seconds(std::chrono::nanoseconds time) {
  const int64_t tenths = (time.count() + 50'000'000) / 100'000'000;
  const bool whole = time.count() % 1'000'000'000 == 0;
  return std::to_string(tenths / 10) + (whole ? "" : "." + std::to_string(tenths % 10)) + " s";
}

std::string name_of(const Instance& instance) { return instance.name() + " (" + instance.info().type + ")"; }

// True for calls that wait for something outside, such as a camera; a run that is to end does not need it any more.
bool opens(const std::string_view function) {
  return function == "probe" || function == "configure" || function == "start";
}

} // namespace

CallWatch::CallWatch(Options options)
    : options_(std::move(options)), thread_(start_thread("the thread that watches calls", [this] { loop(); })) {}

CallWatch::~CallWatch() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::list<CallWatch::Call>::iterator CallWatch::begin(Instance& instance, const char* function) {
  const std::lock_guard lock(mutex_);
  calls_.push_back({&instance, function, std::chrono::steady_clock::now()});
  return std::prev(calls_.end());
}

void CallWatch::end(std::list<Call>::iterator call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

void CallWatch::forget(const Instance& instance) {
  const std::lock_guard lock(mutex_);
  calls_.remove_if([&](const Call& call) { return call.instance == &instance; });
}

void CallWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    stopped_at_ = std::chrono::steady_clock::now();
  }
  wake_.notify_all();
}

// Works under the lock, so that no handler is destroyed meanwhile: end() takes the lock too.
void CallWatch::interrupt_all() {
  const std::lock_guard lock(mutex_);
  for (const Call& call : calls_) call.instance->interrupt();
}

std::vector<std::string> CallWatch::words() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> words;
  for (const Call& call : calls_) words.push_back(name_of(*call.instance) + " in " + call.function);
  return words;
}

void CallWatch::loop() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    look();
    wake_.wait_for(lock, stopping_ ? kInterruptAgain : kLookEvery);
  }
}

// Called under the lock.
void CallWatch::look() {
  const auto now = std::chrono::steady_clock::now();
  for (Call& call : calls_) {
    Instance& instance = *call.instance;
    const std::chrono::nanoseconds patience(instance.patience_ns > 0 ? instance.patience_ns : options_.patience_ns);
    const bool late = now - call.since >= patience;
    if (late && !call.named) {
      call.named = true;
      const std::string words = std::string("is in ") + call.function + " for longer than " + seconds(patience);
      instance.note(words);
      if (options_.on_message) options_.on_message("warning MR0607: " + name_of(instance) + " " + words);
    }
    if (stopping_ && (late || opens(call.function) || now - std::max(call.since, stopped_at_) >= kStandstill))
      instance.interrupt();
  }
}

} // namespace millrace::plugin
