// The kernels of a picture, and their memory. A volume that is new goes into a texture first.
#include "plugins/volume/gpu/render_on_gpu.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <stdexcept>

#include "plugins/volume/colour_maps.h"
#include "plugins/volume/controls.h"
#include "plugins/volume/gpu/contrast_of_plane.h"
#include "plugins/volume/gpu/device_memory.h"
#include "plugins/volume/gpu/room.h"
#include "plugins/volume/limits.h"
#include "plugins/volume/make_control.h"

namespace millrace::volume::gpu {

namespace {

constexpr uint32_t kSurveyThreads = 256, kSurveyBlocks = 4; // so many blocks a multiprocessor
constexpr uint32_t kPrepareThreads = 512;
// A warp has 8 × 4 pixels, whose rays read voxels that lie close together.
constexpr uint32_t kMarchAcross = 8, kMarchDown = 16, kMarchThreads = kMarchAcross * kMarchDown;

// The voxels along one axis that a brick's samples can read: its own and one more on each side.
struct Reach {
  int32_t from, to;

  __device__ Reach(int32_t brick, int32_t size) {
    constexpr int32_t kEdge = Bricks::kEdge;
    from = max(brick * kEdge - 1, 0);
    to = min((brick + 1) * kEdge + 1, size);
  }
  __device__ int32_t count() const { return to - from; }
};

// The greatest of all threads' numbers, for thread 0.
__device__ float greatest_of_block(float own) {
  __shared__ float of_warps[kSurveyThreads / 32];
  for (uint32_t apart = 16; apart > 0; apart /= 2) own = fmaxf(own, __shfl_down_sync(0xffffffffU, own, apart));
  __syncthreads(); // the call before has been read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x == 0)
    for (const float other : of_warps) own = fmaxf(own, other);
  return own;
}

// Finds the greatest voxel of each brick and writes the voxels to the texture, if the volume is new.
template <class Number>
__global__ void __launch_bounds__(kSurveyThreads) survey(Room room, RenderCall call) {
  if (is_known(call)) return;
  constexpr int32_t kEdge = Bricks::kEdge;
  const Voxels<Number> voxels = voxels_of<Number>(room, call);
  const auto count = static_cast<uint32_t>(room.across * room.down * room.deep);
  for (uint32_t brick = blockIdx.x; brick < count; brick += gridDim.x) {
    const auto place = static_cast<int32_t>(brick);
    const int32_t brick_x = place % room.across, brick_y = place / room.across % room.down;
    const int32_t brick_z = place / room.across / room.down;
    const Reach x_reach(brick_x, voxels.width), y_reach(brick_y, voxels.height), z_reach(brick_z, voxels.depth);
    const int32_t all = x_reach.count() * y_reach.count() * z_reach.count();
    float greatest = -3e38F;
    for (auto i = static_cast<int32_t>(threadIdx.x); i < all; i += static_cast<int32_t>(kSurveyThreads)) {
      const int32_t x = x_reach.from + i % x_reach.count(), row = i / x_reach.count();
      const int32_t y = y_reach.from + row % y_reach.count(), z = z_reach.from + row / y_reach.count();
      const Number voxel = voxels.data[(static_cast<int64_t>(z) * voxels.height + y) * voxels.width + x];
      greatest = fmaxf(greatest, static_cast<float>(voxel));
      if (x / kEdge == brick_x && y / kEdge == brick_y && z / kEdge == brick_z)
        surf3Dwrite(voxel, room.surface, x * static_cast<int32_t>(sizeof(Number)), y, z);
    }
    greatest = greatest_of_block(greatest);
    if (threadIdx.x == 0) room.greatest[brick] = greatest;
  }
}

__device__ bool is_name(const uint8_t (&field)[16], const Name& name) {
  for (int i = 0; i < 16; ++i) {
    if (field[i] != name.bytes[i]) return false;
    if (field[i] == 0) break;
  }
  return true;
}

// Finds the contrast of a new volume, and the histogram if there are controls; then the volume is known.
template <class Number>
__device__ void learn(const Room& room, const RenderCall& call) {
  __shared__ Selection selection;
  __shared__ uint32_t counts[ViewControl::kParts];
  const Voxels<Number> voxels = voxels_of<Number>(room, call);
  const Contrast found = contrast_of_plane(voxels, selection);
  if (threadIdx.x == 0) *room.contrast = found;
  if (call.controls) {
    count_levels_of_plane(voxels, found, room.histogram_low, room.histogram_high, counts);
    for (uint32_t i = threadIdx.x; i < ViewControl::kParts; i += kPrepareThreads) room.histogram[i] = counts[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    call.known->data = call.volume;
    call.known->pts_ns = call.volume_value->header.pts_ns;
  }
}

__device__ void give_controls(const Room& room, const RenderCall& call) {
  const auto* const from = reinterpret_cast<const uint32_t*>(room.offers);
  auto* const to = reinterpret_cast<uint32_t*>(call.controls);
  const uint32_t words = room.offer_count * static_cast<uint32_t>(sizeof(ViewControl) / 4);
  for (uint32_t i = threadIdx.x; i < words; i += kPrepareThreads) to[i] = from[i];
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < ViewControl::kParts; i += kPrepareThreads)
    call.controls[room.contrast_offer].histogram[i] = room.histogram[i];
  if (threadIdx.x == 0) *call.control_count = room.offer_count;
}

// Sets the sight, by one block.
template <class Number>
__global__ void __launch_bounds__(kPrepareThreads) prepare(Room room, RenderCall call) {
  __shared__ uint32_t mode, map;
  const bool is_new = !is_known(call);
  __syncthreads(); // all have asked before the answer changes
  if (is_new) learn<Number>(room, call);
  const bool has_camera = call.camera && call.camera_value->as.records.count > 0;
  const bool has_look = call.look && call.look_value->as.records.count > 0;
  if (threadIdx.x == 0) {
    mode = static_cast<uint32_t>(room.wanted.mode);
    map = room.colour_map;
  }
  __syncthreads();
  if (has_look && threadIdx.x < room.modes + room.maps) {
    const bool is_mode = threadIdx.x < room.modes;
    if (is_name(is_mode ? call.look->mode : call.look->map, room.names[threadIdx.x]))
      (is_mode ? mode : map) = threadIdx.x - (is_mode ? 0 : room.modes);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const ViewCamera camera = nearest_sound(has_camera ? *call.camera : ViewCamera());
    const ViewLook look = nearest_sound(has_look ? *call.look : ViewLook());
    Wanted wanted = room.wanted;
    wanted.mode = static_cast<Mode>(mode);
    if (look.iso > 0) wanted.iso = look.iso;
    set_sight(*room.sight, wanted, *room.contrast, room.texture.size(), camera, look);
  }
  for (uint32_t i = threadIdx.x; i < kMapBytes; i += kPrepareThreads)
    room.sight->shading.colours[i] = room.colours[map * kMapBytes + i];
  if (call.controls) give_controls(room, call);
}

__device__ uint8_t byte_of(float channel) { return static_cast<uint8_t>(lroundf(fminf(fmaxf(channel, 0.0F), 255.0F))); }

// A thread makes a pixel, or `coarse` × `coarse` of them.
__global__ void __launch_bounds__(kMarchThreads) march(Room room, uint8_t* picture, uint32_t stride) {
  static_assert(sizeof(Sight) % 4 == 0 && alignof(Sight) == 4);
  __shared__ uint32_t words[sizeof(Sight) / 4];
  const uint32_t coarse = room.sight->coarse, width = room.wanted.width, height = room.wanted.height;
  if (blockIdx.x * kMarchAcross * coarse >= width || blockIdx.y * kMarchDown * coarse >= height) return;
  for (uint32_t i = threadIdx.y * kMarchAcross + threadIdx.x; i < sizeof(Sight) / 4; i += kMarchThreads)
    words[i] = reinterpret_cast<const uint32_t*>(room.sight)[i];
  __syncthreads();
  const auto& sight = *reinterpret_cast<const Sight*>(words);
  const uint32_t x = (blockIdx.x * kMarchAcross + threadIdx.x) * coarse;
  const uint32_t y = (blockIdx.y * kMarchDown + threadIdx.y) * coarse;
  if (x >= width || y >= height) return;
  const Bricks bricks = {room.greatest, room.across, room.down, room.deep};
  const Colour colour = colour_at(room.texture, bricks, sight, x, y);
  const uint8_t red = byte_of(colour.red), green = byte_of(colour.green), blue = byte_of(colour.blue);
  for (uint32_t down = y; down < min(y + coarse, height); ++down) {
    uint8_t* const row = picture + static_cast<size_t>(down) * stride;
    for (uint32_t beside = x; beside < min(x + coarse, width); ++beside) {
      row[3 * beside] = red;
      row[3 * beside + 1] = green;
      row[3 * beside + 2] = blue;
    }
  }
}

int32_t bricks_along(int32_t voxels) { return (voxels + Bricks::kEdge - 1) / Bricks::kEdge; }
uint64_t voxel_bytes(VoxelType type) { return type == VoxelType::u8 ? 1 : type == VoxelType::u16 ? 2 : 4; }

template <class Number>
void enqueue_as(cudaStream_t stream, const Room& room, const RenderCall& call, uint32_t survey_blocks) {
  survey<Number><<<survey_blocks, kSurveyThreads, 0, stream>>>(room, call);
  check(cudaGetLastError(), "survey");
  prepare<Number><<<1, kPrepareThreads, 0, stream>>>(room, call);
  check(cudaGetLastError(), "prepare");
  const dim3 blocks((room.wanted.width + kMarchAcross - 1) / kMarchAcross,
                    (room.wanted.height + kMarchDown - 1) / kMarchDown);
  march<<<blocks, dim3(kMarchAcross, kMarchDown), 0, stream>>>(room, call.picture, call.stride);
  check(cudaGetLastError(), "march");
}

} // namespace

uint64_t device_bytes(const VolumeShape& shape) {
  const auto product = [](int32_t width, int32_t height, int32_t depth) {
    return static_cast<uint64_t>(width) * static_cast<uint64_t>(height) * static_cast<uint64_t>(depth);
  };
  constexpr uint64_t kTables = uint64_t{1} << 20;
  return product(shape.width, shape.height, shape.depth) * voxel_bytes(shape.type) +
         product(bricks_along(shape.width), bricks_along(shape.height), bricks_along(shape.depth)) * sizeof(float) +
         kTables;
}

struct RenderOnGpu::Parts {
  explicit Parts(const RenderSettings& settings) : texture(settings.shape) {
    const VolumeShape& shape = settings.shape;
    room.shape = shape;
    room.surface = texture.surface();
    const Vector size = {static_cast<float>(shape.width), static_cast<float>(shape.height),
                         static_cast<float>(shape.depth)};
    const float scale = shape.type == VoxelType::u8 ? 255.0F : shape.type == VoxelType::u16 ? 65535.0F : 1.0F;
    room.texture = {texture.texture(), scale, size, shape.type != VoxelType::f32};
    room.across = bricks_along(shape.width), room.down = bricks_along(shape.height),
    room.deep = bricks_along(shape.depth);
    room.greatest = memory.take<float>(bricks());
    room.contrast = memory.take<Contrast>(1);
    room.histogram = memory.take<uint32_t>(ViewControl::kParts);
    room.sight = memory.take<Sight>(1);
    room.wanted = settings.wanted;
    room.colour_map = static_cast<uint32_t>(place_of(settings.colour_map, kColourMaps));
    add_names();
    add_controls(settings.controls);
    survey_blocks = static_cast<uint32_t>(
        std::min<uint64_t>(uint64_t{kSurveyBlocks} * std::max(settings.multiprocessors, 1U), bricks()));
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); // the tables are there
  }

