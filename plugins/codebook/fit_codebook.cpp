// codebook.fit: anneals the anchors of a codebook to vectors.
#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>

#include "millrace/handler.h"
#include "millrace/payload/half_floats.h"
#include "plugins/codebook/choice_names.h"
#include "plugins/codebook/codebook_file.h"
#include "plugins/codebook/deviations.h"
#include "plugins/codebook/fit.h"
#ifdef CODEBOOK_CUDA
#include "plugins/codebook/gpu/fit_on_gpu.h"
#endif
#include "plugins/codebook/iteration_record.h"

namespace millrace::codebook {
namespace {

constexpr const char* kFitManual = &R"(
Puts each of n vectors of d numbers into one of `m` cells, each with an anchor of half precision that
moves towards the mean of its cell while a temperature falls. The whole fit is one tick: give the
handler a `budget` that is long enough. The same vectors give the same bytes on every machine and
with any number of threads.

Each iteration gives every vector the label of its nearest anchor, of several the first; takes the
`mean` of each cell; and moves each anchor by α·(mean − anchor), α = rate·T / (1 + T), at most
`step_max` in each dimension, which is in the units of the vectors. `momentum` β makes of that step
s ← β·s + (1 − β)·step, before the limit. The energy is the mean squared distance to the moved
anchors. The fit ends after `iterations`, or once for three iterations in a row the energy changed by
less than `tolerance` and fewer labels than `changes`. After each iteration T cools: `exponential`
T ← T·(1 − c), `linear` T₀·(1 − c·t), `harmonic` T₀ / (1 + c·t), with c the `cooling_rate`. Because
steps shrink with T, a fit can freeze before anchors have reached their means. `last_step` puts each
anchor on the mean of its cell at the end.

`init` chooses the first anchors: `farthest` (vector 0, then again and again the one furthest from
all chosen ones), `kmeans++`, `random`, or `given` by the input `anchors`; a tick without them has
no fit. The middle two draw with SplitMix64 from `seed`. `trimmed` leaves out the nearest and the
furthest tenth of a cell; in `huber`, a member further away than huber·√T weighs that over its
distance. `maintenance` runs every `interval` iterations. `as_published` merges anchors that lie
close together and splits large cells, up to 4·m anchors, and can raise the energy. `corrected`
merges the two anchors whose union costs least and splits the worst cell with the freed one, while
the energy falls by that; m stays.

`metric: cosine` divides vectors by their norm, and given anchors too. NaN, infinities and numbers
beyond 65504, the greatest of an anchor, are refused with their row and column; with `bad: skip`
their rows are left out, counted (`vectors_skipped`), and get the label 4294967295.

    test.vectors n=3000 d=64 ! codebook.fit name=fit m=64  fit.codebook ! null.sink
)"[1];

// The bounds of distances hold up to twice as many.
constexpr int64_t kDimensionsMax = int64_t{1} << 17;

bool is_fixed(const Format& table) {
  return table.rank == 2 && table.shape_kind[0] == MR_DIM_FIXED && table.shape_kind[1] == MR_DIM_FIXED;
}

class FitCodebook final : public Handler {
 public:
  FitCodebook() {
    cost_hint_us(90'000); // 10,000 vectors of 128 numbers, 256 anchors
    capturable();
  }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(vectors_);
    const int64_t count = in.rank == 2 ? in.shape[0] : 0, dimensions = in.rank == 2 ? in.shape[1] : 0;
    if (is_fixed(in)) check(count, dimensions);
    if ((*init_ == "given") != given_.connected())
      throw std::invalid_argument(
          given_.connected() ? "the input anchors is for init=given, and init is " + *init_ + "\ntry: init=given"
                             : "init=given needs the first anchors on the input anchors\ntry: init=farthest");
    if (given_.connected() && is_fixed(in) && is_fixed(formats.in(given_)))
      check_given(formats.in(given_).shape[0], formats.in(given_).shape[1], dimensions);
    const FitSettings asked = settings();
    Format& book = formats.tensor(codebook_, dtype_of<Float16>(), {anchors_max(asked), dimensions});
    if (anchors_max(asked) != asked.anchors) book.shape_kind[0] = MR_DIM_BOUNDED;
    book.shape_kind[1] = in.rank == 2 ? in.shape_kind[1] : uint32_t{MR_DIM_UNKNOWN};
    formats.out(deviations_) = book;
    Format& labels = formats.tensor(labels_, dtype_of<uint32_t>(), {count});
    labels.shape_kind[0] = in.rank == 2 ? in.shape_kind[0] : uint32_t{MR_DIM_UNKNOWN};
    formats.out(iterations_).record_count_max = uint64_t{asked.iterations} + 1; // the last is for a GPU's outcome
#ifdef CODEBOOK_CUDA
    if (in.rank == 2) needs_scratch(gpu::scratch_bytes(sizes(count, dimensions)));
    if (const char* const why = gpu::why_unrolled())
      log(MR_LOG_INFO, "on a GPU all " + std::to_string(asked.iterations) + " iterations are enqueued: " + why);
#endif
  }

