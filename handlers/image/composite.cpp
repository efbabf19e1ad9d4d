// image.composite: makes one picture of several.
#include <millrace/handler.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "handlers/draw/raster.h"
#include "handlers/gpu/layer_kernels.h"
#include "handlers/image/compose.h"
#include "handlers/image/picture.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {
namespace {

constexpr const char* kCompositeManual = &R"(
Makes one picture of up to 64: its input takes a list. The first layer is at the bottom. `layout`
says where the layers go:

    grid     side by side in rows of `columns` (0: as many as make it square), `gap` apart
    row      all beside each other
    column   all below each other
    inset    picture in picture: the first fills the canvas, each other one is a `scale` part of it,
             in a `corner` and from there upwards or downwards, `gap` apart
    overlay  each over the whole canvas, or where `places` says

`places` has one entry for each layer, with ";" between them: "x,y" for a layer in its own size, or
"x,y,WIDTHxHEIGHT". Numbers are pixels or end in "%", and may be negative. Parts outside the canvas
are cut off. An empty entry fills the canvas: ";70%,5%,25%x25%" places the second of two.

Without `width` and `height` the canvas has the size at which the first layer keeps its own. A layer
of another shape than its place is fitted: `contain` (all of it, over the background), `cover` (its
middle) or `stretch`. A layer that becomes smaller has its pixels averaged, unless `scaling` says
otherwise.

Layers after the first are laid over the others by `blend` and `opacity`: over, add, subtract,
multiply, screen, darken, lighten and difference are those of W3C Compositing and Blending. The
alpha of rgba8 and bgra8 layers counts. `premultiplied` says that their colours are already
multiplied by it, as is usual in rendered pictures. `format` is the canvas's: that of the first
layer unless it is set, or rgb8 if `blend` cannot be done there. Layers of any other format are
converted.

A canvas of nv12, i420 or p010 has the matrix and range of the first layer, or else BT.601, limited.
Its chroma samples lie in the middle of their 2x2 pixels. Opaque layers of the same format, matrix
and range at even places are copied or scaled plane by plane: a wall of decoded films needs no
conversion. Others are laid over pixel by pixel, and chroma is then the mean of each 2x2 pixels;
`blend` can only be over.

A layer may be missing in a tick, or end before the others. `missing` then shows the background in
its place or its `last` picture, or makes no canvas (`skip`). In all other cases every tick has a
canvas, even without any layer. The canvas has the time of the first layer that is there. With
`missing: last` the handler runs on the CPU only.

With `until: shortest` the run ends as soon as the source of one of the layers has ended, however
many handlers are between them. A layer that comes by `latest` or a queue does not end the run in
this way.

    test.pattern name=p ! image.composite name=wall layout=row ! null.sink p. ! wall.
)"[1];

constexpr uint32_t kLayersMax = 64;

LayerLayout layout_named(const std::string& name) {
  if (name == "row") return LayerLayout::row;
  if (name == "column") return LayerLayout::column;
  if (name == "inset") return LayerLayout::inset;
  return name == "overlay" ? LayerLayout::overlay : LayerLayout::grid;
}

Corner corner_named(const std::string& name) {
  if (name == "top_left") return Corner::top_left;
  if (name == "top_right") return Corner::top_right;
  return name == "bottom_left" ? Corner::bottom_left : Corner::bottom_right;
}

Fit fit_named(const std::string& name) {
  if (name == "cover") return Fit::cover;
  return name == "stretch" ? Fit::stretch : Fit::contain;
}

Scaling scaling_named(const std::string& name) {
  if (name == "nearest") return Scaling::nearest;
  if (name == "bilinear") return Scaling::bilinear;
  return name == "area" ? Scaling::area : Scaling::automatic;
}

BlendMode blend_named(const std::string& name) {
  if (name == "add") return BlendMode::add;
  if (name == "subtract") return BlendMode::subtract;
  if (name == "multiply") return BlendMode::multiply;
  if (name == "screen") return BlendMode::screen;
  if (name == "darken") return BlendMode::darken;
  if (name == "lighten") return BlendMode::lighten;
  return name == "difference" ? BlendMode::difference : BlendMode::over;
}

