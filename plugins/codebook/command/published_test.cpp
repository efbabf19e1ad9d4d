// See published_test.h.
#include "plugins/codebook/command/published_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "plugins/codebook/choice_names.h"
#include "plugins/codebook/command/pipeline_run.h"
#include "plugins/codebook/fingerprint.h"
#include "plugins/codebook/published_files.h"

namespace millrace::codebook {
namespace fs = std::filesystem;

namespace {

// The results of a fit, read from the files of its pipeline.
struct Given {
  uint32_t anchors = 0;
  uint64_t vectors_print = 0, labels_print = 0, codebook_print = 0;
  uint64_t file_bytes = 0;
  double energy = 0, fit_s = 0;
  std::vector<uint32_t> changes; // one number for each iteration
  // On a device: what the copy of the vectors took, and its bytes; and what was over before the first tick, which is
  // mostly the making of its context.
  double copy_s = 0, before_s = 0, run_s = 0;
  uint64_t copied_bytes = 0;
};

// The numbers of an .npy file, which are the last bytes of it.
uint64_t print_of_npy(const fs::path& path, uint64_t bytes) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  return fingerprint(std::as_bytes(std::span(all)).last(std::min<uint64_t>(bytes, all.size())));
}

// Times of a fit on a device. The launch was measured by the device itself.
void read_times(const nlohmann::json& report, const std::string& device, Given& given) {
  for (const nlohmann::json& region : report.at("regions"))
    if (region.at("domain") == device) given.fit_s = region.at("p50_us").get<double>() / 1e6;
  for (const nlohmann::json& transfer : report.at("transfers"))
    if (transfer.at("to") == device) {
      given.copy_s += transfer.at("p50_us").get<double>() / 1e6;
      given.copied_bytes += transfer.at("bytes").get<uint64_t>();
    }
}

Given read(const PublishedFit& fit, const fs::path& folder, const std::string& device) {
  Given given;
  const PublishedCodebook codebook = read_published((folder / "fit.idx").string());
  given.anchors = codebook.anchor_count;
  given.labels_print = fingerprint(std::as_bytes(std::span(codebook.labels)));
  given.codebook_print = fingerprint(std::as_bytes(std::span(codebook.anchors)));
  for (const std::string& file : published_paths((folder / "fit.idx").string()))
    given.file_bytes += fs::file_size(file);
  given.vectors_print = print_of_npy(folder / "vectors.npy", uint64_t{2} * fit.vectors * fit.dimensions);
  const nlohmann::json iterations = read_json(folder / "iterations.jsonl").at("records");
  for (const nlohmann::json& one : iterations) given.changes.push_back(one.at("changed"));
  given.energy = iterations.back().at("energy");
  const nlohmann::json report = read_json(folder / "report.json");
  given.run_s = report.at("duration_s").get<double>();
  device.empty() ? void(given.fit_s = seconds_of(report, "fit")) : read_times(report, device, given);
  return given;
}

// The parts that differ from what was published; none: it is the same.
std::vector<std::string> differences(const PublishedFit& fit, const Given& given) {
  std::vector<std::string> parts;
  const auto expect = [&](bool holds, const char* part) {
    if (!holds) parts.emplace_back(part);
  };
  expect(given.vectors_print == published_vectors(fit.vectors), "vectors");
  expect(given.changes.size() == fit.iterations, "iterations");
  expect(std::abs(given.energy - fit.energy) <= kPublishedEnergyError * fit.energy, "energy");
  expect(given.anchors == fit.anchors_at_end, "number of anchors");
  expect(given.labels_print == fit.labels, "labels");
  expect(given.codebook_print == fit.codebook, "anchors");
  if (const auto changes = published_changes(fit); !changes.empty())
    expect(std::ranges::equal(given.changes, changes), "changes");
  return parts;
}

constexpr int kNotThere = 3; // the exit code of a run whose device is not there

// One published fit, run on the host or on a device. Returns the run's exit code.
int make(const PublishedFit& fit, const std::string& device, bool hides_errors, Given& given) {
  const WorkFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  const int code = run_pipeline(published_pipeline(fit, folder.path().string(), device), folder.path() / "report.json",
                                {device.empty() ? "cpu" : "cpu," + device, hides_errors});
  if (code != 0) return code;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  given = read(fit, folder.path(), device);
  given.before_s = took.count() - given.run_s;
  return 0;
}

std::string verdict_of(const std::vector<std::string>& parts) {
  std::string verdict = parts.empty() ? "the same" : "differs: ";
  for (const std::string& part : parts) verdict += (&part == &parts.front() ? "" : ", ") + part;
  return verdict;
}

void print_host(const PublishedFit& fit, const Given& given, const std::vector<std::string>& parts) {
  fmt::print("{:>6} x {:<3} {:>4}  {:<8} {:<13} {:>5} {:>10.7f} {:>7.1f}ms {:>8} {:>7.2f}%  {}\n", fit.vectors,
             fit.dimensions, fit.anchors, name_of(fit.mean, kMeanNames), name_of(fit.maintenance, kMaintenanceNames),
             given.changes.size(), given.energy, given.fit_s * 1e3, given.file_bytes,
             100 * size_ratio(given.anchors, fit.dimensions, fit.vectors, 4), verdict_of(parts));
}

// The same fit on a device, beside the host's.
void print_device(const PublishedFit& fit, const Given& given, const Given& host, const std::string& device,
                  const std::vector<std::string>& parts) {
  fmt::print("{:>16}  on {:<20} {:>5} {:>10.7f} {:>7.2f}ms {:>8} {:>7.2f}%  {}; {:.1f} times as fast, energy {:+.1e}\n",
             "", device, given.changes.size(), given.energy, given.fit_s * 1e3, given.file_bytes,
             100 * size_ratio(given.anchors, fit.dimensions, fit.vectors, 4), verdict_of(parts),
             host.fit_s / given.fit_s, given.energy - host.energy);
  fmt::print("{:>16}  {} bytes copied up once, {:.3f} ms; context and start {:.0f} ms\n", "", given.copied_bytes,
             given.copy_s * 1e3, given.before_s * 1e3);
}

// Adds the parts in which a device's fit differs from the host's.
void add_differences(const Given& given, const Given& host, std::vector<std::string>& parts) {
  if (given.labels_print != host.labels_print) parts.emplace_back("labels from the host's");
  if (given.codebook_print != host.codebook_print) parts.emplace_back("anchors from the host's");
  if (given.changes != host.changes) parts.emplace_back("changes from the host's");
}

} // namespace

