// The kernels of five handlers, called without a runtime: in captured graphs, as a careful programmer would, and
// naively.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "bench.h"
#include "handlers/draw/caption.h"
#include "handlers/draw/glyphs.h"
#include "handlers/draw/packed_sheet.h"
#include "handlers/draw/raster.h"
#include "handlers/gpu/draw_kernels.h"
#include "handlers/gpu/image_kernels.h"
#include "tests/gpu/on_gpu.h"

namespace millrace::test {
namespace {

using namespace handlers;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void advance(mr_device_tick* tick) {
  ++tick->index;
  tick->media_time_ns += 40'000'000;
}

// The kernels that the GPU bodies of test.pattern, image.blur, draw.text and draw.waveform enqueue, with their numbers.
class Kernels {
 public:
  explicit Kernels(const Five& five)
      : five_(five),
        caption_(Five::kText),
        glyphs_(five.font, five.text_size(), Five::kText),
        sheet_(glyphs_, caption_) {
    blur_.set_sigma(Five::kSigma);
    bytes_ = lay_out_image(Pixel::rgba8, five.width, five.height, image_);
    image_.color = MR_COLOR_SRGB;
    image_.range = MR_RANGE_FULL;
  }

  uint64_t bytes() const { return bytes_; }
  uint64_t sheet_bytes() const { return sheet_.bytes().size(); }
  uint64_t count_bytes() const { return sizeof(uint32_t) * kLevelCount * five_.width; }
  gpu::DevicePicture picture(void* data) const { return {image_, static_cast<uint8_t*>(data)}; }

  void paint(cudaStream_t stream, const mr_device_tick* tick, void* to) const {
    gpu::check(gpu::image_kernels().paint(stream, Pattern::gradient, tick, picture(to)));
  }
  void blur(cudaStream_t stream, void* from, void* to) const {
    gpu::check(gpu::image_kernels().blur(stream, picture(from), picture(to), blur_.kernel(), blur_.chroma_kernel()));
  }
  void upload(cudaStream_t stream, void* sheet) const {
    gpu::check(gpu::draw_kernels().upload(stream, sheet, sheet_.bytes().data(), sheet_.bytes().size()));
  }
  void text(cudaStream_t stream, const mr_device_tick* tick, void* sheet, void* at) const {
    gpu::TextLine line{};
    line.sheet = sheet_.sheet(sheet);
    line.caption = sheet_.caption(sheet);
    line.caption_count = sheet_.caption_count();
    line.ink = ink_of({255, 255, 255}, Pixel::rgba8);
    line.x = static_cast<int32_t>(Five::kTextX);
    const int64_t top = five_.height + Five::kTextY - glyphs_.ascent() - glyphs_.descent();
    line.baseline = static_cast<int32_t>(top) + glyphs_.ascent();
    line.top = line.baseline - sheet_.top();
    line.bottom = line.baseline + sheet_.bottom();
    gpu::check(gpu::draw_kernels().text(stream, line, tick, picture(at)));
  }
  void waveform(cudaStream_t stream, void* counts, void* at) const {
    const auto share = [](uint32_t side) { return static_cast<int32_t>(std::llround(Five::kMonitorSize * side)); };
    const auto width = static_cast<int32_t>(five_.width), height = static_cast<int32_t>(five_.height);
    const int32_t w = share(five_.width), h = share(five_.height);
    const int32_t x = width - std::min((width - w) / 2, width / 64) - w;
    const int32_t y = height - std::min((height - h) / 2, width / 64) - h;
    gpu::Monitor monitor{};
    monitor.area = {x, y, x + w, y + h};
    monitor.counts = static_cast<uint32_t*>(counts);
    monitor.trace_count = 1;
    monitor.traces[0] = {monitor.area, LevelOf::luma, ink_of({120, 255, 140}, Pixel::rgba8),
                         light_scale(uint64_t{five_.width} * five_.height, static_cast<uint32_t>(w), 1)};
    gpu::check(gpu::draw_kernels().waveform(stream, monitor, picture(at)));
  }

