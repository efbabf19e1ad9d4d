// A client that says exactly what a test wants it to say: bytes over TCP, and WebSocket frames by hand.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace millrace::test {

inline constexpr int kPatienceMs = 20'000; // a busy machine under a sanitizer is slow

struct Frame {
  int opcode = 0; // 1: text, 2: binary, 8: close
  std::string bytes;
};

class TcpClient {
 public:
  explicit TcpClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_there_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  TcpClient(TcpClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), is_there_(other.is_there_), read_(std::move(other.read_)) {}
  ~TcpClient() {
    if (socket_ >= 0) ::close(socket_);
  }

  // False: the server is gone.
  bool say(const std::string& bytes) {
    for (size_t sent = 0; is_there_ && sent < bytes.size();) {
      const ssize_t took = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (took <= 0) is_there_ = false;
      sent += took > 0 ? static_cast<size_t>(took) : 0;
    }
    return is_there_;
  }
  // Waits for more bytes. False: the server has closed, or said nothing for kPatienceMs.
  bool hear() {
    pollfd waited{socket_, POLLIN, 0};
    if (::poll(&waited, 1, kPatienceMs) <= 0) return false;
    char bytes[65536];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    read_.append(bytes, static_cast<size_t>(got));
    return true;
  }
  // True once so many bytes more are there.
  bool hear(size_t bytes) {
    while (read_.size() < bytes)
      if (!hear()) return false;
    return true;
  }
  // All that comes until the server closes.
  std::string hear_all() {
    while (hear()) {
    }
    return std::exchange(read_, {});
  }
  std::string hear_head() {
    size_t end;
    while ((end = read_.find("\r\n\r\n")) == std::string::npos)
      if (!hear()) return std::exchange(read_, {});
    const std::string head = read_.substr(0, end + 4);
    read_.erase(0, end + 4);
    return head;
  }
  std::optional<Frame> hear_frame() {
    size_t begin = 2, size = 0;
    for (;;) {
      if (read_.size() >= 2) {
        const auto byte = [&](size_t n) { return static_cast<unsigned char>(read_[n]); };
        const size_t more = byte(1) == 127 ? 8 : byte(1) == 126 ? 2 : 0;
        if (read_.size() >= 2 + more) {
          size = more == 0 ? byte(1) : 0;
          for (size_t n = 0; n < more; ++n) size = size << 8 | byte(2 + n);
          begin = 2 + more;
          if (read_.size() >= begin + size) break;
        }
      }
      if (!hear()) return std::nullopt;
    }
    Frame frame{read_[0] & 15, read_.substr(begin, size)};
    read_.erase(0, begin + size);
    if (frame.opcode == 8) say_frame(frame.bytes, 8); // as the protocol asks
    return frame;
  }
  // A frame whose mask is 0, which leaves the bytes as they are.
  bool say_frame(const std::string& bytes, int opcode = 1) {
    std::string frame(1, static_cast<char>(0x80 | opcode));
    if (bytes.size() < 126)
      frame += static_cast<char>(0x80 | bytes.size());
    else {
      const int more = bytes.size() < 65536 ? 2 : 8;
      frame += static_cast<char>(0x80 | (more == 2 ? 126 : 127));
      for (int n = more - 1; n >= 0; --n) frame += static_cast<char>(bytes.size() >> (8 * n) & 255);
    }
    return say(frame + std::string(4, '\0') + bytes);
  }
  bool is_there() const { return is_there_; }

 private:
  int socket_;
  bool is_there_ = false;
  std::string read_;
};

inline uint16_t port_of(const std::string& url) {
  return static_cast<uint16_t>(std::stoul(url.substr(url.rfind(':') + 1)));
}

inline std::string request(const std::string& path, const std::string& lines) {
  return "GET " + path + " HTTP/1.1\r\n" + lines + "\r\n";
}

inline std::string upgrade_lines(const std::string& host, const std::string& origin) {
  return "Host: " + host + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
         "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" + (origin.empty() ? "" : "Origin: " + origin + "\r\n");
}

// A client whose WebSocket is open.
inline TcpClient opened(uint16_t port, const std::string& path = "/control") {
  TcpClient client(port);
  const std::string host = "127.0.0.1:" + std::to_string(port);
  client.say(request(path, upgrade_lines(host, "http://" + host)));
  client.hear_head();
  return client;
}

} // namespace millrace::test
