// The options of a link's sockets, each with its reason.
#pragma once

#include <string>

namespace millrace::net {

// Bytes that wait in the kernel unsent. With more, megabytes of old pictures lie where a newer one cannot take their
// place; with less, a 10 Gbit/s line runs dry while the link's thread is busy for 200 µs.
inline constexpr int kNotSentBytesMax = 256 * 1024;
// A connection whose bytes nobody acknowledges for so long is cut: the session dials again.
inline constexpr int kUserTimeoutMs = 5'000;
// An idle connection whose peer is gone without a word is found in 5 + 3 × 1 s. Pings of the session find it sooner.
inline constexpr int kKeepIdleS = 5, kKeepIntervalS = 1, kKeepCount = 3;

// Both return false with errno. No send or receive buffer is set: that ends the kernel's own tuning of them.
bool make_non_blocking(int socket); // and closed in programs that this process starts
// For a TCP socket: no delay of small records, and the three above.
bool set_link_options(int socket);

// Chooses the congestion control, such as "bbr" for a long way that loses packets. "" if done, else a sentence: it
// lists those that this machine has.
std::string choose_congestion_control(int socket, const std::string& name);

} // namespace millrace::net
