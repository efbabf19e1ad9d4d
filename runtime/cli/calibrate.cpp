// `millrace calibrate`: measures the costs that the plan uses, prints them, and keeps them in the machine file.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "compose/pipeline.h"
#include "embed/calibrate.h"
#include "observe/error_codes.h"

namespace millrace::cli {

namespace {

std::string hop_words(const plan::Hop& hop) {
  std::string words = fmt::format("  {:<16} {:>9.1f}", hop.from + " → " + hop.to, hop.price.latency_us);
  for (size_t i = 0; i < plan::kHopSizes.size(); ++i) {
    const auto bytes = static_cast<double>(plan::kHopSizes[i]);
    words += fmt::format(" {:>10.1f} /{:>8.1f}", hop.price.copy_us(bytes), hop.price.p99_us[i]);
  }
  if (hop.price.overlaps_compute) words += "  overlaps compute";
  if (!hop.engine.empty()) words += ", takes turns in " + hop.engine;
  return words;
}

std::string body_words(const plan::BodyCost& body) {
  const std::string items = body.items > 1 ? std::to_string(body.items) + " items  " : "";
  return fmt::format("  {:<18} {:<8} {:>10} {:>10.1f} /{:>9.1f}  {}{}", body.type, body.domain, body.bytes, body.p50_us,
                     body.p99_us, items, body.settings);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", *std::gmtime(&now));
}

} // namespace

int calibrate(const CalibrateCommand& command) {
  const std::string path = compose::machine_path(command);
  if (path.empty()) throw Failure(code::unwritable_file, "there is no folder for settings: name a file with --machine");
  embed::MachineFile file = embed::load_machine(path, false);
  std::vector<plan::Hop> hops = embed::measure_hops(file, compose::domains_of(command));
  std::vector<plan::LaunchCost> launches = embed::measure_launches(file, compose::domains_of(command));
  std::vector<plan::BodyCost> bodies;
  if (!command.pipeline.empty()) bodies = compose::measure_bodies(command, command.ticks, print_warning);
  if (!hops.empty()) {
    std::printf("hops, µs: latency, then median / p99 of 4 KiB, 64 KiB, 1 MiB and 16 MiB\n");
    for (const plan::Hop& hop : hops) std::printf("%s\n", hop_words(hop).c_str());
  }
  if (!launches.empty()) std::printf("launches, µs a tick: of a region, of a copy\n");
  for (const plan::LaunchCost& cost : launches)
    std::printf("%s\n", fmt::format("  {:<16} {:>9.1f} {:>9.1f}", cost.domain, cost.region_us, cost.copy_us).c_str());
  if (!bodies.empty()) std::printf("bodies: bytes read, then µs a call, median / p99\n");
  for (const plan::BodyCost& body : bodies) std::printf("%s\n", body_words(body).c_str());
  if (hops.empty() && bodies.empty()) {
    std::printf("nothing to measure: name devices (--devices cpu,sim:0), or a pipeline with handlers to time\n");
    return kDone;
  }
  embed::merge(file, std::move(hops), std::move(bodies), std::move(launches));
  file.machine = embed::host_name();
  file.date = today();
  embed::save_machine(path, file);
  std::printf("kept in %s\n", path.c_str());
  return kDone;
}

} // namespace millrace::cli
