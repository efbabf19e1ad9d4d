// The measurement that the programs of this folder share: their arguments, their clock and how they answer.
//
//   PROGRAM rate BYTES MESSAGES           bytes and messages a second, from the giving of the first message to the
//                                         arrival of the last one in memory of its receiver
//   PROGRAM one_way warm|idle MESSAGES    p50 and p99, in µs, of the time from the giving of a message of 1 KiB to its
//                                         arrival; each is given directly after the one before has arrived (warm) or
//                                         1 ms later (idle)
//
// A program has two threads that send and receive, joined over the loopback; libraries add their own. It sends kWarmUp
// messages, measures once and prints two numbers; net.py calls all programs in turns. PEER_FORM in the environment
// chooses among the forms of a program. Exit code 3: this machine lacks a part that the measurement needs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace peers::net {

constexpr int kMissing = 3, kWrongUsage = 2;
constexpr uint64_t kWarmUp = 20; // as millrace's own measurement
constexpr uint64_t kSingleBytes = 1024;
constexpr int64_t kIdleNs = 1'000'000;

// Ends the program: the other threads may be waiting for each other.
[[noreturn]] inline void give_up(const std::string& why, int code = 1) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(code);
}
inline void require(bool holds, const char* what) {
  if (!holds) give_up(std::string(what) + " failed: " + std::strerror(errno));
}

inline int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Job {
  bool is_rate = false;
  uint64_t bytes = kSingleBytes, messages = 0;
  int64_t idle_ns = 0;
};

inline Job job_of(int argc, char** argv) {
  const auto is = [&](int index, const char* word) { return std::strcmp(argv[index], word) == 0; };
  Job job;
  job.is_rate = argc == 4 && is(1, "rate");
  if (!job.is_rate && !(argc == 4 && is(1, "one_way") && (is(2, "warm") || is(2, "idle"))))
    give_up(std::string("usage: ") + argv[0] + " rate BYTES MESSAGES | one_way warm|idle MESSAGES", kWrongUsage);
  if (job.is_rate) job.bytes = std::strtoull(argv[2], nullptr, 10);
  if (!job.is_rate && is(2, "idle")) job.idle_ns = kIdleNs;
  job.messages = std::strtoull(argv[3], nullptr, 10);
  if (job.bytes == 0 || job.messages == 0) give_up("bytes and messages are at least 1", kWrongUsage);
  return job;
}

// "" if none is chosen.
inline std::string form() {
  const char* chosen = std::getenv("PEER_FORM");
  return chosen ? chosen : "";
}

inline void print_rate(const Job& job, double seconds) {
  const double messages_per_second = static_cast<double>(job.messages) / seconds;
  std::printf("%.0f %.0f\n", messages_per_second * static_cast<double>(job.bytes), messages_per_second);
}

inline void print_one_way(std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  std::printf("%.3f %.3f\n", ns[ns.size() / 2] / 1000, ns[ns.size() * 99 / 100] / 1000);
}

// 8 MiB cut into messages that are used in turn: at least 2 and at most 64, as many as millrace has under way.
class Blocks {
 public:
  explicit Blocks(uint64_t bytes) : blocks_(std::clamp<uint64_t>((8U << 20) / (bytes + 1), 2, 64)) {
    for (std::vector<uint8_t>& block : blocks_) block.assign(bytes, 0x5A);
  }
  uint8_t* next() { return blocks_[used_++ % blocks_.size()].data(); }
  uint64_t count() const { return blocks_.size(); }

 private:
  std::vector<std::vector<uint8_t>> blocks_;
  uint64_t used_ = 0;
};

class Meter {
 public:
  explicit Meter(const Job& job) : job_(job) {}

  uint64_t messages() const { return kWarmUp + job_.messages; } // in all

  // One thread at a time: a message has arrived in whole.
  void arrived() {
    arrived_ns_.store(now_ns(), std::memory_order_relaxed);
    // Only the message that is waited for wakes: else each one would cost a system call.
    if (count_.fetch_add(1) + 1 == awaited_.load()) count_.notify_one();
  }

  // Calls take() for each message, in the receiving thread.
  template <class Take>
  void receive(Take take) {
    for (uint64_t i = 0; i < messages(); ++i) {
      take();
      arrived();
    }
  }

  // Calls give(more) for each message, in the sending thread, and prints the figures. `more`: the next one follows at
  // once, so the message may wait for it.
  template <class Give>
  void send(Give give) {
    job_.is_rate ? send_all(give) : send_one_by_one(give);
  }

 private:
  // `awaited_` is set before the count is read: an arrival that did not see it is seen here.
  void wait_for(uint64_t count) {
    awaited_.store(count);
    for (uint64_t seen = count_.load(); seen < count; seen = count_.load()) count_.wait(seen);
  }

  template <class Give>
  void send_all(Give give) {
    for (uint64_t i = 1; i <= kWarmUp; ++i) give(i < kWarmUp);
    wait_for(kWarmUp);
    const int64_t begun_ns = now_ns();
    for (uint64_t i = 1; i <= job_.messages; ++i) give(i < job_.messages);
    wait_for(messages());
    print_rate(job_, static_cast<double>(arrived_ns_.load() - begun_ns) / 1e9);
  }

  template <class Give>
  void send_one_by_one(Give give) {
    std::vector<double> ns;
    for (uint64_t i = 1; i <= messages(); ++i) {
      if (job_.idle_ns > 0) {
        const timespec pause{0, job_.idle_ns};
        nanosleep(&pause, nullptr);
      }
      const int64_t begun_ns = now_ns();
      give(false);
      wait_for(i);
      if (i > kWarmUp) ns.push_back(static_cast<double>(arrived_ns_.load() - begun_ns));
    }
    print_one_way(std::move(ns));
  }

  Job job_;
  std::atomic<uint64_t> count_{0}, awaited_{0};
  std::atomic<int64_t> arrived_ns_{0};
};

} // namespace peers::net
