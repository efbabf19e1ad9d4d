// Runs the steps of a resident fit as kernels. Those that compare vectors with anchors are written for a GPU; all
// others are the steps themselves.
//
// It is compiled without contraction (-fmad=false): a fused product and sum would change bits.
#include "plugins/codebook/gpu/fit_on_gpu.h"

#include <cuda_runtime.h>
#include <millrace/launch.cuh>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "plugins/codebook/gpu/resident_fit.h"

namespace millrace::codebook::gpu {

namespace {

// True if the kernel has something to do. In a loop that cannot go on, because there is no fit, ends the loop.
__device__ bool goes_on(LoopWord* loop, const Control& control) {
  if (loop && is_over(loop)) return false;
  if (control.outcome.fault == Fault::none) return true;
  if (loop && blockIdx.x == 0 && threadIdx.x == 0) end_loop(loop);
  return false;
}

template <class Step>
__global__ void call_each(LoopWord* loop, const Control* control, bool always, uint64_t count, Step step) {
  await_inputs();
  if (!always && !goes_on(loop, *control)) return;
  const uint64_t all = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count; i += all) step(i);
}

template <uint32_t kThreads, class Step>
__global__ void __launch_bounds__(kThreads)
    call_blocks(LoopWord* loop, const Control* control, bool always, Step step) {
  __shared__ uint64_t shared[Block::kShared];
  await_inputs();
  if (!always && !goes_on(loop, *control)) return;
  Block block{shared, blockIdx.x, loop ? loop->rounds : 0};
  step(block);
  if (block.ends && loop && threadIdx.x == 0) end_loop(loop);
}

// True in all threads of the block that is the last of its grid to come here; it sees what the others have written.
__device__ bool is_last_block(Control& control) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(&control.tickets, gridDim.x - 1) == gridDim.x - 1; // begins again at 0
  __syncthreads();
  __threadfence();
  return is_last;
}

// The last block also makes the step that needs all others.
template <class Last>
__device__ void make_last(LoopWord* loop, Control& control, Block block, const Last& last) {
  if (!is_last_block(control)) return;
  last(block);
  if (block.ends && loop && threadIdx.x == 0) end_loop(loop);
}

template <uint32_t kThreads, class Step, class Last>
__global__ void __launch_bounds__(kThreads) call_blocks_then(LoopWord* loop, Control* control, Step step, Last last) {
  __shared__ uint64_t shared[Block::kShared];
  await_inputs();
  if (!goes_on(loop, *control)) return;
  Block block{shared, blockIdx.x, loop ? loop->rounds : 0};
  step(block);
  make_last(loop, *control, block, last);
}

// ---- labels

// A block searches for kTileVectors of many listed vectors together, kTileAnchors anchors at a time and kChunk numbers
// of each at a time. A thread then has the lanes of kOwnVectors × kOwnAnchors sums in registers, so any number of
// dimensions fits.
constexpr uint32_t kTileVectors = 64, kTileAnchors = 32, kChunk = 32;
constexpr uint32_t kOwnVectors = 2, kOwnAnchors = 4;
constexpr uint32_t kAcross = kTileAnchors / kOwnAnchors, kDown = kTileVectors / kOwnVectors;
constexpr uint32_t kSearchThreads = kAcross * kDown;
constexpr uint32_t kPadded = kChunk + 4; // rows begin in different banks, and each at 16 bytes

template <uint32_t kRows>
using Tile = float[kRows][kPadded];

// Copies a chunk of so many rows; zeros take the place of what is not there.
template <uint32_t kRows, class RowAt>
__device__ void load(float (&tile)[kRows][kPadded], const RowAt& row_at, uint32_t begin, uint32_t stride) {
  constexpr uint32_t kFours = kChunk / 4;
  for (uint32_t at = threadIdx.x; at < kRows * kFours; at += kSearchThreads) {
    const uint32_t row = at / kFours, column = at % kFours * 4;
    const float* const from = row_at(row);
    float4 four{};
    if (from && begin + column < stride) four = *reinterpret_cast<const float4*>(from + begin + column);
    *reinterpret_cast<float4*>(&tile[row][column]) = four;
  }
}

__device__ void load_lanes(float (&lanes)[kLanes], const float* from) {
  const float4 low = *reinterpret_cast<const float4*>(from), high = *reinterpret_cast<const float4*>(from + 4);
  lanes[0] = low.x, lanes[1] = low.y, lanes[2] = low.z, lanes[3] = low.w;
  lanes[4] = high.x, lanes[5] = high.y, lanes[6] = high.z, lanes[7] = high.w;
}

