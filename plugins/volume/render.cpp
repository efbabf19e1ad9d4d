// volume.render: a picture of a volume, as a camera sees it.
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "millrace/handler.h"
#include "plugins/volume/colour_maps.h"
#include "plugins/volume/controls.h"
#include "plugins/volume/gpu/render_on_gpu.h"
#include "plugins/volume/make_control.h"
#include "plugins/volume/painter.h"
#include "plugins/volume/wishes.h"

namespace millrace::volume {
namespace {

constexpr const char* kRenderManual = &R"(
Looks at a volume, [depth, height, width] voxels, from where `camera` says, and makes a picture of it.
Without a camera the whole volume is seen from its front. At zoom 1 it fits the picture however it is
turned; the camera's other pixels are as large as at zoom 1. A field of view of 0 has no perspective.

`mode` is what a ray shows: the greatest value on its way (`maximum`), the mean (`average`), all of it
as a coloured fog that hides what is farther away (`translucent`), or the first place where the level
reaches `iso`, lit from the eye (`iso`). Values become levels from 0 to 1 by a contrast, and levels
become colours by `map`. The first contrast is from the 0.5th to the 99.5th percentile of the middle
plane. `look` moves it: its `low` and `high` are parts of the first contrast, 0 and 1. Its `mode`, `map`
and `iso` stand in for the parameters, and its crop is the part of the volume that is shown.

While the camera's `moving` is set, every second pixel of every second row is computed. A tick with
the same volume, camera and look repeats the picture that was made. Give the inputs `policy: latest`,
so that a volume that came once stays.

`controls` has what a person may choose of all this, for the page of a view.remote. They come when a
volume comes.

On a GPU the size of the volume must be known before the run, and no side may have more than 16384
voxels. Each tick makes its picture and gives `controls`. A number of a camera or a look that is out of
its range is taken as the nearest one within, and a name that is not known as the parameter's.

