// volume.slice: a picture of a plane of a volume.
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "millrace/handler.h"
#include "plugins/volume/colour_maps.h"
#include "plugins/volume/contrast.h"
#include "plugins/volume/plane_levels.h"
#include "plugins/volume/plane_pyramid.h"
#include "plugins/volume/slab.h"
#include "plugins/volume/slice_controls.h"
#include "plugins/volume/slice_painter.h"
#include "plugins/volume/wishes.h"

namespace millrace::volume {
namespace {

constexpr const char* kSliceManual = &R"(
Cuts a plane out of a volume, [depth, height, width] voxels, and makes a picture of it. `axis` is the
one across which the plane lies, `position` the place on it. The columns and rows of the picture are
the two other axes, x before y before z. With a `thickness` a pixel shows the mean, the maximum or the
minimum of so many planes around the position.

Without a `camera` the whole plane fits the picture. A camera moves it by its center, enlarges it by
its zoom and turns it by its roll. `look` moves the contrast: its `low` and `high` are parts of the
first contrast, which is from the 0.5th to the 99.5th percentile of the middle plane across z. A map
in `look`, and an axis or a step in `dims`, take precedence over the parameters.

A plane with more pixels than the picture is shown from a coarser level, on which every four pixels
are one. Levels are computed by chunks, for what is seen alone, and chunks are kept in `cache` until
the plane changes. `level` of `dims` asks for a level. Where the region that is seen has more than
`region` bytes, a coarser level is shown.

`controls` has what a person may choose, for the page of a view.remote: once, and when the plane
changes. Give the inputs `policy: latest`, so that a volume that came once stays.

