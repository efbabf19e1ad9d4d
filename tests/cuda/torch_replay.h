// libtorch's at::cuda::CUDAGraph for gpu_bench: a module of its own, loaded where it was built, because libtorch brings
// hundreds of megabytes and the benchmark does without. Errors of libtorch end the process with their text.
#pragma once

extern "C" {

// The stream, a CUstream, on which this thread captures and replays from now on: one of libtorch's pool for `device`.
void* torch_replay_stream(int device);
// Captures the work that `record` enqueues on that stream; the graph lives as long as the process.
void* torch_replay_capture(void (*record)(void* with), void* with);
// CUDAGraph::replay().
void torch_replay_launch(void* graph);
// Captures torch.cdist of `count` places (x, y in device memory) among themselves, and torch.topk of the nearest k + 1,
// `times` times one after the other.
void* torch_replay_nearest(const float* places, int count, int k, int times);
}