  void process(Tick& tick, Cpu&) {
    is_interrupted_ = false; // an earlier interrupt was meant for another call
    if (given_.connected() && !given_.present(tick)) return;
    const TensorView vectors = vectors_(tick);
    check(vectors.shape()[0], vectors.shape()[1]);
    const Points points = points_of(vectors);
    const FitSettings asked = settings();
    if (points.count() < asked.anchors) throw too_few(points.count(), vectors.shape()[0]);
    Crew crew(static_cast<uint32_t>(std::max<int64_t>(*threads_, 1)),
              [this] { return is_interrupted_.load(std::memory_order_relaxed); });
    Fit made;
    try {
      made = fit(points, asked, given_.connected() ? given_of(given_(tick), points) : Rows(), crew);
    } catch (const Interrupted&) {
      return;
    }
    give(tick, points, made, vectors.shape()[0]);
    if (!points.skipped.empty()) count("vectors_skipped", static_cast<int64_t>(points.skipped.size()));
  }

#ifdef CODEBOOK_CUDA
  void start(const DeviceInfo& device) override {
    if (device.kind == DeviceKind::cuda) on_gpu_.emplace();
  }
  void stop() override { on_gpu_.reset(); }

  void process(Tick& tick, Cuda& cuda) {
    if (given_.connected() && !given_.present(tick)) return;
    const TensorView vectors = vectors_(tick);
    check(vectors.shape()[0], vectors.shape()[1]);
    gpu::FitCall call;
    call.sizes = sizes(vectors.shape()[0], vectors.shape()[1]);
    call.settings = settings();
    call.metric = metric();
    call.bad = chosen<BadRows>(*bad_, kBadNames);
    call.vectors = vectors.data();
    call.type = type_of(vectors);
    if (given_.connected()) {
      const TensorView given = given_(tick);
      check_given(given.shape()[0], given.shape()[1], call.sizes.dimensions);
      call.given = given.data();
      call.given_type = type_of(given);
    }
    call.scratch = cuda.scratch();
    const int64_t book_shape[] = {call.sizes.anchors_max, call.sizes.dimensions}, label_shape[] = {call.sizes.vectors};
    const auto halves = [&](const Output<Tensor>& out) {
      return reinterpret_cast<Float16*>(out.allocate(tick, dtype_of<Float16>(), book_shape).data());
    };
    call.to.codebook = halves(codebook_);
    call.to.deviations = deviations_.connected() ? halves(deviations_) : nullptr;
    call.to.labels = reinterpret_cast<uint32_t*>(labels_.allocate(tick, dtype_of<uint32_t>(), label_shape).data());
    call.to.records = iterations_.allocate(tick, size_t{call.settings.iterations} + 1).data();
    call.to.record_count = Cuda::count_of(iterations_.raw(tick));
    on_gpu_->enqueue(cuda.stream(), call);
  }

  // Takes what only the device knew: how many anchors there are, and whether there is a fit.
  void finish(Tick& tick, Cpu&) {
    if (!on_gpu_ || !iterations_.made(tick)) return;
    const std::span<const IterationRecord> records = iterations_.view(tick);
    const gpu::Outcome& outcome = gpu::outcome_after(records.data(), static_cast<uint32_t>(*iteration_count_));
    const int64_t rows = vectors_(tick).shape()[0];
    if (outcome.fault == Fault::too_few) throw too_few(outcome.used, rows);
    if (outcome.fault != Fault::none) throw bad_vectors(outcome.fault, outcome.row, outcome.column, outcome.number);
    const int64_t book_shape[] = {outcome.anchors, vectors_(tick).shape()[1]};
    for (const Output<Tensor>* book : {&codebook_, &deviations_})
      if (book->made(tick)) book->allocate(tick, dtype_of<Float16>(), book_shape);
    if (outcome.used < rows) count("vectors_skipped", rows - outcome.used);
  }
#endif

  void interrupt() override { is_interrupted_ = true; }

