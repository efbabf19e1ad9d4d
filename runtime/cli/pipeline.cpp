// From the options of a command to a compiled pipeline.
#include "cli/pipeline.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cli/plugins.h"

namespace millrace::cli {

Compiled compile(const PipelineOptions& options, bool warn) {
  embed::Choices choices;
  choices.domains = embed::parse_domains(options.devices);
  choices.threads = options.threads;
  if (!options.clock.empty()) choices.clock = embed::parse_clock_mode(options.clock);
  if (!options.rate.empty()) choices.rate = embed::parse_rate(options.rate);
  choices.probe = !options.no_probe;
  if (!options.facts.empty()) choices.facts = read_file(options.facts);

  graph::Graph graph = graph::load(options.pipeline);
  for (const std::string& set : options.sets) graph::apply_set(graph, set);
  Compiled compiled;
  compiled.registry = std::make_unique<plugin::Registry>();
  if (needs_plugins(*compiled.registry, graph, options.plugin_paths))
    scan_plugins(*compiled.registry, options.plugin_paths);
  require_plugins(*compiled.registry, graph);
  if (warn) warn_of_failures(*compiled.registry, options.plugin_paths);
  compiled.composition =
      std::make_unique<embed::Composition>(std::move(graph), *compiled.registry, exec::host_table(), choices);
  return compiled;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(104, "cannot read " + path + ": " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::string& text) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int cause = errno;
  if (file && (path == "-" ? std::fflush(file) : std::fclose(file)) != 0) {
    written = false;
    cause = errno;
  }
  if (!written) throw Failure(606, "cannot write " + path + ": " + std::strerror(cause));
}

} // namespace millrace::cli
