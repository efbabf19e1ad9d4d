// Waits for a descriptor that a transport owns: Asio would close it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

namespace millrace::net {

class Waiter {
 public:
  Waiter(boost::asio::io_context& context, int descriptor) : waiter_(context, descriptor) {}
  ~Waiter() { release(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Calls `then` with Asio's error code once the descriptor is writable, or readable.
  template <class Then>
  void wait(bool to_write, Then then) {
    waiter_.async_wait(to_write ? waiter_.wait_write : waiter_.wait_read, std::move(then));
  }
  // Waits end, and the descriptor stays open.
  void release() {
    if (waiter_.is_open()) waiter_.release();
  }

 private:
  boost::asio::posix::stream_descriptor waiter_;
};

} // namespace millrace::net