// Searches for up to kTileVectors vectors.
__device__ void search_together(const Resident& r, const uint32_t* listed, uint32_t count) {
  static_assert(kAcross == 8, "threads of one vector lie beside each other in a warp");
  __shared__ __align__(16) Tile<kTileVectors> vectors; // read by fours
  __shared__ __align__(16) Tile<kTileAnchors> anchors;
  const uint32_t across = threadIdx.x % kAcross, down = threadIdx.x / kAcross;
  const uint64_t cells = r.cells();
  Nearest best[kOwnVectors];
  for (uint64_t tile = 0; tile < cells; tile += kTileAnchors) {
    float sums[kOwnVectors][kOwnAnchors][kLanes] = {};
    for (uint32_t begin = 0; begin < r.stride; begin += kChunk) {
      __syncthreads();
      load(
          vectors, [&](uint32_t row) { return row < count ? r.row(listed[row]) : nullptr; }, begin, r.stride);
      load(
          anchors, [&](uint32_t row) { return tile + row < cells ? r.anchor(tile + row) : nullptr; }, begin, r.stride);
      __syncthreads();
#pragma unroll
      for (uint32_t j = 0; j < kChunk; j += kLanes) {
        float x[kOwnVectors][kLanes];
#pragma unroll
        for (uint32_t v = 0; v < kOwnVectors; ++v) load_lanes(x[v], &vectors[down + v * kDown][j]);
#pragma unroll
        for (uint32_t a = 0; a < kOwnAnchors; ++a) {
          float anchor[kLanes];
          load_lanes(anchor, &anchors[across + a * kAcross][j]);
#pragma unroll
          for (uint32_t v = 0; v < kOwnVectors; ++v)
#pragma unroll
            for (uint32_t lane = 0; lane < kLanes; ++lane) {
              const float apart = x[v][lane] - anchor[lane];
              sums[v][a][lane] += apart * apart;
            }
        }
      }
    }
#pragma unroll
    for (uint32_t v = 0; v < kOwnVectors; ++v)
#pragma unroll
      for (uint32_t a = 0; a < kOwnAnchors; ++a) {
        const uint64_t label = tile + across + a * kAcross;
        if (label < cells) best[v].take(key_of(sum_of_lanes(sums[v][a]), label));
      }
  }
#pragma unroll
  for (uint32_t v = 0; v < kOwnVectors; ++v) {
    for (uint32_t apart = 1; apart < kAcross; apart *= 2) best[v].join(from_lane(best[v], apart, false));
    const uint32_t n = down + v * kDown;
    if (across == 0 && n < count) give_found(r, listed[n], best[v]);
  }
}

constexpr uint32_t kManyFrom = 4096; // so many fill a large GPU by tiles

__global__ void __launch_bounds__(kSearchThreads) search_tiles(LoopWord* loop, Resident r) {
  await_inputs();
  if (!goes_on(loop, *r.control)) return;
  const uint32_t first = blockIdx.x * kTileVectors, listed = r.control->listed;
  if (listed >= kManyFrom && first < listed) search_together(r, r.members + first, min(listed - first, kTileVectors));
}

// ---- first anchors

constexpr uint32_t kLaneThreads = 256, kLaneVectors = kLaneThreads / kLanes;

__global__ void __launch_bounds__(kLaneThreads)
    go_from_chosen(LoopWord* loop, Resident r, uint32_t step, bool decides) {
  __shared__ uint64_t furthest[kLaneThreads / kWarpThreads];
  await_inputs();
  if (!goes_on(loop, *r.control)) return;
  const uint64_t n = uint64_t{loop->rounds} * kStartsARound + step;
  if (n + 1 >= r.anchors) return;
  const uint32_t lane = threadIdx.x % kLanes;
  const uint64_t i = uint64_t{blockIdx.x} * kLaneVectors + threadIdx.x / kLanes, used = r.used();
  float sum = distance_by_lanes(r.row(i < used ? i : 0), r.row(chosen(r, n)), r.stride);
  uint64_t key = 0;
  if (lane == 0 && i < used) {
    if (n > 0) sum = fminf(sum, r.distances[i]);
    r.distances[i] = sum;
    key = key_of(sum, i);
  }
  for (uint32_t other = kLanes; other < kWarpThreads; other *= 2) {
    const uint64_t theirs = __shfl_xor_sync(kAllLanes, key, other);
    if (theirs > key) key = theirs;
  }
  if (threadIdx.x % kWarpThreads == 0) furthest[threadIdx.x / kWarpThreads] = key;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (const uint64_t one : furthest)
    if (one > key) key = one;
  raise_to(r.keys[n], key);
  if (decides && n + 2 >= r.anchors && blockIdx.x == 0) end_loop(loop);
}

// ---- the engine

constexpr int kLoops = 2;
// The loops' words lie before the arrays.
constexpr uint64_t kWordBytes = 256;
static_assert(kLoops * sizeof(LoopWord) <= kWordBytes);

class CudaEngine {
 public:
  CudaEngine(cudaStream_t stream, Loop (&loops)[kLoops], LoopWord* words, Control* control)
      : stream_(stream), loops_(loops), words_(words), control_(control) {}