 private:
  void check(int64_t count, int64_t dimensions) const {
    const std::string shape = "[" + std::to_string(count) + ", " + std::to_string(dimensions) + "]";
    if (dimensions > kDimensionsMax)
      throw std::invalid_argument("the vectors are " + shape + ", and one fit takes at most " +
                                  std::to_string(kDimensionsMax) + " dimensions");
    if (dimensions < 1) throw std::invalid_argument("the vectors are " + shape + " and have no numbers");
    if (count < 1) throw std::invalid_argument("the vectors are " + shape + ": there are none");
    if (static_cast<uint64_t>(count) > kSummandsMax)
      throw std::invalid_argument("the vectors are " + shape + ", and one fit takes at most " +
                                  std::to_string(kSummandsMax));
    if (count < *m_)
      throw std::invalid_argument("the vectors are " + shape + ", which is fewer than the m=" + std::to_string(*m_) +
                                  " anchors\ntry: m=" + std::to_string(count));
  }

  void check_given(int64_t count, int64_t given_dimensions, int64_t dimensions) const {
    if (count != *m_ || given_dimensions != dimensions)
      throw std::invalid_argument("the first anchors are [" + std::to_string(count) + ", " +
                                  std::to_string(given_dimensions) + "], and m=" + std::to_string(*m_) +
                                  " anchors of these vectors are [" + std::to_string(*m_) + ", " +
                                  std::to_string(dimensions) + "]");
  }

  std::runtime_error too_few(uint64_t left, int64_t of) const {
    return std::runtime_error(std::to_string(left) + " vectors are left of " + std::to_string(of) +
                              ", and m=" + std::to_string(*m_) + " anchors need as many");
  }

#ifdef CODEBOOK_CUDA
  gpu::Sizes sizes(int64_t count, int64_t dimensions) const {
    const FitSettings asked = settings();
    return {static_cast<uint32_t>(count), static_cast<uint32_t>(dimensions), asked.anchors, anchors_max(asked)};
  }
  static gpu::ElementType type_of(const TensorView& numbers) {
    return numbers.dtype() == dtype_of<Float16>()    ? gpu::ElementType::f16
           : numbers.dtype() == dtype_of<BFloat16>() ? gpu::ElementType::bf16
                                                     : gpu::ElementType::f32;
  }
#endif

  Metric metric() const { return chosen<Metric>(*metric_, kMetricNames); }

  Points points_of(const TensorView& vectors) const {
    const auto dimensions = static_cast<uint32_t>(vectors.shape()[1]);
    const auto bad = chosen<BadRows>(*bad_, kBadNames);
    if (vectors.dtype() == dtype_of<Float16>())
      return make_points(vectors.elements<Float16>(), dimensions, metric(), bad);
    if (vectors.dtype() == dtype_of<BFloat16>())
      return make_points(vectors.elements<BFloat16>(), dimensions, metric(), bad);
    return make_points(vectors.elements<float>(), dimensions, metric(), bad);
  }

  Rows given_of(const TensorView& given, const Points& points) const {
    check_given(given.shape()[0], given.shape()[1], points.dimensions());
    return given.dtype() == dtype_of<Float16>()
               ? make_points(given.elements<Float16>(), points.dimensions(), metric(), BadRows::refuse).rows
               : make_points(given.elements<float>(), points.dimensions(), metric(), BadRows::refuse).rows;
  }

  FitSettings settings() const {
    FitSettings asked;
    asked.anchors = static_cast<uint32_t>(*m_);
    asked.start = chosen<Start>(*init_, kStartNames);
    asked.seed = static_cast<uint64_t>(*seed_);
    asked.temperature = *temperature_;
    asked.cooling = chosen<Cooling>(*cooling_, kCoolingNames);
    asked.cooling_rate = *cooling_rate_;
    asked.rate = *rate_;
    asked.momentum = *momentum_;
    asked.step_max = *step_max_;
    asked.mean = chosen<Mean>(*mean_, kMeanNames);
    asked.huber = *huber_;
    asked.iterations = static_cast<uint32_t>(*iteration_count_);
    asked.tolerance = *tolerance_;
    asked.changes = static_cast<uint32_t>(*changes_);
    asked.maintenance = chosen<Maintenance>(*maintenance_, kMaintenanceNames);
    asked.interval = static_cast<uint32_t>(*interval_);
    asked.last_step = last_step_;
    return asked;
  }

