// Keeps and counts the sentences of a handler; see said.h.
#include "plugin/said.h"

#include "observe/printable.h"

namespace millrace::plugin {

bool Said::count_again(std::string_view sentence, size_t from) {
  const size_t count = count_.load(std::memory_order_acquire);
  for (size_t i = from; i < count; ++i) {
    if (kept_[i]->sentence != sentence) continue;
    kept_[i]->times.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

bool Said::add(uint32_t level, std::string_view sentence, bool noted) {
  std::string cut; // empty if the sentence is short enough to stay as it is
  if (sentence.size() > kKeptBytesMax) sentence = cut = shortened(sentence);
  const size_t known = count_.load(std::memory_order_acquire);
  if (count_again(sentence, 0)) return false;
  if (known == kMessagesMax) return false;
  const std::lock_guard lock(adding_);
  if (count_again(sentence, known)) return false; // another thread has just said it
  const size_t count = count_.load(std::memory_order_relaxed);
  if (count == kMessagesMax) return false;
  kept_[count] = std::make_unique<Kept>();
  kept_[count]->level = level;
  kept_[count]->noted = noted;
  kept_[count]->sentence = sentence;
  count_.store(count + 1, std::memory_order_release);
  return true;
}

std::vector<Message> Said::messages() const {
  std::vector<Message> messages;
  const size_t count = count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i)
    messages.push_back(
        {kept_[i]->level, kept_[i]->sentence, kept_[i]->times.load(std::memory_order_relaxed), kept_[i]->noted});
  return messages;
}

} // namespace millrace::plugin