  template <class Step>
  void each(uint64_t count, const Step& step) {
    call_for_each(count, step, false);
  }
  template <class Step>
  void always_each(uint64_t count, const Step& step) {
    call_for_each(count, step, true);
  }
  template <class Step>
  void blocks(uint32_t count, const Step& step) {
    run(count, Step::kThreads, call_blocks<Step::kThreads, Step>, loop_, control_, false, step);
  }
  template <class Step>
  void once(const Step& step) {
    run(1, kLarge, call_blocks<kLarge, Step>, loop_, control_, false, step);
  }
  template <class Step>
  void always_once(const Step& step) {
    run(1, kLarge, call_blocks<kLarge, Step>, loop_, control_, true, step);
  }
  template <class Step, class Last>
  void blocks_then(uint32_t count, const Step& step, const Last& last) {
    run(count, Step::kThreads, call_blocks_then<Step::kThreads, Step, Last>, loop_, control_, step, last);
  }
  uint32_t search_many(const Resident& r) {
    if (r.vectors >= kManyFrom)
      run((r.vectors + kTileVectors - 1) / kTileVectors, kSearchThreads, search_tiles, loop_, r);
    return kManyFrom;
  }
  void go_from(const Resident& r, uint32_t step, bool decides) {
    run((r.vectors + kLaneVectors - 1) / kLaneVectors, kLaneThreads, go_from_chosen, loop_, r, step, decides);
  }
  template <class Body>
  void loop(int which, uint32_t at_most, const Body& body) {
    if (error_ != cudaSuccess) return;
    const cudaError_t error = repeat(stream_, loops_[which], words_ + which, at_most, [&](cudaStream_t round) {
      const cudaStream_t outside = std::exchange(stream_, round);
      loop_ = words_ + which;
      body();
      loop_ = nullptr;
      stream_ = outside;
      return error_;
    });
    if (error_ == cudaSuccess) error_ = error;
  }
  cudaError_t error() const { return error_; }

 private:
  static constexpr uint32_t kLarge = 1024;

  template <class Step>
  void call_for_each(uint64_t count, const Step& step, bool always) {
    constexpr uint64_t kThreads = 256, kBlocksMax = 1 << 16;
    const auto blocks = static_cast<uint32_t>(std::clamp<uint64_t>((count + kThreads - 1) / kThreads, 1, kBlocksMax));
    run(blocks, kThreads, call_each<Step>, loop_, control_, always, count, step);
  }
  template <class... Parameters, class... Arguments>
  void run(uint32_t blocks, uint32_t threads, void (*kernel)(Parameters...), const Arguments&... arguments) {
    if (error_ == cudaSuccess)
      error_ = launch({blocks, threads, 0, stream_}, kernel, static_cast<Parameters>(arguments)...);
  }

  cudaStream_t stream_;
  Loop (&loops_)[kLoops];
  LoopWord* words_;
  LoopWord* loop_ = nullptr; // that around
  Control* control_;
  cudaError_t error_ = cudaSuccess;
};

template <class Element>
void enqueue_of(CudaEngine& engine, const Resident& r, const FitCall& call) {
  const Reading<Element> from = {static_cast<const Element*>(call.vectors), call.metric, call.bad};
  if (call.given_type == ElementType::f32)
    fit_resident(engine, r, call.settings, from, static_cast<const float*>(call.given), call.to);
  else
    fit_resident(engine, r, call.settings, from, static_cast<const Float16*>(call.given), call.to);
}

} // namespace

uint64_t scratch_bytes(const Sizes& sizes) {
  uint64_t bytes = 0;
  lay_out(nullptr, sizes, bytes);
  return kWordBytes + bytes;
}

const char* why_unrolled() { return why_loops_are_unrolled(); }

struct FitOnGpu::Parts {
  Loop loops[kLoops];
};

FitOnGpu::FitOnGpu() : parts_(std::make_unique<Parts>()) {}
FitOnGpu::~FitOnGpu() = default;

void FitOnGpu::enqueue(void* stream, const FitCall& call) {
  auto* const scratch = static_cast<char*>(call.scratch);
  uint64_t bytes = 0;
  const Resident r = lay_out(scratch + kWordBytes, call.sizes, bytes);
  CudaEngine engine(static_cast<cudaStream_t>(stream), parts_->loops, reinterpret_cast<LoopWord*>(scratch), r.control);
  switch (call.type) {
    case ElementType::f16: enqueue_of<Float16>(engine, r, call); break;
    case ElementType::bf16: enqueue_of<BFloat16>(engine, r, call); break;
    case ElementType::f32: enqueue_of<float>(engine, r, call); break;
  }
  if (engine.error() != cudaSuccess) throw std::runtime_error(cudaGetErrorString(engine.error()));
}

} // namespace millrace::codebook::gpu