    volume.test width=32 height=32 depth=32 ! volume.slice name=cut width=64 height=48 ; cut.video ! null.sink
)"[1];

constexpr std::initializer_list<const char*> kAxes = {"z", "y", "x"};                          // as in Axis
constexpr std::initializer_list<const char*> kProjections = {"mean", "maximum", "minimum"};    // as in Projection
constexpr std::initializer_list<const char*> kInterpolations = {"nearest", "linear", "cubic"}; // as in Interpolation
constexpr uint64_t kMiB = uint64_t{1} << 20;

template <class Choice>
Choice choice_of(const std::string& name, std::initializer_list<const char*> names) {
  return static_cast<Choice>(std::find(names.begin(), names.end(), name) - names.begin());
}

// Some of the plane's values: those of whole rows, as many as a histogram needs.
template <class Element>
std::vector<float> some_values(const PlaneSource<Element>& plane) {
  constexpr int64_t kEnough = 1 << 18;
  const int64_t area = int64_t{plane.size.width} * plane.size.height;
  const auto step = static_cast<int32_t>(std::min<int64_t>(area / kEnough + 1, plane.size.height));
  std::vector<float> values;
  std::vector<Element> row(static_cast<size_t>(plane.size.width));
  for (int32_t y = step / 2; y < plane.size.height; y += step) {
    plane.read({0, y, plane.size.width, y + 1}, row.data());
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

class SliceVolume final : public Handler {
 public:
  SliceVolume() { cost_hint_us(5000); } // 1080p of a plane of 16 bits

  void configure(const Formats& formats) override {
    const Format& in = formats.in(volume_);
    require_sides(in);
    formats.image(video_, Pixel::rgb8, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    takes_host_memory(memory_for(in));
  }
  void start() override {
    crew_.emplace(static_cast<uint32_t>(std::max<int64_t>(*threads_, 1)));
    chooser_.emplace(ChunkGrid{}, static_cast<uint64_t>(*region_) * kMiB);
  }
  void stop() override {
    crew_.reset();
    chooser_.reset();
  }
  void reset() override {
    volume_seen_.reset();
    drawn_.reset();
    if (chooser_) chooser_->reset();
  }

  void process(Tick& tick, Cpu&) {
    const TensorView volume = volume_(tick);
    for (const int64_t side : volume.shape()) require_side(side);
    const ImageSpan to =
        video_.allocate(tick, Pixel::rgb8, static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    if (volume.dtype() == dtype_of<uint8_t>())
      show<uint8_t>(tick, volume);
    else if (volume.dtype() == dtype_of<uint16_t>())
      show<uint16_t>(tick, volume);
    else
      show<float>(tick, volume);
    for (uint32_t y = 0; y < to.height(); ++y) std::memcpy(to.row(y), picture_.data() + y * row_bytes(), row_bytes());
  }

 private:
  // Only the numbers that a slice reads: no angles but the roll.
  static void require_sound(const ViewCamera& camera) {
    for (const int axis : {0, 1}) require("the camera's center", camera.center[axis], place_limits());
    require("the camera's roll", camera.angles[2], place_limits());
    require("the camera's zoom", camera.zoom, zoom_limits());
  }
  static void require_sound(const ViewLook& look) {
    require("the look's low", look.low, contrast_limits());
    require("the look's high", look.high, contrast_limits());
    require("the look's gamma", look.gamma, gamma_limits());
  }

  struct VolumeSeen {
    const uint8_t* data;
    int64_t pts_ns;
    int64_t shape[3];
    friend bool operator==(const VolumeSeen&, const VolumeSeen&) = default;
  };
  // The last picture was made of these, and of the plane.
  struct Drawn {
    ViewCamera camera;
    ViewLook look;
    int32_t level;
    Region region;
  };

  // Chunks, the region that is shown and its new chunks, and the picture. A plane has a third more on all its levels.
  uint64_t memory_for(const Format& in) const {
    uint64_t plane = uint64_t{1} << 40; // its size is unknown
    const bool is_known = in.rank == 3 && std::all_of(in.shape_kind, in.shape_kind + 3,
                                                      [](uint32_t kind) { return kind == MR_DIM_FIXED; });
    if (is_known) {
      const auto side = [&](int axis) { return static_cast<uint64_t>(in.shape[axis]); };
      plane = std::max({side(0) * side(1), side(1) * side(2), side(0) * side(2)}) * sizeof(float);
    }
    return std::min(static_cast<uint64_t>(*cache_) * kMiB, plane * 4 / 3) +
           2 * std::min(static_cast<uint64_t>(*region_) * kMiB, plane) + row_bytes() * static_cast<uint64_t>(*height_);
  }
  size_t row_bytes() const { return static_cast<size_t>(*width_) * 3; }
  // A place beyond the last plane is the last plane, as another volume may have fewer.
  Cut cut_of(const ViewDims& dims, std::span<const int64_t> shape) const {
    const auto axis = dims.axis < 0 ? choice_of<Axis>(*axis_, kAxes) : static_cast<Axis>(std::min(dims.axis, 2));
    const auto at = static_cast<size_t>(axis);
    const auto planes = static_cast<int32_t>(shape[at]);
    const bool is_as_parameter = axis == choice_of<Axis>(*axis_, kAxes) && *position_ >= 0;
    int64_t position = is_as_parameter ? *position_ : planes / 2;
    if (dims.steps[at] >= 0) position = dims.steps[at];
    return {axis, static_cast<int32_t>(std::min<int64_t>(position, planes - 1)), static_cast<int32_t>(*thickness_),
            choice_of<Projection>(*projection_, kProjections)};
  }

  template <class Number>
  void show(Tick& tick, const TensorView& volume) {
    const ViewCamera camera = record_of(camera_, tick);
    const ViewLook look = record_of(look_, tick);
    const ViewDims dims = record_of(dims_, tick);
    require_sound(camera);
    require_sound(look);
    const std::string map = chosen("the look's map", text_of(look.map), *map_, kColourMaps);
    const Cut cut = cut_of(dims, volume.shape());
    const std::span<const int64_t> shape = volume.shape();
    const VolumeSeen seen = {volume.data(), volume.header().pts_ns, {shape[0], shape[1], shape[2]}};
    const Voxels<Number> voxels = voxels_of<Number>(volume);
    const bool is_new = volume_seen_ != seen;
    if (is_new || cut_ != cut) {
      volume_seen_.reset(); // until the plane is there
      drawn_.reset();
      if (is_new) survey(voxels);
      cut_ = cut;
      const Slab<Number> slab = slab_of(voxels, cut);
      if (slab.count > 1 && cut.projection == Projection::mean)
        begin<Number, float>(tick, slab);
      else
        begin<Number, Number>(tick, slab);
      volume_seen_ = seen;
    }
    std::visit([&](auto& pyramid) { draw(tick, pyramid, camera, look, map, dims.level); }, pyramid_);
  }

  template <class Number>
  void survey(const Voxels<Number>& voxels) {
    std::vector<float> samples = samples_of_middle_plane(voxels);
    contrast_ = first_contrast(samples);
    const auto [least, greatest] = std::minmax_element(samples.begin(), samples.end());
    least_ = samples.empty() ? contrast_.low : *least;
    greatest_ = samples.empty() ? contrast_.high : *greatest;
  }

  template <class Number, class Element>
  void begin(Tick& tick, const Slab<Number>& slab) {
    PlaneSource<Element> source;
    source.size = slab.size;
    if constexpr (std::is_same_v<Number, Element>)
      if (slab.is_plain()) source.data = slab.first, source.stride = slab.to_below;
    source.read = [slab, projection = cut_.projection](const Region& region, Element* to) {
      volume::read(slab, projection, region, to);
    };
    if (plane_ != slab.size) chooser_->reset();
    plane_ = slab.size;
    if (controls_.connected()) offer(tick, source);
    if (!std::holds_alternative<PlanePyramid<Element>>(pyramid_))
      pyramid_.emplace<PlanePyramid<Element>>(static_cast<uint64_t>(*cache_) * kMiB);
    std::get<PlanePyramid<Element>>(pyramid_).begin(std::move(source));
  }

  template <class Element>
  void offer(Tick& tick, const PlaneSource<Element>& plane) {
    const auto planes = static_cast<int32_t>(volume_(tick).shape()[static_cast<size_t>(cut_.axis)]);
    const std::vector<ViewControl> made =
        slice_controls({cut_.axis, cut_.position, planes, contrast_, least_, greatest_, *map_}, some_values(plane));
    const auto to = controls_.allocate(tick, made.size());
    std::copy(made.begin(), made.end(), to.begin());
  }

  void draw(Tick&, std::monostate, const ViewCamera&, const ViewLook&, const std::string&, int32_t) {}
  template <class Element>
  void draw(Tick& tick, PlanePyramid<Element>& pyramid, const ViewCamera& camera, const ViewLook& look,
            const std::string& map, int32_t level) {
    const auto width = static_cast<uint32_t>(*width_), height = static_cast<uint32_t>(*height_);
    const SliceView view(camera, width, height, plane_);
    const auto choice = chooser_->choose(
        {plane_, view.corners(), view.pixels(), camera.zoom, tick.media_time_ns(), level, sizeof(Element)});
    const Drawn now = {camera, look, choice.level, choice.region};
    if (drawn_ && is_equal(now, *drawn_)) return;
    drawn_.reset(); // until all of it is
    picture_.resize(row_bytes() * height);
    if (choice.is_seen)
      paint_slice(pyramid.part(choice.level, choice.region, *crew_), choice.level, view,
                  choice_of<Interpolation>(*interpolation_, kInterpolations), Tone(contrast_, look, map),
                  picture_.data(), row_bytes(), *crew_);
    else
      std::fill(picture_.begin(), picture_.end(), uint8_t{0});
    drawn_ = now;
  }

  Input<Tensor> volume_{*this, "volume", dtypes<uint8_t, uint16_t, float>(), rank(3), help("[depth, height, width]")};
  Input<Records<ViewCamera>> camera_{*this, "camera", optional, help("which part of the plane is seen")};
  Input<Records<ViewLook>> look_{*this, "look", optional, help("how values become colours")};
  Input<Records<ViewDims>> dims_{*this, "dims", optional, help("which plane is seen, and how finely")};
  Output<Image> video_{*this, "video", pixels({Pixel::rgb8})};
  Output<Records<ViewControl>> controls_{*this, "controls", count_max(kSliceControls), help("what may be chosen")};
  Param<std::string> axis_{*this, "axis", "z", "the plane lies across it", choices(kAxes)};
  Param<int64_t> position_{*this, "position", -1, "place of the plane on the axis; -1: its middle",
                           range(-1, kSideMax - 1)};
  Param<int64_t> thickness_{*this, "thickness", 1, "planes that a pixel shows together", range(1, kSideMax)};
  Param<std::string> projection_{*this, "projection", "mean", "what several planes show", choices(kProjections)};
  Param<std::string> interpolation_{*this, "interpolation", "linear", "values between pixels",
                                    choices(kInterpolations)};
  Param<std::string> map_{*this, "map", "gray", "from levels to colours", choices(kColourMaps)};
  Param<int64_t> width_{*this, "width", 480, "of the picture", range(1, 16384), unit("px")};
  Param<int64_t> height_{*this, "height", 270, "of the picture", range(1, 16384), unit("px")};
  Param<int64_t> cache_{*this, "cache", 256, "chunks of levels that are kept", range(0, 1 << 20), unit("MiB")};
  Param<int64_t> region_{*this, "region", 64, "what is read of a level at most", range(1, 1 << 20), unit("MiB")};
  Param<int64_t> threads_{*this,          "threads",     0, "make one picture; 0: a share of the run's",
                          range(0, 1024), counts_threads};

  std::optional<Crew> crew_; // these two from start to stop
  std::optional<LevelChooser> chooser_;
  std::optional<VolumeSeen> volume_seen_;
  Contrast contrast_; // the volume's first one
  float least_ = 0, greatest_ = 1;
  Cut cut_;
  PlaneSize plane_;
  std::variant<std::monostate, PlanePyramid<uint8_t>, PlanePyramid<uint16_t>, PlanePyramid<float>> pyramid_;
  std::vector<uint8_t> picture_;
  std::optional<Drawn> drawn_;
};

MILLRACE_HANDLER(SliceVolume, "volume.slice", "Makes a picture of a plane of a volume", kSliceManual)

} // namespace
} // namespace millrace::volume