    volume.test width=32 height=32 depth=32 ! volume.render name=turned width=64 height=48 ; turned.video ! null.sink
)"[1];

class RenderVolume final : public Handler {
 public:
  RenderVolume() {
    cost_hint_us(20'000); // 128³ on 480 × 270
    capturable();
  }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(volume_);
    require_sides(in);
#ifdef VOLUME_CUDA
    shape_ = shape_of(in);
    if (shape_) takes_device_memory(gpu::device_bytes(*shape_));
#endif
    formats.image(video_, Pixel::rgb8, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
  }
  void start(const DeviceInfo& device) override {
    if (device.kind == DeviceKind::cuda) return start_on_gpu(device);
    crew_.emplace(static_cast<uint32_t>(std::max<int64_t>(*threads_, 1)));
  }
  void stop() override {
    crew_.reset();
#ifdef VOLUME_CUDA
    on_gpu_.reset();
#endif
  }
  void reset() override {
    survey_ = {};
    picture_.clear();
  }

  void process(Tick& tick, Cpu&) {
    const TensorView volume = volume_(tick);
    for (const int64_t side : volume.shape()) require_side(side);
    const Seen seen = {volume.data(), volume.header().pts_ns, record_of(camera_, tick), record_of(look_, tick)};
    const bool is_known = !picture_.empty() && seen_.data == seen.data && seen_.pts_ns == seen.pts_ns;
    const ImageSpan to =
        video_.allocate(tick, Pixel::rgb8, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    require_sound(seen.camera);
    require_sound(seen.look);
    if (!is_known || !is_equal(seen.camera, seen_.camera) || !is_equal(seen.look, seen_.look)) {
      picture_.resize(row_bytes() * static_cast<size_t>(*height_));
      if (volume.dtype() == dtype_of<uint8_t>())
        paint_as<uint8_t>(tick, volume, is_known, seen);
      else if (volume.dtype() == dtype_of<uint16_t>())
        paint_as<uint16_t>(tick, volume, is_known, seen);
      else
        paint_as<float>(tick, volume, is_known, seen);
      seen_ = seen;
    }
    for (uint32_t y = 0; y < to.height(); ++y) std::memcpy(to.row(y), picture_.data() + y * row_bytes(), row_bytes());
  }

#ifdef VOLUME_CUDA
  void process(Tick& tick, Cuda& cuda) {
    const TensorView volume = volume_(tick);
    const std::span<const int64_t> shape = volume.shape();
    if (shape[2] != shape_->width || shape[1] != shape_->height || shape[0] != shape_->depth)
      throw std::invalid_argument("the volume has another size than the pipeline's plan says");
    gpu::RenderCall call;
    call.volume = volume.data();
    call.volume_value = cuda.value_of(volume_.raw(tick));
    if (camera_.present(tick)) {
      call.camera = camera_(tick).data();
      call.camera_value = cuda.value_of(camera_.raw(tick));
    }
    if (look_.present(tick)) {
      call.look = look_(tick).data();
      call.look_value = cuda.value_of(look_.raw(tick));
    }
    call.known = known_(tick).data();
    const ImageSpan to =
        video_.allocate(tick, Pixel::rgb8, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    call.picture = to.data();
    call.stride = to.stride();
    if (controls_.connected()) {
      call.controls = controls_.allocate(tick, kControlsOffered).data();
      call.control_count = Cuda::count_of(controls_.raw(tick));
    }
    on_gpu_->enqueue(cuda.stream(), call);
  }
#endif

 private:
  static void require_sound(const ViewCamera& camera) {
    for (const float place : camera.center) require("the camera's center", place, place_limits());
    for (const float angle : camera.angles) require("an angle of the camera", angle, place_limits());
    require("the camera's zoom", camera.zoom, zoom_limits());
    require("the camera's field of view", camera.field_of_view, view_limits());
  }
  static void require_sound(const ViewLook& look) {
    require("the look's low", look.low, contrast_limits());
    require("the look's high", look.high, contrast_limits());
    require("the look's gamma", look.gamma, gamma_limits());
    require("the look's opacity", look.opacity, part_limits());
    require("the look's iso", look.iso, part_limits());
    for (int axis = 0; axis < 3; ++axis) {
      require("the look's crop_low", look.crop_low[axis], part_limits());
      require("the look's crop_high", look.crop_high[axis], Limits{look.crop_low[axis], 1});
    }
  }

  // The last picture was made of these.
  struct Seen {
    const uint8_t* data = nullptr;
    int64_t pts_ns = 0;
    ViewCamera camera{};
    ViewLook look{};
  };

#ifdef VOLUME_CUDA
  // None if it is not known before the run, or a side has more voxels than a texture.
  static std::optional<gpu::VolumeShape> shape_of(const Format& volume) {
    if (volume.rank != 3) return std::nullopt;
    for (int axis = 0; axis < 3; ++axis)
      if (volume.shape_kind[axis] != MR_DIM_FIXED || volume.shape[axis] > gpu::kSideMax) return std::nullopt;
    const auto is_of = [&](DType type) { return volume.dtype_code == type.code && volume.dtype_bits == type.bits; };
    const auto side = [&](int axis) { return static_cast<int32_t>(volume.shape[axis]); };
    gpu::VolumeShape shape = {gpu::VoxelType::f32, side(2), side(1), side(0)};
    if (is_of(dtype_of<uint8_t>()))
      shape.type = gpu::VoxelType::u8;
    else if (is_of(dtype_of<uint16_t>()))
      shape.type = gpu::VoxelType::u16;
    else if (!is_of(dtype_of<float>()))
      return std::nullopt;
    return shape;
  }
  void start_on_gpu(const DeviceInfo& device) {
    if (!shape_)
      throw std::invalid_argument(
          "on a GPU the size and the type of the volume must be known before the run, and no "
          "side may have more than " +
          std::to_string(gpu::kSideMax) + " voxels\ntry: device: cpu");
    const Settings settings = settings_of({});
    on_gpu_.emplace(gpu::RenderSettings{*shape_, wanted_of(settings), *map_, device.multiprocessors,
                                        controls_of(*mode_, *map_, *iso_)});
  }
#else
  void start_on_gpu(const DeviceInfo&) {} // there is no body for it
#endif
  size_t row_bytes() const { return static_cast<size_t>(*width_) * 3; }
  Settings settings_of(const ViewLook& look) const {
    const std::string mode = chosen("the look's mode", text_of(look.mode), *mode_, kModes);
    return {static_cast<uint32_t>(*width_),
            static_cast<uint32_t>(*height_),
            static_cast<Mode>(place_of(mode, kModes)),
            chosen("the look's map", text_of(look.map), *map_, kColourMaps),
            look.iso > 0 ? look.iso : *iso_,
            *step_};
  }
  template <class Number>
  void paint_as(Tick& tick, const TensorView& volume, bool is_known, const Seen& seen) {
    const Settings settings = settings_of(seen.look);
    const Voxels<Number> voxels = voxels_of<Number>(volume);
    if (!is_known || !std::holds_alternative<Survey<Number>>(survey_)) survey_.emplace<Survey<Number>>(voxels, *crew_);
    const auto& survey = std::get<Survey<Number>>(survey_);
    if (!is_known && controls_.connected()) {
      std::vector<ViewControl> controls = controls_of(*mode_, *map_, *iso_);
      for (ViewControl& control : controls)
        if (is_contrast(control)) count_levels(voxels, survey.contrast(), control.low, control.high, control.histogram);
      std::ranges::copy(controls, controls_.allocate(tick, controls.size()).begin());
    }
    paint(voxels, survey.bricks(), sight_of(settings, survey.contrast(), voxels.size(), seen.camera, seen.look),
          picture_.data(), row_bytes(), *crew_);
  }

  Input<Tensor> volume_{*this, "volume", dtypes<uint8_t, uint16_t, float>(), rank(3), help("[depth, height, width]")};
  Input<Records<ViewCamera>> camera_{*this, "camera", optional, help("from where it is looked at")};
  Input<Records<ViewLook>> look_{*this, "look", optional, help("how values become colours")};
  Output<Image> video_{*this, "video", pixels({Pixel::rgb8})};
  Output<Records<ViewControl>> controls_{*this, "controls", count_max(kControlsOffered),
                                         help("what a person may choose")};
  Param<int64_t> width_{*this, "width", 480, "of the picture", range(1, 16384), unit("px")};
  Param<int64_t> height_{*this, "height", 270, "of the picture", range(1, 16384), unit("px")};
  Param<std::string> mode_{*this, "mode", "translucent", "what a ray shows", choices(kModes)};
  Param<std::string> map_{*this, "map", "fire", "from levels to colours", choices(kColourMaps)};
  Param<float> iso_{*this, "iso", 0.5F, "the level of the surface", range(0.001, 1)};
  Param<float> step_{*this, "step", 1.0F, "voxels from one sample of a ray to the next", range(0.1, 16)};
  Param<int64_t> threads_{*this,          "threads",     0, "make one picture; 0: a share of the run's",
                          range(0, 1024), counts_threads};
  std::optional<Crew> crew_;
  std::variant<std::monostate, Survey<uint8_t>, Survey<uint16_t>, Survey<float>> survey_;
  std::vector<uint8_t> picture_;
  Seen seen_;
  State<gpu::Known> known_{*this}; // the GPU body's
#ifdef VOLUME_CUDA
  std::optional<gpu::VolumeShape> shape_;
  std::optional<gpu::RenderOnGpu> on_gpu_; // while the GPU body runs
#endif
};

MILLRACE_HANDLER(RenderVolume, "volume.render", "Makes a picture of a volume", kRenderManual)

} // namespace
} // namespace millrace::volume
