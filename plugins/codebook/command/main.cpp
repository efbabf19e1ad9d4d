// The program millrace-codebook, which `millrace codebook` runs in its place: compresses vectors of a file, says what a
// codebook's file has, and repeats the published fits. It runs pipelines for that, and --explain prints them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plugins/codebook/codebook_file.h"
#include "plugins/codebook/command/pipeline_run.h"
#include "plugins/codebook/command/published_test.h"
#include "plugins/codebook/published_files.h"

namespace millrace::codebook {
namespace {
namespace fs = std::filesystem;

constexpr int kFailed = 1, kWrongUsage = 2; // as the command's own

struct IndexOptions {
  std::string vectors, out;
  int64_t anchors = 256;
  std::vector<std::string> sets;
};

constexpr const char* kBudget = "60m"; // the longest there is

// The words of `index` that set parameters of codebook.fit. Throws CLI::ValidationError for those that the command
// sets.
std::string fit_of(const IndexOptions& options) {
  std::string fit = "codebook.fit name=fit m=" + std::to_string(options.anchors), budget = kBudget;
  for (const std::string& set : options.sets) {
    const size_t equals = set.find('=');
    const std::string key = set.substr(0, equals), value = set.substr(equals + 1);
    if (key == "m") throw CLI::ValidationError("--set", "m is set by --m");
    if (key == "name") throw CLI::ValidationError("--set", "the name of the handler stays fit");
    if (key == "budget")
      budget = value;
    else
      fit += " " + key + "=" + in_quotes(value);
  }
  return fit + " budget=" + in_quotes(budget);
}

// The pipeline of `index`. Deviations go into a file of our own alone.
std::string index_pipeline(const IndexOptions& options) {
  const bool published = names_published(options.out);
  return "tensor.from_npy name=vectors stacked=false path=" + in_quotes(options.vectors) + " ! " + fit_of(options) +
         "\n  fit.codebook ! codebook.write name=out path=" + in_quotes(options.out) +
         (published ? " layout=published" : "") + "\n  fit.labels ! out.labels\n  fit.iterations ! out.iterations" +
         (published ? "" : "\n  fit.deviations ! out.deviations");
}

void print_size(uint64_t bytes, uint64_t anchors, uint64_t dimensions, uint64_t vectors) {
  fmt::print("{} anchors of {} dimensions, {} vectors\n{} bytes", anchors, dimensions, vectors, bytes);
  if (vectors > 0) {
    const double numbers = static_cast<double>(vectors * dimensions),
                 percent = 100 * static_cast<double>(bytes) / numbers;
    fmt::print(": {:.2f} % of the vectors in single precision, {:.2f} % in half precision", percent / 4, percent / 2);
  }
  fmt::print("\n");
}

int info(const std::string& path) {
  if (is_published_index(path)) {
    const PublishedCodebook codebook = read_published(path);
    uint64_t bytes = 0;
    for (const std::string& file : published_paths(path)) bytes += fs::file_size(file);
    fmt::print("{}: a published index of three files\n", path);
    print_size(bytes, codebook.anchor_count, codebook.dimensions, codebook.labels.size());
    return 0;
  }
  const CodebookFile file(path);
  const CodebookView& view = file.view();
  fmt::print("{}: a codebook\n", path);
  print_size(file.bytes(), view.anchor_count, view.dimensions, view.labels.size());
  fmt::print("sections: settings, anchors{}{}\n", view.deviations.empty() ? "" : ", deviations",
             view.labels.empty() ? "" : ", labels");
  for (const char* key : {"iterations", "energy", "temperature", "converged"})
    if (const std::string value = setting(view.settings, key); !value.empty()) fmt::print("{}: {}\n", key, value);
  return 0;
}

int index(const std::string& line, const std::string& out) {
  const WorkFolder folder;
  const int code = run_pipeline(line, folder.path() / "report.json");
  if (code != 0) return code;
  const nlohmann::json report = read_json(folder.path() / "report.json");
  fmt::print("fitted in {:.3f} s\n", seconds_of(report, "fit"));
  return info(out);
}

int main_of(int argc, char** argv) {
  CLI::App app{"compresses vectors: each becomes the number of its cell, and each cell has an anchor",
               "millrace codebook"};
  app.require_subcommand(1);
  bool explain = false, large = false;
  IndexOptions options;
  std::string file, line, device;
  CLI::App& index_app = *app.add_subcommand("index", "fits a codebook to the vectors of a file and writes it");
  index_app.add_option("--emb", options.vectors, "the vectors: .npy, [n, d], float16 or float32")
      ->type_name("FILE")
      ->required();
  index_app.add_option("--m", options.anchors, "anchors; default: 256")->type_name("M");
  index_app.add_option("--out", options.out, "the file to write; one that ends with .idx: the three published files")
      ->type_name("FILE")
      ->required();
  index_app
      .add_option("--set", options.sets,
                  "a parameter of codebook.fit, such as mean=plain; may be given again (millrace inspect codebook.fit)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->check(CLI::Validator(
          [](const std::string& text) { return text.find('=') == std::string::npos ? text + " has no =" : ""; }, ""));
  index_app.add_flag("--explain", explain, "print the pipeline and end");
  CLI::App& info_app = *app.add_subcommand("info", "says what a codebook's file has, and looks at every byte of it");
  info_app.add_option("FILE", file, "a codebook, or a published index that ends with .idx")->required();
  CLI::App& test_app = *app.add_subcommand("test", "repeats the published fits and compares them, to the bit");
  test_app.add_flag("--large", large, "those of 10,000 vectors, too");
  test_app
      .add_option("--device", device,
                  "where else the fits run: a GPU, or cpu for the host alone; default: cuda:0 if it is there")
      ->type_name("DEVICE");
  test_app.add_flag("--explain", explain, "print the pipelines and end");
  try {
    app.parse(argc, argv);
    if (index_app.parsed()) line = index_pipeline(options);
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? 0 : kWrongUsage;
  }
  if (info_app.parsed()) return info(file);
  if (!explain) return index_app.parsed() ? index(line, options.out) : run_published_fits(large, device);
  const bool on_device = !device.empty() && device != "cpu";
  const std::string devices = on_device ? " --devices cpu," + device : "";
  const auto print_run = [&](const std::string& pipeline) {
    fmt::print("millrace run {}{}\n", in_quotes(pipeline), devices);
  };
  if (index_app.parsed()) print_run(line);
  if (test_app.parsed())
    for (const PublishedFit& fit : kPublishedFits)
      if (large || !fit.is_large()) print_run(published_pipeline(fit, ".", on_device ? device : ""));
  return 0;
}

} // namespace
} // namespace millrace::codebook

int main(int argc, char** argv) {
  try {
    return millrace::codebook::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return millrace::codebook::kFailed;
  }
}