class Composite final : public Handler {
 public:
  Composite() { capturable(); }

  void probe(Facts& facts) override {
    // A GPU body keeps no pictures from tick to tick.
    if (*missing_ == "last") facts.cost_us(0, -1);
  }

  void configure(const Formats& formats) override {
    const uint32_t count = layers_.count();
    if (count == 0) throw std::invalid_argument("image.composite needs at least one layer");
    const LayoutSettings layout = layout_settings();
    if (layout.places.size() > count)
      throw std::invalid_argument("there are " + std::to_string(layout.places.size()) + " places for " +
                                  std::to_string(count) + (count == 1 ? " layer" : " layers"));
    const Format& first = formats.in(layers_);
    canvas_ = natural_canvas(layout, count, {first.width, first.height});
    if (width_ > 0) canvas_.width = static_cast<uint32_t>(*width_);
    if (height_ > 0) canvas_.height = static_cast<uint32_t>(*height_);
    pixel_ = canvas_pixel(first);
    settings_.background = background_pixel();
    if (halves_chroma(pixel_) && *blend_ != "over")
      throw std::invalid_argument("blend: " + *blend_ + " needs red, green and blue, and a canvas of " +
                                  std::string(name_of(pixel_)) + " has none; set format: rgb8, or blend: over");
    // The size of a first layer that comes over a delayed edge is unknown in the first of the plan's two rounds of
    // configuration.
    if (canvas_.width > 0 && canvas_.height > 0) cells_ = place_layers(layout, count, canvas_);
    Format& out = formats.image(out_, pixel_, canvas_.width, canvas_.height);
    out.color = color_ = MR_COLOR_SRGB;
    out.range = range_ = MR_RANGE_FULL;
    if (!halves_chroma(pixel_)) return;
    const bool is_ycbcr = first.pixel_formats != 0 && (first.pixel_formats & ~kYcbcr) == 0;
    out.color = color_ = is_ycbcr && first.color != MR_COLOR_SRGB ? first.color : uint32_t{MR_COLOR_BT601};
    out.range = range_ = is_ycbcr ? first.range : uint32_t{MR_RANGE_LIMITED};
  }

  void start() override {
    settings_.fit = fit_named(*fit_);
    settings_.scaling = scaling_named(*scaling_);
    settings_.blend = blend_named(*blend_);
    settings_.premultiplied = premultiplied_;
    settings_.keep_last = *missing_ == "last";
    skip_ = *missing_ == "skip";
    shortest_ = *until_ == "shortest";
    composer_.set_layers(cells_);
  }

  void reset() override { composer_.set_layers(cells_); } // the last pictures are from before the reset

  void process(Tick& tick, Cpu&) {
    Views views;
    std::array<const ImageView*, kLayersMax> present{};
    if (!find_layers(tick, views)) return;
    for (uint32_t i = 0; i < layers_.count(); ++i) present[i] = is_there(views[i]) ? &views[i] : nullptr;
    const ImageSpan canvas = make_canvas(tick, views);
    composer_.run({present.data(), layers_.count()}, settings_, canvas);
  }

  void process(Tick& tick, Cuda& cuda) {
    Views views;
    if (!find_layers(tick, views)) return;
    const ImageSpan canvas = make_canvas(tick, views);
    if (halves_chroma(pixel_)) return compose_planes(cuda, views, canvas);
    std::array<gpu::Layer, kLayersMax> layers;
    uint32_t count = 0;
    for (uint32_t i = 0; i < layers_.count(); ++i) {
      if (!is_there(views[i])) continue;
      const FittedLayer fitted = fit_layer({views[i].width(), views[i].height()}, cells_[i], settings_.fit);
      layers[count++] = gpu::layer_of(gpu::on_device(views[i]), fitted, i == 0 ? BlendMode::over : settings_.blend,
                                      i == 0 ? uint8_t{255} : settings_.opacity, settings_, pixel_);
    }
    const std::array<uint8_t, 4>& color = settings_.background;
    const uint32_t background =
        static_cast<uint32_t>(color[0] | color[1] << 8 | color[2] << 16) | static_cast<uint32_t>(color[3]) << 24;
    const bool opaque = !has_alpha(pixel_) || color[3] == 255;
    gpu::check(gpu::library_of(cuda).layers->compose(cuda.stream(), {layers.data(), count}, background, opaque,
                                                     gpu::on_device(canvas)));
  }

