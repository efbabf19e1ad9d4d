// Pictures of a volume that turns: device time of a captured picture, beside a plain kernel on the same GPU.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#include "bench.h"
#include "plugins/volume/test_scene.h"
#include "tests/volume/on_gpu_volume.h"

namespace millrace::test {
namespace {

using namespace volume;

constexpr int kPictures = 150;
constexpr int32_t kSide = 512;

// A person would write this first: a texture, a sample for each voxel of the way, nothing passed over.
struct PlainTexture {
  cudaTextureObject_t object;

  __device__ float value(Vector p) const { return 255 * tex3D<float>(object, p.x, p.y, p.z); }
};

template <Mode kMode>
__device__ Colour plain_colour(const PlainTexture& voxels, const Shading& shading, const Ray& ray, Span span) {
  Colour sum;
  float left = 1, most = 0, total = 0, count = 0;
  for (float at = span.begin + 0.5F * shading.step; at < span.end; at += shading.step) {
    const float value = voxels.value(ray.origin + ray.direction * at);
    if constexpr (kMode == Mode::maximum) most = fmaxf(most, value);
    if constexpr (kMode == Mode::average) total += value, count += 1;
    if constexpr (kMode == Mode::translucent) {
      const float level = shading.level(value), part = left * shading.opacity * level;
      const Colour colour = colour_of(shading, level);
      sum = {sum.red + part * colour.red, sum.green + part * colour.green, sum.blue + part * colour.blue};
      left -= part;
    }
    if constexpr (kMode == Mode::iso) {
      if (shading.level(value) < shading.iso) continue;
      const float light = light_at(voxels, ray, crossing(voxels, shading, ray, at - shading.step, at));
      const Colour colour = colour_of(shading, 1);
      return {colour.red * light, colour.green * light, colour.blue * light};
    }
  }
  if constexpr (kMode == Mode::maximum) return colour_of(shading, shading.level(most));
  if constexpr (kMode == Mode::average) return colour_of(shading, count > 0 ? shading.level(total / count) : 0);
  return sum;
}

template <Mode kMode>
__global__ void plain(PlainTexture voxels, const Sight* from, uint8_t* picture) {
  const Sight& sight = *from;
  const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= sight.width || y >= sight.height) return;
  const Ray ray = sight.rays.through(static_cast<float>(x) + 0.5F, static_cast<float>(y) + 0.5F);
  const Span span = span_in(ray, sight.crop.low, sight.crop.high);
  const Colour colour = span.begin < span.end ? plain_colour<kMode>(voxels, sight.shading, ray, span) : Colour();
  uint8_t* const to = picture + 3 * (static_cast<size_t>(y) * sight.width + x);
  to[0] = static_cast<uint8_t>(fminf(colour.red, 255) + 0.5F);
  to[1] = static_cast<uint8_t>(fminf(colour.green, 255) + 0.5F);
  to[2] = static_cast<uint8_t>(fminf(colour.blue, 255) + 0.5F);
}

class PlainPainter {
 public:
  explicit PlainPainter(const std::vector<uint8_t>& volume) : sight_(Sight()) {
    const cudaChannelFormatDesc voxel = cudaCreateChannelDesc<unsigned char>();
    const cudaExtent extent = {kSide, kSide, kSide};
    checked(cudaMalloc3DArray(&array_, &voxel, extent), "cudaMalloc3DArray");
    cudaMemcpy3DParms copy{};
    copy.srcPtr = make_cudaPitchedPtr(const_cast<uint8_t*>(volume.data()), kSide, kSide, kSide);
    copy.dstArray = array_;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    checked(cudaMemcpy3D(&copy), "cudaMemcpy3D");
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array_;
    cudaTextureDesc how{};
    std::fill(std::begin(how.addressMode), std::end(how.addressMode), cudaAddressModeClamp);
    how.filterMode = cudaFilterModeLinear;
    how.readMode = cudaReadModeNormalizedFloat;
    checked(cudaCreateTextureObject(&texture_.object, &resource, &how, nullptr), "cudaCreateTextureObject");
  }
  ~PlainPainter() {
    cudaDestroyTextureObject(texture_.object);
    cudaFreeArray(array_);
  }
  PlainPainter(const PlainPainter&) = delete;
  PlainPainter& operator=(const PlainPainter&) = delete;

  void look(const Sight& sight) { sight_.set(sight); }
  void enqueue(cudaStream_t stream, const Settings& with, uint8_t* picture) const {
    const dim3 threads(16, 16), blocks((with.width + 15) / 16, (with.height + 15) / 16);
    switch (with.mode) {
      case Mode::maximum: plain<Mode::maximum><<<blocks, threads, 0, stream>>>(texture_, sight_.get(), picture); break;
      case Mode::translucent:
        plain<Mode::translucent><<<blocks, threads, 0, stream>>>(texture_, sight_.get(), picture);
        break;
      case Mode::average: plain<Mode::average><<<blocks, threads, 0, stream>>>(texture_, sight_.get(), picture); break;
      case Mode::iso: plain<Mode::iso><<<blocks, threads, 0, stream>>>(texture_, sight_.get(), picture); break;
    }
    checked(cudaGetLastError(), "plain");
  }

