// points.links: joins points to their nearest neighbours.
#include <millrace/handler.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "handlers/gpu/link_kernels.h"
#include "handlers/gpu/link_work.h"
#include "handlers/image/picture.h"
#include "handlers/points/link_graph.h"

namespace millrace::handlers {
namespace {

constexpr const char* kLinksManual = &R"(
Joins each point to its `k` nearest ones, none further than `radius`. `delta_y_max` joins only
points that lie about as high: `delta: before` looks for the nearest among those, `after` drops
links. With `degree_max` a link stays only if it is among the shortest so many of both its ends.

Joined anew on each tick, such links flicker. `hysteresis` lets a pair that was linked count as
nearer, by the factor 1 / (1 + hysteresis). A link's life rises by `gain` a tick while it is linked,
up to 1. After that it is multiplied by `fade` a tick, and the link is given until its life is 0.02
or one of its points is gone. Only points with ids have a past.

Links come in the order of their first point, the nearest first, and then those that fade.
marks.lines makes lines of them. More than `links_max` are left out and counted (`links_left_out`).

    test.points points=50 count=100 ! points.links k=2 hysteresis=0.3 ! null.sink
)"[1];

class Links final : public Handler {
 public:
  Links() { capturable(); }

  void configure(const Formats& formats) override {
    points_max_ = formats.in(points_).record_count_max;
    if (points_max_ > kLinkedPointsMax)
      throw std::invalid_argument("up to " + std::to_string(points_max_) + " points may come, and at most " +
                                  std::to_string(kLinkedPointsMax) +
                                  " can be joined; let the handler before give fewer");
    rule_ = rule();
    const uint64_t most = most_links(points_max_, rule_.k);
    links_max_ = std::clamp<uint64_t>(most, 1, static_cast<uint64_t>(*most_));
    formats.out(out_).record_count_max = links_max_;
    slots_.resize(PlaceTable::slots_for(points_max_));
    sums_.resize(gpu::link_sums(points_max_, rule_.k));
    past_.resize(rule_.remembers() ? 2 * links_max_ : 0);
    needs_scratch(gpu::lay_out_work(nullptr, rule_, points_max_, links_max_).bytes);
  }

  void start() override {
    graph_.emplace(rule_);
    place_ = gpu();
    if (place_) gpu::check(gpu::library_of(*place_).links->left_out.begin(place_->stream, place_->scratch));
  }

  void process(Tick& tick, Cpu&) {
    uint64_t left_out = 0;
    const LinkMemory memory{turn_(tick)[0], slots_(tick), past_(tick)};
    const std::span<const Link> links = graph_->step(points_(tick), memory, links_max_, left_out);
    const std::span<Link> made = out_.allocate(tick, links.size());
    std::copy(links.begin(), links.end(), made.begin());
    if (left_out > 0) count("links_left_out", static_cast<int64_t>(left_out));
    take_over_times(points_.raw(tick).value->header, out_.header(tick));
  }

  void process(Tick& tick, Cuda& cuda) {
    const std::span<uint64_t> slots = slots_(tick);
    const gpu::LinkState state{turn_(tick).data(), sums_(tick).data(), slots.data(),
                               static_cast<uint32_t>(slots.size() - 1), past_(tick).data()};
    Link* const links = out_.allocate(tick, links_max_).data();
    gpu::check(gpu::library_of(cuda).links->join(cuda.stream(), gpu::on_device<Point>(points_.raw(tick), points_max_),
                                                 rule_, state, cuda.scratch(), static_cast<uint32_t>(links_max_),
                                                 {links, Cuda::count_of(out_.raw(tick))}));
    take_over_times(points_.raw(tick).value->header, out_.header(tick));
  }

  void stop() override {
    if (!place_) return;
    uint64_t left_out = 0;
    if (gpu::library_of(*place_).links->left_out.read(place_->stream, place_->scratch, left_out) && left_out > 0)
      count("links_left_out", static_cast<int64_t>(left_out));
    place_.reset();
  }

 private:
  LinkRule rule() const {
    LinkRule rule;
    rule.k = static_cast<uint32_t>(*k_);
    rule.radius = static_cast<float>(*radius_);
    rule.delta_y_max = static_cast<float>(*delta_y_max_);
    rule.delta_after = *delta_ == "after";
    rule.degree_max = static_cast<uint32_t>(*degree_max_);
    rule.hysteresis = *hysteresis_;
    rule.gain = static_cast<float>(*gain_);
    rule.fade = static_cast<float>(*fade_);
    return rule;
  }

  Input<Records<Point>> points_{*this, "points", help("in pixels")};
  Output<Records<Link>> out_{*this, "links", help("places in the list of points")};
  Param<int64_t> k_{*this, "k", 1, "nearest points of each", range(1, 32)};
  Param<double> radius_{*this, "radius", 0, "the furthest; 0: no limit", range(0, 100000), unit("px")};
  Param<double> delta_y_max_{*this,     "delta_y_max", 0, "how much lower or higher; 0: no limit", range(0, 100000),
                             unit("px")};
  Param<std::string> delta_{*this, "delta", "before", "what that limits: candidates, or links that were found",
                            choices({"before", "after"})};
  Param<int64_t> degree_max_{*this, "degree_max", 0, "links of a point; 0: no limit", range(0, 64)};
  Param<double> hysteresis_{*this, "hysteresis", 0, "how much nearer a linked pair counts", range(0, 0.9)};
  Param<double> gain_{*this, "gain", 1, "life that a link wins on a tick", range(0.05, 1)};
  Param<double> fade_{*this, "fade", 0, "part of its life that it keeps on a tick without; 0: none", range(0, 0.99)};
  Param<int64_t> most_{*this, "links_max", 65536, "of a list", range(1, 1048576)};
  State<LinkTurn> turn_{*this};
  State<uint64_t> slots_{*this}; // those of a PlaceTable
  State<uint64_t> sums_{*this};  // for kernels alone
  State<PastLink> past_{*this};
  LinkRule rule_;
  uint64_t points_max_ = 0, links_max_ = 1;
  std::optional<LinkGraph> graph_;
  std::optional<GpuPlace> place_; // the GPU body's, while it runs
};

} // namespace

const mr_handler_type& points_links_type() {
  static const mr_handler_type type =
      detail::Type<Links>::table("points.links", "Joins points to their nearest neighbours", kLinksManual);
  return type;
}

} // namespace millrace::handlers