 private:
  using Views = std::array<ImageView, kLayersMax>; // this tick's layers; a missing one has no value

  void compose_planes(Cuda& cuda, const Views& views, const ImageSpan& canvas) {
    std::array<gpu::PlanarLayer, kLayersMax> layers;
    const gpu::DevicePicture target = gpu::on_device(canvas);
    uint32_t count = 0;
    for (uint32_t i = 0; i < layers_.count(); ++i)
      if (is_there(views[i]))
        layers[count++] = gpu::planar_layer_of(gpu::on_device(views[i]), cells_[i],
                                               i == 0 ? uint8_t{255} : settings_.opacity, settings_, target.image);
    gpu::check(gpu::library_of(cuda).layers->compose_planes(cuda.stream(), {layers.data(), count}, settings_.background,
                                                            target));
  }

  static bool is_there(const ImageView& view) { return view.data() && view.width() > 0; }

  // False if the run ends because a layer has ended, or if a layer is missing and the canvas is to be skipped. An empty
  // initial value counts as missing.
  bool find_layers(Tick& tick, Views& views) const {
    for (uint32_t i = 0; shortest_ && i < layers_.count(); ++i) {
      if (!layers_.ended(tick, i)) continue;
      tick.end();
      return false;
    }
    for (uint32_t i = 0; i < layers_.count(); ++i) {
      if (layers_.present(tick, i)) views[i] = layers_(tick, i);
      if (skip_ && !is_there(views[i])) return false;
    }
    return true;
  }

  ImageSpan make_canvas(Tick& tick, const Views& views) {
    const ImageSpan canvas = out_.allocate(tick, pixel_, canvas_.width, canvas_.height);
    const auto first = std::find_if(views.begin(), views.end(), is_there);
    if (first != views.end()) take_over(*first, *out_.raw(tick).value);
    take_over_shortest(views, out_.raw(tick).value->header);
    out_.raw(tick).value->as.image.color = color_;
    out_.raw(tick).value->as.image.range = range_;
    settings_.opacity = static_cast<uint8_t>(std::lround(opacity_ * 255));
    return canvas;
  }

  // The canvas lasts as long as the shortest of the pictures, because it changes with the first one that changes.
  // Pictures with another time come from another clock and do not count.
  static void take_over_shortest(const Views& views, mr_header& to) {
    for (const ImageView& view : views) {
      if (!is_there(view) || view.header().pts_ns != to.pts_ns || view.header().duration_ns <= 0) continue;
      if (to.duration_ns <= 0 || view.header().duration_ns < to.duration_ns) to.duration_ns = view.header().duration_ns;
    }
  }

  LayoutSettings layout_settings() const {
    LayoutSettings layout;
    layout.layout = layout_named(*layout_);
    layout.columns = static_cast<uint32_t>(*columns_);
    layout.gap = static_cast<uint32_t>(*gap_);
    layout.scale = scale_;
    layout.corner = corner_named(*corner_);
    layout.places = parse_places(*places_);
    if (!layout.places.empty() && layout.layout != LayerLayout::overlay)
      throw std::invalid_argument("places go with layout: overlay, and layout is " + *layout_);
    return layout;
  }

  Pixel canvas_pixel(const Format& first) const {
    if (*format_ != "first") return pixel_named(*format_);
    if (std::popcount(first.pixel_formats) != 1) return Pixel::rgb8;
    const auto pixel = static_cast<Pixel>(std::countr_zero(first.pixel_formats));
    return halves_chroma(pixel) && *blend_ != "over" ? Pixel::rgb8 : pixel;
  }

