// A volume on a GPU with all the memory of its pictures, for tests and benchmarks: painted as often as one likes,
// directly or by a captured graph.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/volume/colour_maps.h"
#include "plugins/volume/controls.h"
#include "plugins/volume/gpu/render_on_gpu.h"
#include "plugins/volume/painter.h"
#include "tests/gpu/on_gpu.h"

namespace millrace::volume {

using handlers::checked;
using handlers::GpuBytes;
using handlers::GpuStream;
using handlers::GpuValue;

template <class Number>
inline constexpr gpu::VoxelType kVoxelType = gpu::VoxelType::f32;
template <>
inline constexpr gpu::VoxelType kVoxelType<uint8_t> = gpu::VoxelType::u8;
template <>
inline constexpr gpu::VoxelType kVoxelType<uint16_t> = gpu::VoxelType::u16;

inline mr_value value_at(int64_t pts_ns) {
  mr_value value{};
  value.header.pts_ns = pts_ns;
  value.header.present = 1;
  return value;
}
inline mr_value list_of(uint64_t count) {
  mr_value value = value_at(0);
  value.as.records.count = count;
  return value;
}

class PictureRig {
 public:
  template <class Number>
  PictureRig(const Voxels<Number>& voxels, const Settings& settings, uint32_t multiprocessors = 2)
      : settings_(settings),
        voxel_bytes_(bytes_of(voxels)),
        on_gpu_({{kVoxelType<Number>, voxels.width, voxels.height, voxels.depth},
                 wanted_of(settings),
                 settings.colour_map,
                 multiprocessors,
                 controls_of("maximum", "gray", settings.iso)}),
        volume_(voxel_bytes_),
        picture_(row_bytes() * settings.height),
        controls_(kControlsOffered * sizeof(ViewControl)),
        known_(gpu::Known{}),
        volume_value_(value_at(0)),
        camera_(ViewCamera()),
        look_(ViewLook()),
        camera_value_(list_of(1)),
        look_value_(list_of(1)),
        control_count_(0) {
    call_.volume = volume_.data();
    call_.volume_value = volume_value_.get();
    call_.camera = camera_.get();
    call_.camera_value = camera_value_.get();
    call_.look = look_.get();
    call_.look_value = look_value_.get();
    call_.known = const_cast<gpu::Known*>(known_.get());
    call_.picture = picture_.data();
    call_.stride = static_cast<uint32_t>(row_bytes());
    volume_.upload(voxels.data);
  }
  ~PictureRig() {
    if (exec_) cudaGraphExecDestroy(exec_);
  }
  PictureRig(const PictureRig&) = delete;
  PictureRig& operator=(const PictureRig&) = delete;

  void look_from(const ViewCamera& camera, const ViewLook& look) {
    camera_.set(camera);
    look_.set(look);
  }
  void leave_out_lists() {
    camera_value_.set(list_of(0));
    look_value_.set(list_of(0));
  }
  void give_controls() {
    call_.controls = reinterpret_cast<ViewControl*>(controls_.data());
    call_.control_count = const_cast<uint64_t*>(control_count_.get());
  }
  // Other bytes at the same address.
  template <class Number>
  void replace(const Voxels<Number>& voxels, int64_t pts_ns) {
    volume_.upload(voxels.data);
    volume_value_.set(value_at(pts_ns));
  }
  // Other bytes at another address, which must live as long.
  void take_from(const GpuBytes& volume) { call_.volume = volume.data(); }

  void enqueue() { on_gpu_.enqueue(stream_, call_); }
  std::vector<uint8_t> paint() {
    picture_.fill(handlers::kPoison);
    enqueue();
    stream_.wait();
    return picture();
  }
  void capture() {
    cudaGraph_t graph = nullptr;
    checked(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    enqueue();
    checked(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    checked(cudaGraphInstantiate(&exec_, graph, 0), "cudaGraphInstantiate");
    checked(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  std::vector<uint8_t> launch() {
    picture_.fill(handlers::kPoison);
    checked(cudaGraphLaunch(exec_, stream_), "cudaGraphLaunch");
    stream_.wait();
    return picture();
  }

  const gpu::RenderOnGpu& on_gpu() const { return on_gpu_; }
  cudaStream_t stream() const { return stream_; }
  cudaGraphExec_t exec() const { return exec_; }
  std::vector<ViewControl> controls() const {
    std::vector<ViewControl> all(kControlsOffered);
    controls_.download(all.data());
    return all;
  }
  uint64_t control_count() const {
    uint64_t count = 0;
    checked(cudaMemcpy(&count, control_count_.get(), sizeof count, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return count;
  }

 private:
  template <class Number>
  static size_t bytes_of(const Voxels<Number>& voxels) {
    return static_cast<size_t>(voxels.width) * static_cast<size_t>(voxels.height) * static_cast<size_t>(voxels.depth) *
           sizeof(Number);
  }
  size_t row_bytes() const { return size_t{settings_.width} * 3; }
  std::vector<uint8_t> picture() const {
    std::vector<uint8_t> bytes(picture_.count());
    picture_.download(bytes.data());
    return bytes;
  }

  Settings settings_;
  size_t voxel_bytes_;
  gpu::RenderOnGpu on_gpu_;
  GpuBytes volume_, picture_, controls_;
  GpuValue<gpu::Known> known_;
  GpuValue<mr_value> volume_value_;
  GpuValue<ViewCamera> camera_;
  GpuValue<ViewLook> look_;
  GpuValue<mr_value> camera_value_, look_value_;
  GpuValue<uint64_t> control_count_;
  gpu::RenderCall call_;
  GpuStream stream_;
  cudaGraphExec_t exec_ = nullptr;
};

} // namespace millrace::volume
