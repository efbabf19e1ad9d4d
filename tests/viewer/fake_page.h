// A page that is a part of the test: it keeps what a viewer sends.
#pragma once

#include <millrace/abi.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "plugins/viewer/viewer.h"

namespace millrace::test {

struct FakePage : mr_peer {
  explicit FakePage(uint64_t of_number, bool may_steer = true)
      : mr_peer{sizeof(mr_peer), may_steer, of_number, &FakePage::take_message, &FakePage::take_end} {}

  // The pictures that came, once there are so many.
  std::vector<std::string> pictures(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pictures_.size() >= count || ended_code_ != 0; });
    return pictures_;
  }
  size_t picture_count() {
    const std::lock_guard lock(mutex_);
    return pictures_.size();
  }
  std::vector<nlohmann::json> texts() {
    const std::lock_guard lock(mutex_);
    return texts_;
  }
  uint32_t ended_code() {
    const std::lock_guard lock(mutex_);
    return ended_code_;
  }
  std::string ended_reason() {
    const std::lock_guard lock(mutex_);
    return ended_reason_;
  }

  static uint32_t seq_of(const std::string& picture) { return number_at(picture, 0); }
  static bool is_key(const std::string& picture) { return picture[21] & 1; }
  static bool is_still(const std::string& picture) { return picture[21] & 2; }
  static uint32_t answers(const std::string& picture) { return picture[21] & 4 ? number_at(picture, 24) : 0; }
  static viewer::Codec codec(const std::string& picture) { return static_cast<viewer::Codec>(picture[20]); }
  static std::string bytes_of(const std::string& picture) { return picture.substr(picture[21] & 4 ? 32 : 28); }

 private:
  static uint32_t number_at(const std::string& bytes, size_t at) {
    uint32_t number = 0;
    for (size_t i = at; i < at + 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
    return number;
  }
  static void take_message(mr_peer* self, const mr_message* message) {
    auto& page = *static_cast<FakePage*>(self);
    std::string bytes(reinterpret_cast<const char*>(message->head), message->head_bytes);
    bytes.append(reinterpret_cast<const char*>(message->body), message->body_bytes);
    if (message->release) message->release(message->context);
    const std::lock_guard lock(page.mutex_);
    if (message->is_text)
      page.texts_.push_back(nlohmann::json::parse(bytes));
    else
      page.pictures_.push_back(std::move(bytes));
    page.changed_.notify_all();
  }
  static void take_end(mr_peer* self, uint32_t code, const char* reason) {
    auto& page = *static_cast<FakePage*>(self);
    const std::lock_guard lock(page.mutex_);
    page.ended_code_ = code;
    page.ended_reason_ = reason;
    page.changed_.notify_all();
  }

  std::mutex mutex_; // guards what follows
  std::condition_variable changed_;
  std::vector<std::string> pictures_;
  std::vector<nlohmann::json> texts_;
  uint32_t ended_code_ = 0;
  std::string ended_reason_;
};

} // namespace millrace::test