  std::array<uint8_t, 4> background_pixel() const {
    const std::optional<Color> color = parse_color(*background_);
    if (!color)
      throw std::invalid_argument("background '" + *background_ + "' is neither \"#rrggbb\" nor \"#rrggbbaa\"");
    if (color->a < 255 && !has_alpha(pixel_))
      throw std::invalid_argument("background '" + *background_ + "' is translucent and " +
                                  std::string(name_of(pixel_)) + " has no alpha; set format: rgba8 or bgra8");
    const Ink ink = ink_of(*color, halves_chroma(pixel_) ? Pixel::rgb8 : pixel_);
    return {ink.channels[0], ink.channels[1], ink.channels[2], color->a};
  }

  static constexpr uint64_t kYcbcr = bit_of(Pixel::nv12) | bit_of(Pixel::i420) | bit_of(Pixel::p010);
  static Pixels composable() {
    return pixels(
        {Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420, Pixel::p010});
  }

  Inputs<Image> layers_{*this, "layers", kLayersMax, optional, composable(), help("from the bottom upwards")};
  Output<Image> out_{*this, "video", composable()};
  Param<std::string> layout_{*this, "layout", "grid", "where the layers go",
                             choices({"grid", "row", "column", "inset", "overlay"})};
  Param<int64_t> columns_{*this, "columns", 0, "of a grid; 0: as many as make it square", range(0, kLayersMax)};
  Param<int64_t> gap_{*this, "gap", 0, "between cells, and around insets", range(0, 4096), unit("px")};
  Param<double> scale_{*this, "scale", 0.3, "of insets, as a part of the canvas", range(0, 1)};
  Param<std::string> corner_{*this, "corner", "bottom_right", "of insets",
                             choices({"top_left", "top_right", "bottom_left", "bottom_right"})};
  Param<std::string> places_{*this, "places", "", "of an overlay's layers: \"x,y\" or \"x,y,WIDTHxHEIGHT\", with ;"};
  Param<int64_t> width_{*this,     "width", 0, "of the canvas; 0: from the first layer", range(0, kPictureSideMax),
                        unit("px")};
  Param<int64_t> height_{*this,     "height", 0, "of the canvas; 0: from the first layer", range(0, kPictureSideMax),
                         unit("px")};
  Param<std::string> fit_{*this, "fit", "contain", "a layer of another shape than its place",
                          choices({"contain", "cover", "stretch"})};
  Param<std::string> scaling_{*this, "scaling", "auto", "how layers are scaled",
                              choices({"auto", "nearest", "bilinear", "area"})};
  Param<std::string> blend_{
      *this, "blend", "over", "of all layers after the first",
      choices({"over", "add", "subtract", "multiply", "screen", "darken", "lighten", "difference"})};
  Param<double> opacity_{*this, "opacity", 1, "of all layers after the first", range(0, 1), live};
  Param<bool> premultiplied_{*this, "premultiplied", false, "the colours of rgba8 and bgra8 layers hold their alpha"};
  Param<std::string> missing_{*this, "missing", "background", "what a missing layer shows",
                              choices({"background", "last", "skip"})};
  Param<std::string> until_{*this, "until", "longest", "the run ends with the layer that ends last, or first",
                            choices({"longest", "shortest"})};
  Param<std::string> background_{*this, "background", "#000000", "\"#rrggbb\" or \"#rrggbbaa\""};
  Param<std::string> format_{*this, "format", "first", "of the canvas; first: the first layer's",
                             choices({"first", "gray8", "rgb8", "bgr8", "rgba8", "bgra8", "nv12", "i420", "p010"})};
  Composer composer_;
  ComposeSettings settings_;
  std::vector<LayerCell> cells_;
  Extent canvas_;
  bool skip_ = false, shortest_ = false;
  Pixel pixel_ = Pixel::rgb8;
  uint32_t color_ = MR_COLOR_SRGB, range_ = MR_RANGE_FULL;
};

} // namespace

const mr_handler_type& image_composite_type() {
  static const mr_handler_type type =
      detail::Type<Composite>::table("image.composite", "Makes one picture of several", kCompositeManual);
  return type;
}

} // namespace millrace::handlers