  void give(Tick& tick, const Points& points, const Fit& made, int64_t count) const {
    const auto rows = static_cast<int64_t>(made.anchors.count()), dimensions = int64_t{points.dimensions()};
    const int64_t book_shape[] = {rows, dimensions}, label_shape[] = {count};
    const std::span<Float16> anchors = codebook_.allocate(tick, dtype_of<Float16>(), book_shape).elements<Float16>();
    for (size_t a = 0; a < made.anchors.count(); ++a)
      std::ranges::transform(made.anchors.numbers(a), anchors.begin() + static_cast<int64_t>(a) * dimensions,
                             [](float number) { return Float16(number); });

    if (deviations_.connected())
      find_deviations(points.rows, made.anchors, made.labels,
                      deviations_.allocate(tick, dtype_of<Float16>(), book_shape).elements<Float16>());

    const std::span<uint32_t> labels = labels_.allocate(tick, dtype_of<uint32_t>(), label_shape).elements<uint32_t>();
    auto skipped = points.skipped.begin();
    auto label = made.labels.begin();
    for (uint32_t i = 0; i < labels.size(); ++i) {
      const bool is_skipped = skipped != points.skipped.end() && *skipped == i;
      labels[i] = is_skipped ? kNoLabel : *label++;
      if (is_skipped) ++skipped;
    }

    const std::span<IterationRecord> records = iterations_.allocate(tick, made.iterations.size());
    for (size_t n = 0; n < records.size(); ++n) {
      const Iteration& one = made.iterations[n];
      const bool is_last = n + 1 == records.size();
      records[n] = {one.energy, one.change, one.temperature,          one.changed, one.anchors, one.merged,
                    one.split,  one.empty,  is_last && made.converged};
    }
  }

  Input<Tensor> vectors_{*this, "vectors", dtypes<Float16, BFloat16, float>(), rank(2), help("[n, d]")};
  Input<Tensor> given_{*this,   "anchors", dtypes<Float16, float>(),
                       rank(2), optional,  help("for init=given: the first anchors, [m, d]")};
  Output<Tensor> codebook_{*this, "codebook", dtypes<Float16>(), rank(2), on_cpu, help("the anchors, [m, d]")};
  Output<Tensor> labels_{*this, "labels", dtypes<uint32_t>(), rank(1), help("the anchor of each vector, [n]")};
  Output<Tensor> deviations_{*this,   "deviations", dtypes<Float16>(),
                             rank(2), on_cpu,       help("of each cell's members from its anchor, [m, d]")};
  Output<Records<IterationRecord>> iterations_{*this, "iterations", on_cpu, help("one of each iteration")};
  Param<int64_t> m_{*this, "m", 256, "anchors", range(1, kSummandsMax)};
  Param<std::string> init_{*this, "init", "farthest", "the first anchors", choices(kStartNames)};
  Param<int64_t> seed_{*this, "seed", 1, "of what is drawn at random"};
  Param<float> temperature_{*this, "temperature", 1.0f, "T at first", range(0, 1e6)};
  Param<std::string> cooling_{*this, "cooling", "exponential", "how T falls", choices(kCoolingNames)};
  Param<float> cooling_rate_{*this, "cooling_rate", 0.05f, "how fast", range(0, 1)};
  Param<float> rate_{*this, "rate", 0.2f, "of the way to the mean at a high temperature", range(0, 1)};
  Param<float> momentum_{*this, "momentum", 0.0f, "part of the step before that stays", range(0, 0.99)};
  Param<float> step_max_{*this, "step_max", 0.1f, "of an anchor in each dimension", range(0, 65504)};
  Param<std::string> mean_{*this, "mean", "trimmed", "of a cell", choices(kMeanNames)};
  Param<float> huber_{*this, "huber", 1.0f, "distance over √T from which on a member weighs less", range(0, 1e6)};
  Param<int64_t> iteration_count_{*this, "iterations", 50, "at most", range(1, 100'000)};
  Param<double> tolerance_{*this, "tolerance", 1e-3, "of the energy, below which an iteration was calm", at_least(0)};
  Param<int64_t> changes_{*this, "changes", 1, "of labels, below which an iteration was calm", range(1, kSummandsMax)};
  Param<std::string> maintenance_{*this, "maintenance", "none", "merges and splits anchors now and then",
                                  choices(kMaintenanceNames)};
  Param<int64_t> interval_{*this, "interval", 20, "iterations between two of these", range(1, 100'000)};
  Param<bool> last_step_{*this, "last_step", false, "at the end, each anchor becomes the mean of its cell"};
  Param<std::string> metric_{*this, "metric", "l2", "distance; cosine: between directions", choices(kMetricNames)};
  Param<std::string> bad_{*this, "bad", "refuse", "vectors with NaN or infinities", choices(kBadNames)};
  Param<int64_t> threads_{*this,          "threads",     0, "compute one fit; 0: a share of the run's",
                          range(0, 1024), counts_threads};

  std::atomic<bool> is_interrupted_{false};
#ifdef CODEBOOK_CUDA
  std::optional<gpu::FitOnGpu> on_gpu_; // while the GPU body runs
#endif
};

MILLRACE_HANDLER(FitCodebook, "codebook.fit", "Anneals the anchors of a codebook to vectors", kFitManual)

} // namespace
} // namespace millrace::codebook
