// Device time of points.links beside libtorch's distances and its choice of the nearest.
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "bench.h"
#include "handlers/gpu/link_kernels.h"
#include "handlers/gpu/link_work.h"
#include "handlers/gpu/mark_kernels.h"
#include "handlers/test/moving_points.h"
#include "replays.h"
#include "torch_module.h"

namespace millrace::test {
namespace {

using namespace handlers;

// Points of test.points over a picture of 3840 × 2160, resident, and what points.links has of a device.
class LinkSet {
 public:
  LinkSet(const LinkRule& rule, uint32_t count)
      : rule_(rule),
        count_(count),
        most_(static_cast<uint32_t>(std::min<uint64_t>(most_links(count, rule.k), 65'536))),
        slots_(PlaceTable::slots_for(count)),
        points_(count * sizeof(Point)),
        size_(count),
        turn_(sizeof(LinkTurn)),
        sums_(gpu::link_sums(count, rule.k) * sizeof(uint64_t)),
        table_(slots_ * sizeof(uint64_t)),
        past_(2ull * most_ * sizeof(PastLink)),
        scratch_(gpu::lay_out_work(nullptr, rule, count, most_).bytes),
        links_(most_ * sizeof(Link)),
        made_(0) {
    for (GpuBytes* state : {&turn_, &sums_, &table_, &past_}) state->fill(0);
    std::vector<Point> points;
    for (uint32_t p = 0; p < count; ++p) points.push_back(point_at({3840, 2160, 1}, 0, p));
    points_.upload(points.data());
  }
  gpu::DeviceList<Point> points() const {
    return {reinterpret_cast<const Point*>(points_.data()), size_.get(), count_};
  }
  gpu::DeviceList<Link> links() const { return {reinterpret_cast<const Link*>(links_.data()), made_.get(), most_}; }
  const char* launch(cudaStream_t stream) const {
    const gpu::LinkState state{reinterpret_cast<LinkTurn*>(turn_.data()), reinterpret_cast<uint64_t*>(sums_.data()),
                               reinterpret_cast<uint64_t*>(table_.data()), static_cast<uint32_t>(slots_ - 1),
                               rule_.remembers() ? reinterpret_cast<PastLink*>(past_.data()) : nullptr};
    return gpu::link_kernels().join(stream, points(), rule_, state, scratch_.data(), most_,
                                    {reinterpret_cast<Link*>(links_.data()), const_cast<uint64_t*>(made_.get())});
  }

 private:
  LinkRule rule_;
  uint32_t count_, most_;
  uint64_t slots_;
  GpuBytes points_;
  GpuValue<uint64_t> size_;
  GpuBytes turn_, sums_, table_, past_, scratch_, links_;
  GpuValue<uint64_t> made_;
};

// libtorch's distances and its choice of the nearest, `times` of them in a graph.
class TorchNearest {
 public:
  // `stream` is the one that torch().stream() gave last: libtorch replays on that.
  TorchNearest(cudaStream_t stream, const GpuBytes& places, uint32_t count, uint32_t k, uint32_t times)
      : stream_(stream),
        graph_(torch().nearest(reinterpret_cast<const float*>(places.data()), static_cast<int>(count),
                               static_cast<int>(k), static_cast<int>(times))) {
    checked(cudaEventCreate(&begin_), "cudaEventCreate");
    checked(cudaEventCreate(&end_), "cudaEventCreate");
  }
  double us() const {
    float ms = 0;
    checked(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    torch().launch(graph_);
    checked(cudaEventRecord(end_, stream_), "cudaEventRecord");
    checked(cudaEventSynchronize(end_), "cudaEventSynchronize");
    checked(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    return 1000.0 * ms;
  }

 private:
  cudaStream_t stream_;
  void* graph_;
  cudaEvent_t begin_, end_;
};

struct TorchTimes {
  double more = 0;         // as marginal_us()
  std::vector<double> one; // as times_of_one()
};

TorchTimes times_of_torch(uint32_t count, uint32_t k) {
  std::vector<float> numbers;
  for (uint32_t p = 0; p < count; ++p) {
    const Point point = point_at({3840, 2160, 1}, 0, p);
    numbers.insert(numbers.end(), {point.x, point.y});
  }
  GpuBytes places(numbers.size() * sizeof(float));
  places.upload(numbers.data());
  const auto stream = static_cast<cudaStream_t>(torch().stream(0));
  const TorchNearest one(stream, places, count, k, 1), many(stream, places, count, k, kLong);
  TorchTimes times;
  std::vector<double> many_us;
  for (uint32_t n = 0; n < kWarmUp + kReplays; ++n) {
    const double a = one.us(), b = many.us();
    if (n < kWarmUp) continue;
    times.one.push_back(a);
    many_us.push_back(b);
  }
  std::sort(times.one.begin(), times.one.end());
  times.more = (median(many_us) - median(times.one)) / (kLong - 1);
  return times;
}

void time_links(const char* name, const char* goal, uint32_t count, const LinkRule& rule, bool beside_torch) {
  const LinkSet set(rule, count);
  const Launch launch = [&](cudaStream_t stream, size_t) { return set.launch(stream); };
  const double more = marginal_us(launch, 1);
  const std::vector<double> one = times_of_one(launch);
  const double median_one = one[one.size() / 2];
  char rival[96] = " |  | ";
  if (beside_torch && torch().why_not.empty()) {
    const TorchTimes theirs = times_of_torch(count, rule.k);
    const double median_theirs = theirs.one[theirs.one.size() / 2];
    std::snprintf(rival, sizeof rival, "%.1f | %.1f / %.1f | %.1f, %.1f", theirs.more, median_theirs,
                  theirs.one[theirs.one.size() * 99 / 100], theirs.more / more, median_theirs / median_one);
  }
  row("| %s | %.1f | %.1f / %.1f | %s | %s |", name, more, median_one, one[one.size() * 99 / 100], rival, goal);
}

// Marks that a maker makes of a list.
class MarkList {
 public:
  explicit MarkList(uint32_t most) : most_(most), records_(most * sizeof(Mark)), count_(0) {}
  gpu::MadeList<Mark> made() const {
    return {reinterpret_cast<Mark*>(records_.data()), const_cast<uint64_t*>(count_.get())};
  }
  gpu::DeviceList<Mark> list() const { return {reinterpret_cast<const Mark*>(records_.data()), count_.get(), most_}; }

 private:
  uint32_t most_;
  GpuBytes records_;
  GpuValue<uint64_t> count_;
};

// All that the GPU does on a tick of whole_frame.yaml, over one picture of 3840 × 2160 rgba8.
class WholeFrame {
 public:
  WholeFrame(const LinkRule& rule, bool curved)
      : curved_(curved),
        joined_(rule, 1'000),
        few_(LinkRule{}, 100),
        more_(LinkRule{}, 200),
        lines_(joined_.links().most),
        boxes_(100),
        dots_(200),
        picture_(lay_out_image(Pixel::rgba8, 3840, 2160, image_)),
        scratch_(gpu::mark_scratch_bytes(marks())) {}
  const char* launch(cudaStream_t stream) const {
    const gpu::MarkKernels& kernels = gpu::mark_kernels();
    const draw::MarkColor white{false, {1, 1, 1, 1}, 1};
    gpu::check(joined_.launch(stream));
    gpu::check(kernels.lines(stream, joined_.links(), joined_.points(), {2, 0, curved_, 0.3f, white}, lines_.made()));
    gpu::check(
        kernels.boxes(stream, {}, few_.points(), {draw::BoxSize::fixed, 150, 2, 0.3f, 0, 0, white}, boxes_.made()));
    gpu::check(kernels.dots(stream, more_.points(), {draw::DotShape::disc, 6, 2, white}, dots_.made()));
    gpu::MarkLists lists;
    for (const MarkList* list : {&lines_, &boxes_, &dots_}) lists.lists[lists.count++] = list->list();
    return kernels.paint(stream, lists, {false, false, Pixel::rgba8}, {image_, picture_.data()}, scratch_.data(),
                         marks());
  }

 private:
  uint64_t marks() const { return uint64_t{lines_.list().most} + 100 + 200; }

  bool curved_;
  LinkSet joined_, few_, more_;
  MarkList lines_, boxes_, dots_;
  mr_image image_{};
  GpuBytes picture_, scratch_;
};

void time_frame(const char* name, const char* goal, const LinkRule& rule, bool curved) {
  const WholeFrame frame(rule, curved);
  const Launch launch = [&](cudaStream_t stream, size_t) { return frame.launch(stream); };
  const double more = marginal_us(launch, 1);
  const std::vector<double> one = times_of_one(launch);
  row("| %s | %.1f | %.1f / %.1f | %s |", name, more, one[one.size() / 2], one[one.size() * 99 / 100], goal);
}

} // namespace

void bench_frame() {
  row("\n### frame: links of 1,000 points, 100 boxes and 200 dots over 3840 × 2160 rgba8, in a captured graph, µs; "
      "medians of %u\n",
      kReplays);
  row("%s", "| work | one more frame | a graph of one, p50 / p99 | goal, µs |");
  row("%s", "|---|---|---|---|");
  checked(cudaSetDevice(0), "cudaSetDevice");
  time_frame("lines, k = 1", "100", LinkRule{}, false);
  time_frame("curves, k = 1, hysteresis and fade", "", LinkRule{.hysteresis = 0.3, .gain = 0.2f, .fade = 0.8f}, true);
}

void bench_links() {
  row("\n### links: points.links of resident points, in a captured graph, µs; medians of %u\n", kReplays);
  row("%s",
      "| work | one more launch | a graph of one, p50 / p99 | torch.cdist and topk, once more | a graph of one | "
      "times, "
      "once more and one | goal, µs |");
  row("%s", "|---|---|---|---|---|---|---|");
  checked(cudaSetDevice(0), "cudaSetDevice");
  if (!torch().why_not.empty()) std::fprintf(stderr, "gpu_bench: libtorch: %s\n", torch().why_not.c_str());
  const LinkRule plain{.k = 5};
  time_links("1,000 points, k = 5", "8", 1'000, plain, true);
  time_links("5,000 points, k = 5", "20", 5'000, plain, true);
  time_links("16,384 points, k = 5", "", 16'384, plain, false);
  time_links("1,000 points, k = 1", "", 1'000, LinkRule{}, false);
  time_links("5,000 points, k = 32", "", 5'000, LinkRule{.k = 32}, false);
  const LinkRule remembers{.k = 5, .hysteresis = 0.3, .gain = 0.2f, .fade = 0.8f};
  time_links("1,000 points, k = 5, hysteresis and fade", "", 1'000, remembers, false);
  time_links("5,000 points, k = 5, hysteresis and fade", "", 5'000, remembers, false);
  time_links("5,000 points, k = 5, at most 3 links each", "", 5'000, LinkRule{.k = 5, .degree_max = 3}, false);
}

} // namespace millrace::test
