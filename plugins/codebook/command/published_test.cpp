// See published_test.h.
#include "plugins/codebook/command/published_test.h"

#include <fmt/format.h>

#include <algorithm>
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
};

// The numbers of an .npy file, which are the last bytes of it.
uint64_t print_of_npy(const fs::path& path, uint64_t bytes) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  return fingerprint(std::as_bytes(std::span(all)).last(std::min<uint64_t>(bytes, all.size())));
}

Given read(const PublishedFit& fit, const fs::path& folder) {
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
  given.fit_s = seconds_of(read_json(folder / "report.json"), "fit");
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

} // namespace

std::string published_pipeline(const PublishedFit& fit, const std::string& folder) {
  const auto in_folder = [&](const char* name) { return in_quotes((fs::path(folder) / name).string()); };
  return "test.vectors name=vectors n=" + std::to_string(fit.vectors) + " d=" + std::to_string(fit.dimensions) +
         " ! codebook.fit name=fit m=" + std::to_string(fit.anchors) + " mean=" + name_of(fit.mean, kMeanNames) +
         " maintenance=" + name_of(fit.maintenance, kMaintenanceNames) +
         " budget=60m\n  fit.codebook ! codebook.write name=out layout=published path=" + in_folder("fit.idx") +
         "\n  fit.labels ! out.labels\n  fit.iterations ! record.to_json path=" + in_folder("iterations.jsonl") +
         "\n  vectors. ! tensor.to_npy path=" + in_folder("vectors.npy");
}

int run_published_fits(bool large) {
  fmt::print("{:<12} {:>4}  {:<8} {:<13} {:>5} {:>10} {:>9} {:>8} {:>8}  {}\n", "vectors", "m", "mean", "maintenance",
             "its", "energy", "fit", "bytes", "of f32", "beside the published fit");
  bool all_alike = true;
  for (const PublishedFit& fit : kPublishedFits) {
    if (fit.is_large() && !large) continue;
    const WorkFolder folder;
    const int code = run_pipeline(published_pipeline(fit, folder.path().string()), folder.path() / "report.json");
    if (code != 0) return code;
    const Given given = read(fit, folder.path());
    const std::vector<std::string> parts = differences(fit, given);
    all_alike = all_alike && parts.empty();
    std::string verdict = parts.empty() ? "the same" : "differs: ";
    for (const std::string& part : parts) verdict += (&part == &parts.front() ? "" : ", ") + part;
    fmt::print("{:>6} x {:<3} {:>4}  {:<8} {:<13} {:>5} {:>10.7f} {:>7.1f}ms {:>8} {:>7.2f}%  {}\n", fit.vectors,
               fit.dimensions, fit.anchors, name_of(fit.mean, kMeanNames), name_of(fit.maintenance, kMaintenanceNames),
               given.changes.size(), given.energy, given.fit_s * 1e3, given.file_bytes,
               100 * size_ratio(given.anchors, fit.dimensions, fit.vectors, 4), verdict);
    std::fflush(stdout);
  }
  return all_alike ? 0 : 1;
}

} // namespace millrace::codebook
