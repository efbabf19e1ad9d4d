// A bare loop of blocking send and recv over TCP, without a protocol: both ends know the size of a message.
//
// Forms: `plain`; `crc`, where a CRC-32C follows each message and the receiver checks it, as a link without TLS does:
// both ends compute it in steps of one system call, while the bytes are in the cache; `handed`, where the thread that
// gives wakes another one that sends, as a run does its link: two threads have to wake up for a message instead of one.
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <array>
#include <thread>

#include "net/crc32c.h"
#include "tests/peers/net/sockets.h"

namespace {

using namespace peers::net;

uint32_t crc32c_of(const uint8_t* data, size_t size, uint32_t before) {
  return millrace::net::crc32c({reinterpret_cast<const std::byte*>(data), size}, before);
}

// The last bytes of a message and its sum go in one call.
void send_all(int socket, std::array<iovec, 2> pieces) {
  size_t first = 0;
  while (first < pieces.size()) {
    msghdr message{};
    message.msg_iov = pieces.data() + first;
    message.msg_iovlen = pieces.size() - first;
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    require(sent > 0, "send");
    for (auto rest = static_cast<size_t>(sent); first < pieces.size();) {
      iovec& piece = pieces[first];
      if (rest < piece.iov_len) {
        piece = {static_cast<uint8_t*>(piece.iov_base) + rest, piece.iov_len - rest};
        break;
      }
      rest -= piece.iov_len;
      ++first;
    }
  }
}

void send_message(int socket, uint8_t* data, uint64_t bytes, bool has_sum) {
  uint32_t sum = 0;
  for (uint64_t sent = 0; sent < bytes;) {
    const uint64_t here = std::min(bytes - sent, kCallBytes);
    if (has_sum) sum = crc32c_of(data + sent, here, sum);
    const bool is_last = has_sum && sent + here == bytes;
    send_all(socket, {iovec{data + sent, here}, iovec{&sum, is_last ? sizeof sum : 0}});
    sent += here;
  }
}

void receive_plain(int socket, uint8_t* data, uint64_t bytes) {
  for (uint64_t got = 0; got < bytes;) {
    const ssize_t here = ::recv(socket, data + got, std::min(bytes - got, kCallBytes), 0);
    require(here > 0, "recv");
    got += static_cast<uint64_t>(here);
  }
}

void receive_checked(int socket, uint8_t* data, uint64_t bytes) {
  uint32_t sum = 0;
  std::array<uint8_t, sizeof sum> told{};
  for (uint64_t got = 0; got < bytes + told.size();) {
    const uint64_t of_data = std::min(got, bytes);
    const uint64_t room = std::min(bytes - of_data, kCallBytes);
    const bool is_last = of_data + room == bytes;
    std::array<iovec, 2> pieces{iovec{data + of_data, room}, iovec{told.data() + (got - of_data), 0}};
    if (is_last) pieces[1].iov_len = told.size() - (got - of_data);
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    const ssize_t here = ::recvmsg(socket, &message, 0);
    require(here > 0, "recvmsg");
    sum = crc32c_of(data + of_data, std::min(static_cast<uint64_t>(here), room), sum);
    got += static_cast<uint64_t>(here);
  }
  if (std::memcmp(told.data(), &sum, sizeof sum) != 0) give_up("a message has another CRC-32C than was sent");
}

// Gives each message to a thread of its own, which calls send().
template <class Send>
void send_by_another_thread(Meter& meter, Send send) {
  const int bell = ::eventfd(0, EFD_SEMAPHORE);
  std::thread sender([&] {
    for (uint64_t i = 0; i < meter.messages(); ++i) {
      uint64_t rings = 0;
      require(::read(bell, &rings, sizeof rings) == sizeof rings, "reading the eventfd");
      send();
    }
  });
  meter.send([&](bool) {
    const uint64_t one = 1;
    require(::write(bell, &one, sizeof one) == sizeof one, "writing the eventfd");
  });
  sender.join();
}

} // namespace

int main(int argc, char** argv) {
  const Job job = job_of(argc, argv);
  const bool has_sum = form() == "crc";
  const Sockets sockets = connected_sockets();
  Meter meter(job);
  Blocks sent(job.bytes), received(job.bytes);
  std::thread receiver([&] {
    meter.receive([&] {
      has_sum ? receive_checked(sockets.receiver, received.next(), job.bytes)
              : receive_plain(sockets.receiver, received.next(), job.bytes);
    });
  });
  const auto send = [&] { send_message(sockets.sender, sent.next(), job.bytes, has_sum); };
  if (form() == "handed")
    send_by_another_thread(meter, send);
  else
    meter.send([&](bool) { send(); });
  receiver.join();
}
