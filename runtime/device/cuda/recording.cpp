// Captures bodies into a graph once, and launches the graph.
//
// A recording's graph is [set_tick] → bodies → [signal]. The first node writes the tick's numbers and which lists are
// there. Both are by-value arguments, which replay() changes in the instance. The last node writes the stream's word.
// So a tick of any number of bodies is two calls, one that sets the arguments and one that launches.
#include <algorithm>

#include "device/cuda/cuda_device.h"
#include "device/cuda/words.h"
#include "observe/error.h"

namespace millrace::device::cuda {
namespace {

// The most branches beside the recorded stream itself; further bodies go to that stream.
constexpr size_t kSideStreamsMax = 8;

} // namespace

mr_device_tick* CudaDevice::take_tick() {
  MR_ASSERT(!free_ticks_.empty(), "a device has room for the ticks of 1024 recordings and streams");
  mr_device_tick* const tick = free_ticks_.back();
  free_ticks_.pop_back();
  return tick;
}

void CudaDevice::free_tick(mr_device_tick* tick) { free_ticks_.push_back(tick); }

CudaRecording::~CudaRecording() {
  if (device->poisoned()) return;
  if (exec) device->ask<Call::GraphExecDestroy>(exec);
  if (graph) device->ask<Call::GraphDestroy>(graph);
  device->free_tick(tick);
}

cudaEvent_t CudaDevice::next_capture_event() {
  if (capture_events_used_ == capture_events_.size()) {
    cudaEvent_t event = nullptr;
    if (!ask<Call::EventCreateWithFlags>(&event, unsigned{cudaEventDisableTiming})) return nullptr;
    capture_events_.push_back(event);
  }
  return capture_events_[capture_events_used_++];
}

void CudaDevice::begin_record(Stream& stream) {
  CudaStream& on = own(stream);
  MR_ASSERT(!on.recorder, "the stream records already");
  on.recorder = std::make_unique<Recorder>();
  recording_mutex_.lock(); // until end_record
  if (poisoned()) return;
  make_current();
  record_failure_.clear();
  capture_events_used_ = 0;
  on.recorder->tick = take_tick();
  stream.tick = on.recorder->tick;
  ask<Call::StreamBeginCapture>(on.handle, cudaStreamCaptureModeThreadLocal);
  if (const cudaError_t error = launch_set_tick(on.handle, on.recorder->tick, {}); error != cudaSuccess)
    fail_recording(*on.recorder, Call::LaunchKernel, error);
  on.recorder->begun = next_capture_event();
  record<Call::EventRecord>(*on.recorder, on.recorder->begun, on.handle);
}

void CudaDevice::fail_recording(Recorder& recorder, Call call, cudaError_t error) {
  if (recorder.failure.empty()) recorder.failure = sentence_of(call, error);
  (void)cudaGetLastError();
}

// Chooses the stream for a body that needs only some of the bodies before it. This is the stream of one of those if
// nothing follows it there yet, else a stream that has nothing in this recording. The chosen stream is joined to all
// bodies that it needs.
cudaStream_t CudaDevice::branch_for(CudaStream& stream, const std::vector<uint32_t>* after) {
  Recorder& recorder = *stream.recorder;
  if (!after) {
    join_branches(stream);
    return stream.handle;
  }
  const auto ends_with = [&](uint32_t run) { // nothing follows it on its stream
    for (size_t later = run + 1; later < recorder.runs.size(); ++later)
      if (recorder.runs[later].stream == recorder.runs[run].stream) return false;
    return true;
  };
  const auto unused = [&](cudaStream_t side) {
    return std::none_of(recorder.runs.begin(), recorder.runs.end(),
                        [&](const auto& ran) { return ran.stream == side; });
  };
  cudaStream_t chosen = nullptr;
  for (uint32_t run : *after)
    if (!chosen && ends_with(run)) chosen = recorder.runs[run].stream;
  if (!chosen && unused(stream.handle)) chosen = stream.handle;
  for (cudaStream_t side : side_streams_)
    if (!chosen && unused(side)) chosen = side;
  if (!chosen && side_streams_.size() < kSideStreamsMax) {
    if (!ask<Call::StreamCreateWithPriority>(&chosen, unsigned{cudaStreamNonBlocking}, 0)) return stream.handle;
    side_streams_.push_back(chosen);
  }
  if (!chosen) chosen = stream.handle;
  if (chosen != stream.handle &&
      std::find(recorder.sides.begin(), recorder.sides.end(), chosen) == recorder.sides.end()) {
    recorder.sides.push_back(chosen);
    record<Call::StreamWaitEvent>(recorder, chosen, recorder.begun, 0u);
  }
  for (uint32_t run : *after)
    if (recorder.runs[run].stream != chosen)
      record<Call::StreamWaitEvent>(recorder, chosen, recorder.runs[run].done, 0u);
  return chosen;
}

void CudaDevice::join_branches(CudaStream& stream) {
  for (cudaStream_t side : stream.recorder->sides) {
    const auto& runs = stream.recorder->runs;
    const auto last = std::find_if(runs.rbegin(), runs.rend(), [&](const auto& ran) { return ran.stream == side; });
    if (last != runs.rend()) record<Call::StreamWaitEvent>(*stream.recorder, stream.handle, last->done, 0u);
  }
}

std::unique_ptr<Recording> CudaDevice::end_record(Stream& stream) {
  CudaStream& on = own(stream);
  MR_ASSERT(on.recorder, "the stream does not record");
  const std::lock_guard lock(recording_mutex_, std::adopt_lock);
  if (!poisoned()) join_branches(on);
  const std::unique_ptr<Recorder> recorder = std::move(on.recorder);
  stream.tick = on.own_tick;
  if (poisoned()) return nullptr;
  // If a body did something that no graph can hold, the capture has ended, and the next call reports it. This is no
  // fault of the device. The capture is ended in any case, or the thread could do nothing else.
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaSuccess;
  if (recorder->failure.empty())
    error = launch_signal(on.handle, reinterpret_cast<uint64_t*>(&on.completed), recorder->tick);
  if (error != cudaSuccess) fail_recording(*recorder, Call::LaunchKernel, error);
  error = api_.call<Call::StreamEndCapture>(on.handle, &graph);
  if (error != cudaSuccess) fail_recording(*recorder, Call::StreamEndCapture, error);
  if (recorder->failure.empty() && graph) return instantiate(graph, recorder->tick);
  if (graph) ask<Call::GraphDestroy>(graph);
  free_tick(recorder->tick);
  record_failure_ = recorder->failure;
  return nullptr;
}

std::unique_ptr<Recording> CudaDevice::instantiate(cudaGraph_t graph, mr_device_tick* tick) {
  auto recording = std::make_unique<CudaRecording>();
  recording->device = this;
  recording->graph = graph;
  recording->tick = tick;
  size_t roots = 1; // set_tick: everything else comes after it
  if (!ask<Call::GraphGetRootNodes>(graph, &recording->set_tick, &roots)) return nullptr;
  MR_ASSERT(roots == 1, "a recording's graph begins with set_tick");
  if (!check(Call::GraphKernelNodeGetParams, api_.kernel_of_node(recording->set_tick, recording->set_tick_kernel)))
    return nullptr;
  const cudaError_t error = api_.call<Call::GraphInstantiate>(&recording->exec, graph, 0ull);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    recording->exec = nullptr;
    record_failure_ = sentence_of(Call::GraphInstantiate, error);
    return nullptr;
  }
  if (!ask<Call::GraphUpload>(recording->exec, setup_)) return nullptr;
  return recording;
}

