// Fits of codebooks that stay on the GPU: device time of a captured fit, beside the host's fit and other people's
// k-means on the same GPU.
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "bench.h"
#include "tests/codebook/on_gpu_fit.h"

namespace millrace::test {
namespace {

using namespace codebook;

constexpr int kFits = 200;

struct Times {
  double p50, p99; // ms
};
Times sorted(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all[all.size() * 99 / 100]};
}
template <class Element>
Times on_gpu(const Question<Element>& asked, int fits = kFits) {
  FitRig<Element> rig(asked, false);
  const cudaGraphExec_t exec = rig.capture();
  rig.time_of(exec); // loads what the driver has not loaded yet
  std::vector<double> all;
  for (int n = 0; n < fits; ++n) all.push_back(double{rig.time_of(exec)});
  checked(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
  return sorted(std::move(all));
}

// The same fit on the host, with what its handler does before: vectors are read into rows.
template <class Element>
Times on_host(const Question<Element>& asked, uint32_t threads, int fits) {
  std::vector<double> all;
  for (int n = 0; n < fits; ++n) {
    const auto begin = std::chrono::steady_clock::now();
    const Points points = points_of(asked.vectors, asked.dimensions);
    fit_of(points, asked.settings, threads);
    all.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return sorted(std::move(all));
}

// From its own first anchors, all iterations whatever they change.
Question<Float16> from_given(Question<Float16> asked, uint32_t iterations) {
  FitSettings first = asked.settings;
  first.iterations = 1;
  first.rate = 0; // anchors stay
  first.maintenance = Maintenance::none;
  Question<Float16> chosen = asked;
  chosen.settings = first;
  asked.given = by_host(chosen).codebook;
  asked.settings.start = Start::given;
  asked.settings.iterations = iterations;
  asked.settings.tolerance = 0;
  return asked;
}

void time_fit(const char* name, const Question<Float16>& asked, uint32_t threads, int host_fits, int fits) {
  const Times whole = on_gpu(asked, fits), host = on_host(asked, threads, host_fits);
  const Times given = on_gpu(from_given(asked, static_cast<uint32_t>(by_host(asked, 16).iterations.size())), fits);
  row("| %s | %.3f / %.3f | %.3f / %.3f | %.2f, %u thread%s | %.1f |", name, whole.p50, whole.p99, given.p50, given.p99,
      host.p50, threads, threads > 1 ? "s" : "", host.p50 / whole.p50);
}

// Prints what the script prints: a row for each rival.
void print_rivals(double ours_ms) {
  const std::string command = "python3 tests/cuda/codebook_rivals.py " + std::to_string(ours_ms);
  const std::unique_ptr<FILE, int (*)(FILE*)> script(popen(command.c_str(), "r"), &pclose);
  std::array<char, 512> line{};
  while (script && std::fgets(line.data(), line.size(), script.get())) std::fputs(line.data(), stdout);
  std::fflush(stdout);
}

} // namespace

void bench_codebook() {
  checked(cudaSetDevice(0), "cudaSetDevice");
  row("\n### codebook: a fit of resident vectors, captured, ms; p50 / p99 of %d fits\n", kFits);
  row("%s",
      "| vectors, anchors, mean, maintenance | with first anchors | from given anchors, as many iterations | host | "
      "times |");
  row("%s", "|---|---|---|---|---|");
  constexpr const char* kNames[] = {"1,000 × 64, 32, trimmed (8 iterations)", "1,000 × 64, 32, plain (13)",
                                    "10,000 × 128, 256, trimmed (31)", "10,000 × 128, 256, trimmed, as published (31)",
                                    "10,000 × 128, 256, plain (26)"};
  constexpr size_t kWhich[] = {4, 6, 9, 8, 11}; // of the published ones
  for (size_t n = 0; n < std::size(kWhich); ++n)
    time_fit(kNames[n], published(kPublishedFits[kWhich[n]]), 1, 15, kFits);
  Question<Float16> large;
  large.vectors = mixture(100'000, 384, 1024, 1.0f, 1);
  large.dimensions = 384;
  large.settings.anchors = 1024;
  large.settings.iterations = 31;
  time_fit("100,000 × 384, 1,024, trimmed (31 at most)", large, 16, 1, 10);

  const Question<Float16> same = from_given(published(kPublishedFits[9]), 31);
  const Times ours = on_gpu(same);
  row("\n### codebook beside others: 10,000 × 128, 256 anchors, 31 iterations from the same first anchors, ms\n");
  row("%s", "| program | p50 / p99 | its p50 over ours |");
  row("%s", "|---|---|---|");
  row("| codebook.fit, trimmed means | %.3f / %.3f | 1 |", ours.p50, ours.p99);
  print_rivals(ours.p50);
}

} // namespace millrace::test
