// Pictures of a volume on a GPU: enqueues kernels, and decides nothing on the host. This header needs no CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "millrace/abi.h"
#include "millrace/payload/view.h"
#include "plugins/volume/contrast.h"
#include "plugins/volume/march.h"
#include "plugins/volume/sight.h"

namespace millrace::volume::gpu {

// Voxels along a side of a texture.
inline constexpr int64_t kSideMax = 16384;

enum class VoxelType : uint32_t { u8, u16, f32 };

struct VolumeShape {
  VoxelType type = VoxelType::u8;
  int32_t width = 0, height = 0, depth = 0;

  bool operator==(const VolumeShape&) const = default;
};

// Device memory that a RenderOnGpu takes.
uint64_t device_bytes(const VolumeShape& shape);

// The volume that the texture has. In device memory, zeros at first.
struct Known {
  const void* data;
  int64_t pts_ns;
};

// All addresses are in device memory. Lists may be null.
struct RenderCall {
  const void* volume = nullptr; // dense
  const mr_value* volume_value = nullptr;
  const ViewCamera* camera = nullptr;
  const mr_value* camera_value = nullptr;
  const ViewLook* look = nullptr;
  const mr_value* look_value = nullptr;
  Known* known = nullptr;
  uint8_t* picture = nullptr; // red, green and blue
  uint32_t stride = 0;        // bytes from row to row
  ViewControl* controls = nullptr;
  uint64_t* control_count = nullptr;
};

// All calls have these in common. Names are those of the parameters, for looks without one.
struct RenderSettings {
  VolumeShape shape;
  Wanted wanted;
  std::string colour_map;
  uint32_t multiprocessors = 1;
  std::vector<ViewControl> controls; // without a histogram
};

// Belongs to one device, which is current when it is made and destroyed. Its calls are on one stream at a time.
class RenderOnGpu {
 public:
  explicit RenderOnGpu(const RenderSettings& settings);
  ~RenderOnGpu();
  // Enqueues a picture on the stream (cudaStream_t), which may be captured. Throws std::runtime_error with CUDA's
  // words.
  void enqueue(void* stream, const RenderCall& call);

  // Found about the last volume; they wait for the device.
  Contrast contrast() const;
  std::vector<float> greatest() const; // a brick's each, [z, y, x]

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace millrace::volume::gpu
