// The chain in oneTBB's flow graph: function nodes with the lightweight policy and bodies that cannot throw, which run
// in the caller's thread, one after another. TBB has no memory of its own, so a message carries what it is about and
// who owns it: a shared pointer. With PEER_FORM=pointer it is a bare one, whose owner is somebody else.
#include <oneapi/tbb/flow_graph.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/peers/peer.h"

namespace {

namespace flow = oneapi::tbb::flow;

struct Payload {
  uint64_t index = 0;
  uint8_t bytes[8] = {};
};

// Messages between two waits for the graph: as deep as a full pipeline, and no wait for every one.
constexpr unsigned kBatch = 64;

// `make`: gives the message with this index.
template <class Message, class Make>
double chain_ns(unsigned handlers, unsigned messages, const Make& make) {
  using Node = flow::function_node<Message, Message, flow::lightweight>;
  flow::graph graph;
  std::vector<std::unique_ptr<Node>> nodes;
  for (unsigned i = 0; i < handlers; ++i) {
    nodes.push_back(
        std::make_unique<Node>(graph, flow::serial, [](const Message& message) noexcept { return message; }));
    if (i > 0) flow::make_edge(*nodes[i - 1], *nodes[i]);
  }
  uint64_t sum = 0;
  flow::function_node<Message, flow::continue_msg, flow::lightweight> sink(graph, flow::serial,
                                                                           [&sum](const Message& message) noexcept {
                                                                             sum += message->index;
                                                                             return flow::continue_msg();
                                                                           });
  flow::make_edge(*nodes.back(), sink);
  const auto put = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      nodes.front()->try_put(make(i));
      if (i % kBatch == kBatch - 1) graph.wait_for_all();
    }
    graph.wait_for_all();
  };
  put(peers::kWarmMessages);
  sum = 0;
  const peers::Stopwatch watch;
  put(messages);
  const double ns = watch.seconds() * 1e9 / messages;
  if (sum != uint64_t{messages} * (messages - 1) / 2) {
    std::fprintf(stderr, "tbb: messages were lost\n");
    std::exit(1);
  }
  return ns;
}

} // namespace

int main(int argc, char** argv) {
  const peers::Job job = peers::job_of(argc, argv);
  if (!job.chain) {
    std::fprintf(stderr, "oneTBB has no pictures\n");
    return peers::kMissing;
  }
  const char* form = std::getenv("PEER_FORM");
  if (form && std::strcmp(form, "pointer") == 0) {
    std::vector<Payload> payloads(kBatch);
    std::printf("%.3f\n", chain_ns<Payload*>(job.handlers, job.count, [&](unsigned index) {
                  Payload& payload = payloads[index % kBatch];
                  payload.index = index;
                  return &payload;
                }));
  } else {
    std::printf("%.3f\n", chain_ns<std::shared_ptr<Payload>>(job.handlers, job.count, [](unsigned index) {
                  auto message = std::make_shared<Payload>();
                  message->index = index;
                  return message;
                }));
  }
}
