// The same work in millrace: null.source → flow.pass × N → null.sink on one thread, and the picture chain on two.
#include "bench/measure.h"
#include "device/cpu/cpu_device.h"
#include "exec/run_options.h"
#include "observe/report.h"
#include "plan/plan.h"
#include "tests/peers/peer.h"

namespace {

double chain_ns(unsigned handlers, unsigned messages) {
  // Two more, which the slope between two lengths does not see.
  const millrace::Report report =
      millrace::bench::run_graph(millrace::bench::chain(handlers + 2), 1, uint64_t{messages} + peers::kWarmMessages);
  return report.duration_s * 1e9 / static_cast<double>(report.ticks_run);
}

// Its warm-up counts: a run's time begins with its first tick.
double pictures_per_second(const peers::Job& job) {
  const std::string line =
      "test.pattern width=" + std::to_string(peers::kWidth) + " height=" + std::to_string(peers::kHeight) +
      " format=" + job.format + " ! image.convert to=" + job.to +
      " ! image.resize width=" + std::to_string(peers::kTargetWidth) +
      " height=" + std::to_string(peers::kTargetHeight) + " ! draw.text size=24 text=" + peers::kText + " ! null.sink";
  millrace::exec::RunOptions options; // as the command runs it
  options.ticks_max = job.count;
  const millrace::Report report = millrace::bench::run_graph(millrace::graph::parse_line(line), 2, options);
  return static_cast<double>(report.ticks_run) / report.duration_s;
}

} // namespace

int main(int argc, char** argv) {
  const peers::Job job = peers::job_of(argc, argv);
  try {
    std::printf("%.3f\n", job.chain ? chain_ns(job.handlers, job.count) : pictures_per_second(job));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
