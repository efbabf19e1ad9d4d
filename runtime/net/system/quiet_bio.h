// OpenSSL's socket BIO, except that a write to a connection that is gone raises no SIGPIPE.
//
// A library leaves the signals of its process as they are. OpenSSL's own BIO writes by write(), which has no flag
// against the signal. Only the two functions that move bytes differ; kernel TLS stays what OpenSSL makes of it.
#pragma once

// OpenSSL's name for BIO.
struct bio_st;

namespace millrace::net {

// A BIO over a socket, which it does not close. Null if memory is short.
bio_st* new_quiet_bio(int socket);
// Bytes that are written from now on have others right after them: the kernel may wait for these before it sends. A
// record of TLS is a write of its own, and without this each of them wakes the peer.
void set_more_follows(bio_st* bio, bool more_follows);

} // namespace millrace::net