// Sets the tick's numbers in the instance, for its next launch.
bool CudaDevice::set_value(CudaRecording& recording) {
  void* arguments[] = {&recording.tick, &recording.value, &recording.lists};
  recording.set_tick_kernel.kernelParams = arguments;
  return check(Call::GraphExecKernelNodeSetParams,
               api_.set_parameters(recording.exec, recording.set_tick, recording.set_tick_kernel));
}

// After a long idle time most of a launch is spent on memory that is no longer in the processor's caches.
void CudaDevice::warm_up(Stream& stream, Recording& recording) {
  if (own(stream).recorder || poisoned()) return;
  make_current();
  set_value(static_cast<CudaRecording&>(recording));
}

void CudaDevice::replay(Stream& stream, Recording& recording, const TickNumbers& numbers,
                        std::span<const RecordedList> lists) {
  MR_ASSERT(lists.size() <= kRecordedListsMax, "a launch has room for so many lists");
  CudaStream& on = own(stream);
  if (on.recorder) return poison(DeviceError::invalid, domain() + ": replay() while its stream records");
  ++on.issued;
  on.dirty = false; // the graph's own signal comes after everything enqueued before
  if (poisoned()) return;
  make_current();
  auto& graph = static_cast<CudaRecording&>(recording);
  graph.value = {numbers.index, numbers.media_time_ns, on.issued};
  graph.lists.count = static_cast<uint32_t>(lists.size());
  graph.lists.present = 0;
  for (size_t i = 0; i < lists.size(); ++i) {
    graph.lists.values[i] = lists[i].value;
    graph.lists.present |= uint32_t{lists[i].present} << i;
  }
  if (set_value(graph) && check(Call::GraphLaunch, api_.launch_graph(graph.exec, on.handle))) record_signal(on);
}

} // namespace millrace::device::cuda
