// ZeroMQ over TCP: PUSH and PULL for the rate, PAIR for one message after another.
//
// A large message is given in place (zmq_msg_init_data), a small one is copied into the message, which is faster. What
// arrives lies in a message of ZeroMQ's. Its queues hold as many messages as make 8 MiB, at most its default of 1,000.
// Each end has a context of its own, as two processes would: in one context, one thread would send and receive.
#include <zmq.h>

#include <thread>

#include "tests/peers/net/meter.h"

namespace {

using namespace peers::net;

constexpr uint64_t kCopiedBytesMax = 8 * 1024;

void* socket_of(void* context, int type, uint64_t bytes) {
  void* socket = zmq_socket(context, type);
  const int queue = static_cast<int>(std::clamp<uint64_t>((8U << 20) / (bytes + 1), 2, 1000)), linger = 0;
  require(socket && zmq_setsockopt(socket, ZMQ_SNDHWM, &queue, sizeof queue) == 0 &&
              zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof queue) == 0 &&
              zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) == 0,
          "setting ZeroMQ up");
  return socket;
}

void send_message(void* socket, uint8_t* data, uint64_t bytes) {
  zmq_msg_t message;
  if (bytes <= kCopiedBytesMax) {
    require(zmq_msg_init_size(&message, bytes) == 0, "zmq_msg_init_size");
    std::memcpy(zmq_msg_data(&message), data, bytes);
  } else {
    require(zmq_msg_init_data(
                &message, data, bytes, [](void*, void*) {}, nullptr) == 0,
            "zmq_msg_init_data");
  }
  require(zmq_msg_send(&message, socket, 0) >= 0, "zmq_msg_send");
}

} // namespace

int main(int argc, char** argv) {
  const Job job = job_of(argc, argv);
  void* const left = zmq_ctx_new();
  void* const right = zmq_ctx_new();
  void* const sender = socket_of(left, job.is_rate ? ZMQ_PUSH : ZMQ_PAIR, job.bytes);
  void* const taker = socket_of(right, job.is_rate ? ZMQ_PULL : ZMQ_PAIR, job.bytes);
  char endpoint[64];
  size_t size = sizeof endpoint;
  require(zmq_bind(taker, "tcp://127.0.0.1:*") == 0 && zmq_getsockopt(taker, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0 &&
              zmq_connect(sender, endpoint) == 0,
          "connecting");
  Meter meter(job);
  Blocks sent(job.bytes);
  std::thread receiver([&] {
    zmq_msg_t message;
    zmq_msg_init(&message);
    meter.receive([&] { require(zmq_msg_recv(&message, taker, 0) == static_cast<int>(job.bytes), "zmq_msg_recv"); });
    zmq_msg_close(&message);
  });
  meter.send([&](bool) { send_message(sender, sent.next(), job.bytes); });
  receiver.join();
  zmq_close(sender);
  zmq_close(taker);
  zmq_ctx_term(left);
  zmq_ctx_term(right);
}
