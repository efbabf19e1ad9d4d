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
#include "plugins/volume/painter.h"

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

    volume.test width=32 height=32 depth=32 ! volume.render name=turned width=64 height=48 ; turned.video ! null.sink
)"[1];

template <class Number>
Voxels<Number> voxels_of(const TensorView& volume) {
  const std::span<const int64_t> shape = volume.shape();
  return {volume.elements<Number>().data(), static_cast<int32_t>(shape[2]), static_cast<int32_t>(shape[1]),
          static_cast<int32_t>(shape[0])};
}

// Throws std::invalid_argument for a number that is not in its range, or none.
void require(const char* what, float number, float least, float most) {
  if (number >= least && number <= most) return;
  throw std::invalid_argument(std::string(what) + " is " + std::to_string(number) + ", and may be " +
                              std::to_string(least) + " to " + std::to_string(most));
}
void require(const ViewCamera& camera) {
  constexpr float kFarthest = 1e6F; // beyond it a picture's pixels are no longer apart
  for (const float place : camera.center) require("the camera's center", place, -kFarthest, kFarthest);
  for (const float angle : camera.angles) require("an angle of the camera", angle, -kFarthest, kFarthest);
  require("the camera's zoom", camera.zoom, 1e-4F, 1e4F);
  require("the camera's field of view", camera.field_of_view, 0, 170);
}
void require(const ViewLook& look) {
  constexpr float kMost = 1e6F;
  require("the look's low", look.low, -kMost, kMost);
  require("the look's high", look.high, -kMost, kMost);
  require("the look's gamma", look.gamma, 0.01F, 100);
  require("the look's opacity", look.opacity, 0, 1);
  require("the look's iso", look.iso, 0, 1);
  for (int axis = 0; axis < 3; ++axis) {
    require("the look's crop_low", look.crop_low[axis], 0, 1);
    require("the look's crop_high", look.crop_high[axis], look.crop_low[axis], 1);
  }
}

// The name in a look, or the parameter's if it has none. Throws std::invalid_argument for one that is not known.
std::string name_of(const char* what, const uint8_t (&bytes)[16], const std::string& parameter,
                    std::initializer_list<const char*> known) {
  const std::string name(std::begin(bytes), std::find(std::begin(bytes), std::end(bytes), uint8_t{0}));
  if (name.empty()) return parameter;
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  std::string names;
  for (const char* const one : known) names += (names.empty() ? "" : ", ") + std::string(one);
  throw std::invalid_argument(std::string(what) + " is \"" + name + "\", and may be " + names);
}

template <class Record>
bool alike(const Record& one, const Record& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

class RenderVolume final : public Handler {
 public:
  RenderVolume() { cost_hint_us(20'000); } // 128³ on 480 × 270

  void configure(const Formats& formats) override {
    const Format& in = formats.in(volume_);
    for (int axis = 0; axis < 3 && in.rank == 3; ++axis)
      if (in.shape_kind[axis] == MR_DIM_FIXED) check(in.shape[axis]);
    formats.image(video_, Pixel::rgb8, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
  }
  void start() override { crew_.emplace(static_cast<uint32_t>(std::max<int64_t>(*threads_, 1))); }
  void stop() override { crew_.reset(); }
  void reset() override {
    survey_ = {};
    picture_.clear();
  }

  void process(Tick& tick, Cpu&) {
    const TensorView volume = volume_(tick);
    for (const int64_t side : volume.shape()) check(side);
    const Seen seen = {volume.data(), volume.header().pts_ns, camera_of(tick), look_of(tick)};
    const bool is_known = !picture_.empty() && seen_.data == seen.data && seen_.pts_ns == seen.pts_ns;
    const ImageSpan to =
        video_.allocate(tick, Pixel::rgb8, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    require(seen.camera);
    require(seen.look);
    if (!is_known || !alike(seen.camera, seen_.camera) || !alike(seen.look, seen_.look)) {
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

 private:
  static constexpr int64_t kSideMax = 65536; // beyond it, places have no fraction of eight bits left

  // The last picture was made of these.
  struct Seen {
    const uint8_t* data = nullptr;
    int64_t pts_ns = 0;
    ViewCamera camera{};
    ViewLook look{};
  };

  static void check(int64_t side) {
    if (side < 1 || side > kSideMax)
      throw std::invalid_argument("a side of the volume has " + std::to_string(side) + " voxels, and may have 1 to " +
                                  std::to_string(kSideMax));
  }
  size_t row_bytes() const { return static_cast<size_t>(*width_) * 3; }
  ViewCamera camera_of(Tick& tick) const {
    if (!camera_.present(tick) || camera_(tick).size() == 0) return {};
    return camera_(tick).data()[0];
  }
  ViewLook look_of(Tick& tick) const {
    if (!look_.present(tick) || look_(tick).size() == 0) return {};
    return look_(tick).data()[0];
  }
  Settings settings_of(const ViewLook& look) const {
    const std::string mode = name_of("the look's mode", look.mode, *mode_, kModes);
    const auto place = std::find(kModes.begin(), kModes.end(), mode) - kModes.begin();
    return {static_cast<uint32_t>(*width_),  static_cast<uint32_t>(*height_),
            static_cast<Mode>(place),        name_of("the look's map", look.map, *map_, kColourMaps),
            look.iso > 0 ? look.iso : *iso_, *step_};
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
};

MILLRACE_HANDLER(RenderVolume, "volume.render", "Makes a picture of a volume", kRenderManual)

} // namespace
} // namespace millrace::volume