 private:
  cudaArray_t array_ = nullptr;
  PlainTexture texture_{};
  GpuValue<Sight> sight_;
};

struct Times {
  std::vector<double> all; // ms

  double part(double of) {
    std::sort(all.begin(), all.end());
    return all[static_cast<size_t>(of * static_cast<double>(all.size() - 1))];
  }
};

class Watch {
 public:
  Watch() {
    for (cudaEvent_t& event : events_) checked(cudaEventCreate(&event), "cudaEventCreate");
  }
  ~Watch() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  double ms_of(cudaStream_t stream, const std::function<void()>& enqueue) {
    float ms = 0;
    checked(cudaEventRecord(events_[0], stream), "cudaEventRecord");
    enqueue();
    checked(cudaEventRecord(events_[1], stream), "cudaEventRecord");
    checked(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
    checked(cudaEventElapsedTime(&ms, events_[0], events_[1]), "cudaEventElapsedTime");
    return double{ms};
  }

 private:
  cudaEvent_t events_[2] = {};
};

ViewCamera camera_at(int n, float zoom, bool moving) {
  ViewCamera camera;
  camera.angles[0] = static_cast<float>(n) * 360 / kPictures;
  camera.angles[1] = 20;
  camera.zoom = zoom;
  camera.moving = moving ? 1 : 0;
  return camera;
}

void time_pictures(const std::vector<uint8_t>& volume, PlainPainter& rival, uint32_t width, uint32_t height, float zoom,
                   Mode mode, const char* name) {
  const Settings with = {width, height, mode, "fire", 0.5F, 1.0F};
  const Voxels<uint8_t> voxels = {volume.data(), kSide, kSide, kSide};
  cudaDeviceProp device{};
  checked(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  PictureRig rig(voxels, with, static_cast<uint32_t>(device.multiProcessorCount));
  rig.capture();
  const GpuBytes to(size_t{width} * height * 3);
  Watch watch;
  const auto launch = [&] { checked(cudaGraphLaunch(rig.exec(), rig.stream()), "cudaGraphLaunch"); };
  watch.ms_of(rig.stream(), launch); // loads what the driver has not loaded yet
  rig.replace(voxels, 1);
  const double first = watch.ms_of(rig.stream(), launch);
  Times still, moving, plain;
  for (int n = -2; n < kPictures; ++n) {
    rig.look_from(camera_at(n, zoom, true), {});
    const double coarse = watch.ms_of(rig.stream(), launch);
    rig.look_from(camera_at(n, zoom, false), {});
    const double fine = watch.ms_of(rig.stream(), launch);
    rival.look(sight_of(with, rig.on_gpu().contrast(), voxels.size(), camera_at(n, zoom, false), {}));
    const double theirs = watch.ms_of(rig.stream(), [&] { rival.enqueue(rig.stream(), with, to.data()); });
    if (n < 0) continue;
    moving.all.push_back(coarse);
    still.all.push_back(fine);
    plain.all.push_back(theirs);
  }
  row("| %u × %u, zoom %g, %s | %.3f / %.3f | %.3f / %.3f | %.3f / %.3f | %.1f | %.2f |", width, height, double{zoom},
      name, still.part(0.5), still.part(0.99), moving.part(0.5), moving.part(0.99), plain.part(0.5), plain.part(0.99),
      plain.part(0.5) / still.part(0.5), first);
}

} // namespace

void bench_volume() {
  checked(cudaSetDevice(0), "cudaSetDevice");
  std::vector<uint8_t> volume(size_t{kSide} * kSide * kSide);
  TestScene(volume, {kSide, kSide, kSide}, 1);
  PlainPainter rival(volume);
  row("\n### volume: pictures of volume.test, 512³ of 8 bits, that turns; captured, ms; p50 / p99 of %d\n", kPictures);
  row("%s", "| picture | ours | ours, moving | plain kernel | plain over ours | with a new volume |");
  row("%s", "|---|---|---|---|---|---|");
  constexpr struct {
    Mode mode;
    const char* name;
  } kModesHere[] = {
      {Mode::translucent, "translucent"}, {Mode::maximum, "maximum"}, {Mode::average, "average"}, {Mode::iso, "iso"}};
  time_pictures(volume, rival, 8, 8, 1, Mode::maximum, "maximum: the cost of a launch");
  for (const float zoom : {1.0F, 2.0F})
    for (const uint32_t height : {1080U, 2160U})
      for (const auto& each : kModesHere)
        time_pictures(volume, rival, height * 16 / 9, height, zoom, each.mode, each.name);
}

} // namespace millrace::test
