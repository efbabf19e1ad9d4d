// The sentences of a handler: each once, with a count, and only the first ones if they are many.
//
// A handler may log the same sentence on every tick, so a known sentence is only counted, without a lock or an
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
  bool noted = false; // it is about the handler and not by it; the code that noted it has reported it
};

// Any thread.
class Said {
 public:
  // True if the sentence is new and was kept.
  bool add(uint32_t level, std::string_view sentence, bool noted = false);
  std::vector<Message> messages() const;

 private:
  // The most sentences in a report, which people read; further ones are not kept.
  static constexpr size_t kMessagesMax = 64;
  struct Kept {
    uint32_t level = 0;
    bool noted = false;
    std::string sentence; // written before `count_` includes it, and never again
    std::atomic<uint64_t> times{1};
  };
  bool count_again(std::string_view sentence, size_t from);

  std::array<std::unique_ptr<Kept>, kMessagesMax> kept_;
  std::atomic<size_t> count_{0};
  std::mutex adding_;
};

} // namespace millrace::plugin
