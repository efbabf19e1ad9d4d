// Rivals of gpu_bench: the code that a careful programmer would write by hand with CUDA alone. No part of millrace is
// in it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace::test {

// How a graph gets the numbers of its tick: not at all, as an argument of a first kernel that is set anew, by a first
// kernel that reads mapped host memory, or by a copy node.
enum class NumbersBy { nobody, argument, mapped, copy };
// The graph is captured and launched by CUDA's own functions, or by libtorch's CUDAGraph if torch_replay.so is there.
enum class LaunchedBy { cuda, torch };

// A captured graph of `nodes` kernels in a row, of which each takes about spin_ns (0: none), and a last one
// that writes a sequence number to mapped memory.
class GraphLoop {
 public:
  GraphLoop(int device, uint32_t nodes, uint64_t spin_ns, NumbersBy by = NumbersBy::nobody,
            LaunchedBy launcher = LaunchedBy::cuda);
  ~GraphLoop();
  // One launch; returns the ns that the call took.
  int64_t launch();
  // Until the last launch's number is there, by polling.
  void await() const;
  bool done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Frames of so many bytes: pinned up, through a kernel that copies, and pinned down, on three streams with events and
// `depth` buffers. Seconds for `count` frames.
double frames_by_hand(uint64_t bytes, uint32_t depth, uint32_t count);
// The same in the naive way: memory is allocated for each frame, copies are synchronous, and each kernel is waited for.
double frames_naively(uint64_t bytes, uint32_t count);
// Peer copies of so many bytes from device 0 to device 1, on a stream of the device `on`: seconds for `count`
// in a row, and the median time of one of `count` between two events, in µs.
struct PeerCopies {
  double seconds, one_us;
};
PeerCopies peer_copies(uint64_t bytes, uint32_t count, int on);

} // namespace millrace::test
