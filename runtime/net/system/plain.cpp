// Reads and writes a connected stream socket.
#include "net/system/plain.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "net/limits.h"
#include "net/system/socket_options.h"

namespace millrace::net {

namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

} // namespace

std::string connection_sentence(int error) {
  if (error == ECONNRESET || error == EPIPE) return "the peer closed the connection without ending the stream";
  if (error == ETIMEDOUT) return "the peer did not acknowledge what was sent in time";
  return "the connection failed: " + std::generic_category().message(error);
}

PlainTransport::PlainTransport(Descriptor socket) : socket_(std::move(socket)) {
  if (!make_non_blocking(socket_.number())) fail_by_system(errno);
}

Moved PlainTransport::fail(Trouble trouble, std::string why) {
  if (trouble_ == Trouble::none) {
    trouble_ = trouble;
    why_ = std::move(why);
  }
  return Moved::failed;
}

Moved PlainTransport::fail_by_system(int error) { return fail(Trouble::connection, connection_sentence(error)); }

Transfer PlainTransport::read(std::span<std::byte> room) {
  if (trouble_ != Trouble::none) return {Moved::failed, 0};
  if (room.empty()) return {Moved::some, 0};
  while (true) {
    const ssize_t got = ::recv(socket_.number(), room.data(), room.size(), MSG_DONTWAIT);
    if (got > 0) return {Moved::some, static_cast<size_t>(got)};
    if (got == 0) return {Moved::closed, 0};
    if (would_block(errno)) return {Moved::want_read, 0};
    if (errno != EINTR) return {fail_by_system(errno), 0};
  }
}

Transfer PlainTransport::write(std::span<const Bytes> pieces) {
  if (trouble_ != Trouble::none) return {Moved::failed, 0};
  std::array<iovec, kPiecesMax> vectors;
  size_t count = 0;
  for (const Bytes piece : pieces.first(std::min(pieces.size(), kPiecesMax)))
    if (!piece.empty()) vectors[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
  if (count == 0) return {Moved::some, 0};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  while (true) {
    const ssize_t sent = ::sendmsg(socket_.number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return {Moved::some, static_cast<size_t>(sent)};
    if (would_block(errno)) return {Moved::want_write, 0};
    if (errno != EINTR) return {fail_by_system(errno), 0};
  }
}

Moved PlainTransport::shut() {
  if (trouble_ != Trouble::none) return Moved::failed;
  return ::shutdown(socket_.number(), SHUT_WR) == 0 ? Moved::some : fail_by_system(errno);
}

} // namespace millrace::net