  size_t bricks() const {
    return static_cast<size_t>(room.across) * static_cast<size_t>(room.down) * static_cast<size_t>(room.deep);
  }
  void add_names() {
    std::vector<Name> names;
    std::vector<uint8_t> colours;
    for (const auto& list : {kModes, kColourMaps})
      for (const char* const text : list)
        std::memcpy(names.emplace_back(Name{}).bytes, text, std::min(std::strlen(text), sizeof(Name) - 1));
    for (const char* const map : kColourMaps) {
      const auto bytes = colour_map(map);
      colours.insert(colours.end(), bytes.begin(), bytes.end());
    }
    room.names = memory.take(names);
    room.colours = memory.take(colours);
    room.modes = static_cast<uint32_t>(kModes.size());
    room.maps = static_cast<uint32_t>(kColourMaps.size());
  }
  void add_controls(const std::vector<ViewControl>& controls) {
    if (controls.empty()) return;
    const auto contrast = std::find_if(controls.begin(), controls.end(), is_contrast);
    if (contrast == controls.end()) throw std::logic_error("the controls have no contrast");
    room.offers = memory.take(controls);
    room.offer_count = static_cast<uint32_t>(controls.size());
    room.contrast_offer = static_cast<uint32_t>(contrast - controls.begin());
    room.histogram_low = contrast->low;
    room.histogram_high = contrast->high;
  }

  VolumeTexture texture;
  Memory memory;
  Room room;
  uint32_t survey_blocks = 1;
};

RenderOnGpu::RenderOnGpu(const RenderSettings& settings) : parts_(std::make_unique<Parts>(settings)) {}
RenderOnGpu::~RenderOnGpu() = default;

void RenderOnGpu::enqueue(void* stream, const RenderCall& call) {
  const auto on = static_cast<cudaStream_t>(stream);
  switch (parts_->room.shape.type) {
    case VoxelType::u8: return enqueue_as<uint8_t>(on, parts_->room, call, parts_->survey_blocks);
    case VoxelType::u16: return enqueue_as<uint16_t>(on, parts_->room, call, parts_->survey_blocks);
    case VoxelType::f32: return enqueue_as<float>(on, parts_->room, call, parts_->survey_blocks);
  }
}

Contrast RenderOnGpu::contrast() const {
  Contrast found;
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaMemcpy(&found, parts_->room.contrast, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return found;
}

std::vector<float> RenderOnGpu::greatest() const {
  std::vector<float> found(parts_->bricks());
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaMemcpy(found.data(), parts_->room.greatest, found.size() * sizeof(float), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  return found;
}

} // namespace millrace::volume::gpu
