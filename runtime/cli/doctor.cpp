// Looks at what this machine has. Every answer comes from loading or running the thing itself, not from a list of
// packages.
#include "cli/doctor.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/subprocess.h"
#include "compose/plugins.h"
#include "embed/compose.h"
#include "embed/device_module.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "observe/error_codes.h"
#include "observe/report.h"

namespace millrace::cli {
namespace fs = std::filesystem;

namespace {

constexpr int kChildSecondsMax = 20; // a codec that needs longer for three small pictures is useless
constexpr const char* kInstallMedia = "apt-get install libavformat-dev libavcodec-dev libswscale-dev, then build again";
constexpr const char* kInstallOpenCv = "apt-get install libopencv-dev, then build again";

// ---- devices

// One line for each device. If there is none: "!", the reason, "!", and a remedy. Asked in a process of its own,
// because a driver keeps threads and memory that a process cannot give back.
std::string asked_module() {
  const embed::LoadedModule& loaded = embed::cuda_module();
  std::string lines;
  for (uint32_t d = 0; loaded.module && d < loaded.count; ++d) lines += loaded.module->describe(d) + "\n";
  if (!lines.empty()) return lines;
  const char* remedy = "install the driver of the card's maker, if there is a card";
  if (loaded.path.empty()) remedy = "install the CUDA toolkit and build again, if there is a card";
  return "!" + loaded.why + "!" + remedy;
}

void add_cuda_devices(std::vector<Finding>& all) {
  const std::string told = run_in_subprocess(asked_module, kChildSecondsMax, true).told;
  if (told.empty()) return all.push_back({"devices", "cuda", false, "the driver is there and does not answer", ""});
  if (told[0] == '!') {
    const size_t end = told.rfind('!');
    return all.push_back({"devices", "cuda", false, told.substr(1, end - 1), told.substr(end + 1)});
  }
  std::istringstream lines(told);
  std::string words;
  for (int d = 0; std::getline(lines, words); ++d)
    all.push_back({"devices", fmt::format("cuda:{}", d), true, words, ""});
}

void add_devices(std::vector<Finding>& all) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  all.push_back({"devices", "cpu", true, fmt::format("{} cores", cores), ""});
  all.push_back({"devices", "sim", true, "simulated, for tests: --devices cpu,sim:0", ""});
  add_cuda_devices(all);
}

// ---- plugins

void add_plugins(const plugin::Registry& registry, std::vector<Finding>& all) {
  std::vector<std::string> seen;
  for (const plugin::LoadFailure& failure : registry.failures()) {
    std::string words = format_code(failure.error.code) + ": " + failure.error.what;
    for (const std::string& note : failure.error.notes) words += "; " + note;
    all.push_back({"plugins", failure.path, false, words, "millrace explain " + format_code(failure.error.code)});
  }
  const auto infos = registry.all();
  for (const plugin::RegisteredType* info : infos) {
    const std::string name = info->path.empty() ? "built in" : info->path;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    const auto types = std::count_if(infos.begin(), infos.end(), [&](const plugin::RegisteredType* other) {
      return other->path == info->path && other->plugin == info->plugin;
    });
    all.push_back({"plugins", name, true, fmt::format("{}, {} handler types", info->plugin, types), ""});
  }
}

// ---- codecs: tried by a pipeline that writes and, for videos, reads again

std::string outcome_of(const std::string& pipeline, const plugin::Registry& registry) {
  try {
    embed::Choices choices;
    choices.domains = {"cpu"};
    embed::Composition composition(graph::parse_line(pipeline), registry, exec::host_table(), choices);
    const auto run = composition.make_run({});
    run->start();
    const Result result = run->wait();
    return result.ok ? "ok" : result.error.what;
  } catch (const Failure& failure) {
    return failure.error().what;
  }
}

// `remedy`: the help if it does not work.
Finding tried(const std::string& name, const std::vector<std::string>& pipelines, const std::string& remedy,
              const plugin::Registry& registry) {
  const Subprocess apart = run_in_subprocess(
      [&] {
        for (const std::string& pipeline : pipelines)
          if (const std::string outcome = outcome_of(pipeline, registry); outcome != "ok") return outcome;
        return std::string("ok");
      },
      kChildSecondsMax, true);
  Finding found{"codecs", name, apart.told == "ok", "", ""};
  if (!apart.in_time)
    found.detail = "trying it took too long";
  else if (apart.signal)
    found.detail = "trying it ended the process";
  else
    found.detail = !found.there ? apart.told : pipelines.size() > 1 ? "written and read" : "written";
  if (!found.there) found.remedy = remedy;
  return found;
}

void add_codecs(const plugin::Registry& registry, std::vector<Finding>& all) {
  const bool videos = registry.find("video.writer") && registry.find("video.file");
  const bool pictures = registry.find("image.writer");
  std::string pattern = (fs::temp_directory_path() / "millrace-doctor-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw Failure(code::write_failed, "cannot make a folder like " + pattern);
  const std::string source = "test.pattern width=64 height=48 count=3 fps=25 format=bgr8 ! ";
  if (videos) {
    const std::string path = pattern + "/video.mp4";
    all.push_back(tried("video .mp4",
                        {source + "video.writer path=" + path, "video.file path=" + path + " ! null.sink"},
                        kInstallMedia, registry));
  } else {
    all.push_back(
        {"codecs", "FFmpeg", false, "the media plugin is not loaded: no video.file, no video.writer", kInstallMedia});
  }
  for (const char* extension : {"png", "jpg", "webp", "tiff", "bmp"})
    if (pictures)
      all.push_back(tried(std::string("picture .") + extension,
                          {source + "image.writer path=" + pattern + "/{index}." + extension},
                          "an OpenCV whose build has it: " + std::string(kInstallOpenCv), registry));
  if (!pictures)
    all.push_back(
        {"codecs", "OpenCV", false, "the OpenCV plugin is not loaded: no image.file, no image.writer", kInstallOpenCv});
  std::error_code ignored;
  fs::remove_all(pattern, ignored);
}

// The choices that types offer, such as encoders, each with the way to choose it. Asked in a process of its own,
// because a library that lists all that it has may start threads.
void add_offers(const plugin::Registry& registry, std::vector<Finding>& all) {
  using nlohmann::json;
  for (const plugin::RegisteredType* info : registry.all()) {
    if (!info->table->offers) continue;
    const auto asked = [&] {
      json offers = json::array();
      for (const Offer& offer : offers_of(*info)) offers.push_back({offer.part, offer.name, offer.words});
      return offers.dump();
    };
    const json offers = json::parse(run_in_subprocess(asked, kChildSecondsMax, true).told, nullptr, false);
    if (offers.is_discarded()) {
      all.push_back({info->type, info->type, false, "asking what it offers failed", ""});
      continue;
    }
    for (const json& offer : offers)
      all.push_back({info->type + " " + offer[0].get<std::string>(), offer[1], true, offer[2], ""});
  }
}

// Asks draw.text, because only it knows where it looks for a font.
Finding font(const plugin::Registry& registry) {
  const auto write = [&] { return outcome_of("test.pattern count=1 ! draw.text ! null.sink", registry); };
  const Subprocess apart = run_in_subprocess(write, kChildSecondsMax, true);
  if (apart.told == "ok") return {"fonts", "DejaVu Sans", true, "draw.text writes with it", ""};
  return {"fonts", "DejaVu Sans", false, apart.told, "apt-get install fonts-dejavu-core"};
}

} // namespace

std::vector<Finding> examine(const plugin::Registry& registry) {
  std::vector<Finding> codecs, all;
  add_codecs(registry, codecs);
  add_offers(registry, codecs);
  const Finding letters = font(registry); // these three make processes, so they come first, while there is one thread
  add_devices(all);
  add_plugins(registry, all);
  all.insert(all.end(), codecs.begin(), codecs.end());
  all.push_back(letters);
  return all;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text, part;
  size_t width = 0, missing = 0;
  for (const Finding& found : findings) width = std::max(width, std::min<size_t>(found.name.size(), 20));
  for (const Finding& found : findings) {
    if (found.part != part) text += (part.empty() ? "" : "\n") + found.part + "\n";
    part = found.part;
    text += fmt::format("  {}  {:<{}}  {}\n", found.there ? "yes" : "no ", found.name, width, found.detail);
    if (found.there || found.remedy.empty()) continue;
    text += fmt::format("       {:<{}}  try: {}\n", "", width, found.remedy);
    ++missing;
  }
  return text + (missing == 0 ? "\nnothing is missing\n" : fmt::format("\n{} could be added\n", missing));
}

std::string findings_json(const std::vector<Finding>& findings) {
  using nlohmann::ordered_json;
  ordered_json json = {{"version", 1}, {"findings", ordered_json::array()}};
  for (const Finding& found : findings)
    json["findings"].push_back({{"part", found.part},
                                {"name", found.name},
                                {"there", found.there},
                                {"detail", found.detail},
                                {"remedy", found.remedy}});
  return json.dump(2) + "\n";
}

int doctor(const DoctorCommand& command) {
  plugin::Registry registry;
  compose::scan_plugins(registry, command.plugin_paths);
  const std::vector<Finding> findings = examine(registry);
  write_file("-", command.json ? findings_json(findings) : findings_text(findings));
  return kDone;
}

} // namespace millrace::cli
