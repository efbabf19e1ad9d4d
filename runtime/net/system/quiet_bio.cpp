// A BIO that sends with MSG_NOSIGNAL.
#include "net/system/quiet_bio.h"

#include <openssl/bio.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>

namespace millrace::net {

namespace {

// Keeps SIGPIPE from this thread, and takes away the one that a call raised.
class SigpipeHeld {
 public:
  SigpipeHeld() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeHeld() {
    const int error = errno;
    const timespec at_once{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  SigpipeHeld(const SigpipeHeld&) = delete;
  SigpipeHeld& operator=(const SigpipeHeld&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

int write_quietly(BIO* bio, const char* bytes, int size) {
  if (BIO_get_ktls_send(bio)) {
    // OpenSSL's own function then writes alerts too, by a call without flags.
    const SigpipeHeld held;
    return BIO_meth_get_write(BIO_s_socket())(bio, bytes, size);
  }
  int socket = -1;
  BIO_get_fd(bio, &socket);
  BIO_clear_retry_flags(bio);
  errno = 0;
  const int flags = MSG_NOSIGNAL | (BIO_get_callback_arg(bio) ? MSG_MORE : 0);
  const int sent = static_cast<int>(::send(socket, bytes, static_cast<size_t>(size), flags));
  if (sent <= 0 && BIO_sock_should_retry(sent)) BIO_set_retry_write(bio);
  return sent;
}

BIO_METHOD* make_method() {
  const BIO_METHOD* original = BIO_s_socket();
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "quiet socket");
  if (!method) return nullptr;
  BIO_meth_set_write(method, write_quietly);
  BIO_meth_set_read(method, BIO_meth_get_read(original));
  BIO_meth_set_ctrl(method, BIO_meth_get_ctrl(original));
  BIO_meth_set_create(method, BIO_meth_get_create(original));
  BIO_meth_set_destroy(method, BIO_meth_get_destroy(original));
  return method;
}

} // namespace

BIO* new_quiet_bio(int socket) {
  static BIO_METHOD* const method = make_method(); // never freed: the last BIO may outlive main()
  BIO* bio = method ? BIO_new(method) : nullptr;
  if (bio) BIO_set_fd(bio, socket, BIO_NOCLOSE);
  return bio;
}

void set_more_follows(BIO* bio, bool more_follows) {
  static char marks[] = "more"; // the argument of a callback that there is not: a word for us
  BIO_set_callback_arg(bio, more_follows ? marks : nullptr);
}

} // namespace millrace::net