std::string published_pipeline(const PublishedFit& fit, const std::string& folder, const std::string& device) {
  const auto in_folder = [&](const char* name) { return in_quotes((fs::path(folder) / name).string()); };
  return "test.vectors name=vectors n=" + std::to_string(fit.vectors) + " d=" + std::to_string(fit.dimensions) +
         " ! codebook.fit name=fit m=" + std::to_string(fit.anchors) + " mean=" + name_of(fit.mean, kMeanNames) +
         " maintenance=" + name_of(fit.maintenance, kMaintenanceNames) + " budget=60m" +
         (device.empty() ? "" : " device=" + device) +
         "\n  fit.codebook ! codebook.write name=out layout=published path=" + in_folder("fit.idx") +
         "\n  fit.labels ! out.labels\n  fit.iterations ! record.to_json path=" + in_folder("iterations.jsonl") +
         "\n  vectors. ! tensor.to_npy path=" + in_folder("vectors.npy");
}

int run_published_fits(bool large, const std::string& device) {
  fmt::print("{:<12} {:>4}  {:<8} {:<13} {:>5} {:>10} {:>9} {:>8} {:>8}  {}\n", "vectors", "m", "mean", "maintenance",
             "its", "energy", "fit", "bytes", "of f32", "beside the published fit");
  bool all_alike = true, has_device = device != "cpu";
  const std::string other = device.empty() ? "cuda:0" : device;
  for (const PublishedFit& fit : kPublishedFits) {
    if (fit.is_large() && !large) continue;
    Given host, given;
    if (const int code = make(fit, "", false, host); code != 0) return code;
    std::vector<std::string> parts = differences(fit, host);
    all_alike = all_alike && parts.empty();
    print_host(fit, host, parts);
    if (has_device) {
      const int code = make(fit, other, device.empty(), given);
      has_device = code == 0;
      if (code != 0 && (!device.empty() || code != kNotThere)) return code;
    }
    if (has_device) {
      parts = differences(fit, given);
      add_differences(given, host, parts);
      all_alike = all_alike && parts.empty();
      print_device(fit, given, host, other, parts);
    }
    std::fflush(stdout);
  }
  if (device.empty() && !has_device)
    fmt::print("no GPU is used: {} is not there, or codebook.fit is built without nvcc\n", other);
  return all_alike ? 0 : 1;
}

} // namespace millrace::codebook