 private:
  Five five_;
  Caption caption_;
  GlyphSet glyphs_;
  PackedSheet sheet_;
  GaussianBlur blur_;
  mr_image image_{};
  uint64_t bytes_ = 0;
};

struct Slot {
  explicit Slot(uint64_t bytes) : painted(bytes), blurred(bytes) {
    checked(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~Slot() {
    cudaGraphExecDestroy(exec);
    cudaEventDestroy(done);
  }
  GpuBytes painted, blurred;
  cudaGraphExec_t exec = nullptr;
  cudaEvent_t done = nullptr;
};

} // namespace

double five_by_hand(const Five& five, bool uploads, uint32_t frames) {
  checked(cudaSetDevice(0), "cudaSetDevice");
  const Kernels kernels(five);
  const GpuStream stream;
  // One stream runs one graph at a time, so only what leaves it needs a slot.
  GpuBytes tick(sizeof(mr_device_tick)), sheet(kernels.sheet_bytes()), counts(kernels.count_bytes());
  tick.fill(0);
  kernels.upload(stream, sheet.data());
  const auto* now = reinterpret_cast<const mr_device_tick*>(tick.data());
  const auto enqueue = [&](const Slot& slot) {
    advance<<<1, 1, 0, stream>>>(reinterpret_cast<mr_device_tick*>(tick.data()));
    kernels.paint(stream, now, slot.painted.data());
    kernels.blur(stream, slot.painted.data(), slot.blurred.data());
    if (uploads) kernels.upload(stream, sheet.data());
    kernels.text(stream, now, sheet.data(), slot.blurred.data());
    kernels.waveform(stream, counts.data(), slot.blurred.data());
  };
  std::vector<std::unique_ptr<Slot>> slots;
  for (int s = 0; s < 3; ++s) {
    slots.push_back(std::make_unique<Slot>(kernels.bytes()));
    Slot& slot = *slots.back();
    enqueue(slot); // loads the kernels, which a capture should not
    stream.wait();
    cudaGraph_t graph;
    checked(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    enqueue(slot);
    checked(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    checked(cudaGraphInstantiate(&slot.exec, graph, 0), "cudaGraphInstantiate");
    checked(cudaGraphUpload(slot.exec, stream), "cudaGraphUpload");
    checked(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  const auto round = [&](uint32_t count) {
    for (uint32_t f = 0; f < count; ++f) {
      Slot& slot = *slots[f % slots.size()];
      if (f >= slots.size()) checked(cudaEventSynchronize(slot.done), "cudaEventSynchronize");
      checked(cudaGraphLaunch(slot.exec, stream), "cudaGraphLaunch");
      checked(cudaEventRecord(slot.done, stream), "cudaEventRecord");
    }
    stream.wait();
  };
  round(50);
  const double begin = seconds_now();
  round(frames);
  return frames / (seconds_now() - begin);
}

double five_naively(const Five& five, uint32_t frames) {
  checked(cudaSetDevice(0), "cudaSetDevice");
  const Kernels kernels(five);
  const uint64_t bytes = kernels.bytes();
  std::vector<uint8_t> host(bytes);
  const auto allocated = [](uint64_t count) {
    void* data = nullptr;
    checked(cudaMalloc(&data, count), "cudaMalloc");
    return data;
  };
  const auto finish = [&](const void* made) {
    checked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    checked(cudaMemcpy(host.data(), made, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  };
  const auto copy_of = [&](const void* from) {
    void* to = allocated(bytes);
    checked(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
    return to;
  };
  const auto frame = [&](uint64_t index) {
    const mr_device_tick now{index, static_cast<int64_t>(index) * 40'000'000, 0};
    auto* tick = static_cast<mr_device_tick*>(allocated(sizeof now));
    checked(cudaMemcpy(tick, &now, sizeof now, cudaMemcpyHostToDevice), "cudaMemcpy");
    void* painted = allocated(bytes);
    kernels.paint(nullptr, tick, painted);
    finish(painted);
    void* blurred = allocated(bytes);
    kernels.blur(nullptr, painted, blurred);
    finish(blurred);
    void *written = copy_of(blurred), *sheet = allocated(kernels.sheet_bytes());
    kernels.upload(nullptr, sheet);
    kernels.text(nullptr, tick, sheet, written);
    finish(written);
    void *shown = copy_of(written), *counts = allocated(kernels.count_bytes());
    kernels.waveform(nullptr, counts, shown);
    finish(shown);
    for (void* data : {static_cast<void*>(tick), painted, blurred, written, sheet, shown, counts})
      checked(cudaFree(data), "cudaFree");
  };
  for (uint64_t f = 0; f < 3; ++f) frame(f);
  const double begin = seconds_now();
  for (uint64_t f = 0; f < frames; ++f) frame(f);
  return frames / (seconds_now() - begin);
}

double copies_down(uint64_t bytes, uint32_t count) {
  checked(cudaSetDevice(0), "cudaSetDevice");
  const GpuStream stream;
  const GpuBytes from(bytes);
  void* to = nullptr;
  checked(cudaMallocHost(&to, bytes), "cudaMallocHost");
  const auto round = [&](uint32_t n) {
    for (uint32_t c = 0; c < n; ++c)
      checked(cudaMemcpyAsync(to, from.data(), bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    stream.wait();
  };
  round(5);
  const double begin = seconds_now();
  round(count);
  const double seconds = seconds_now() - begin;
  cudaFreeHost(to);
  return static_cast<double>(bytes) * count / seconds;
}

} // namespace millrace::test
