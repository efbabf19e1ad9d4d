// What a handler has said: each sentence once, with how often, and of many the first.
//
// A handler may say the same on every tick, so a sentence that is known is only counted: without a lock and without an
// allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::plugin {

struct Message {
  uint32_t level = 0; // MR_LOG_*
  std::string sentence;
  uint64_t times = 1;
  bool noted = false; // of the handler and not by it; whoever noted it has told it
};

// Any thread.
class Said {
 public:
  // True where it is new and kept.
  bool add(uint32_t level, std::string_view sentence, bool noted = false);
  std::vector<Message> messages() const;

 private:
  // A report is read by people: what a handler says beyond these is left out of it, and out of memory.
  static constexpr size_t kMessagesMax = 64;
  struct Kept {
    uint32_t level = 0;
    bool noted = false;
    std::string sentence; // written before `count_` says that it is there, and never again
    std::atomic<uint64_t> times{1};
  };
  bool count_again(std::string_view sentence, size_t from);

  std::array<std::unique_ptr<Kept>, kMessagesMax> kept_;
  std::atomic<size_t> count_{0};
  std::mutex adding_;
};

} // namespace millrace::plugin
