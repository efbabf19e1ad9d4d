// A pipeline as a command was given it: loaded, set, with its plugins, compiled.
#pragma once

#include <memory>
#include <string>

#include "cli/commands.h"
#include "embed/compose.h"

namespace millrace::cli {

// The members die in the reverse order: the composition first.
struct Compiled {
  std::unique_ptr<plugin::Registry> registry;
  std::unique_ptr<embed::Composition> composition;
};

// Throws Failure. Warnings of plugins go to stderr, but only where `warn` asks for them.
// `watch` is told of the handlers' calls; null: nobody is. With `kept`, mistakes that do not follow from each other are
// added to it, and MistakesKept is thrown where there are some.
Compiled compile(const PipelineOptions& options, bool warn, std::shared_ptr<plugin::CallWatch> watch = nullptr,
                 std::vector<Error>* kept = nullptr);

// What the bodies of its handlers take in each of the devices that were named.
std::vector<plan::BodyCost> measure_bodies(const PipelineOptions& options, uint64_t ticks);

// The machine file: the one that was named, else this machine's own; "": there is none.
std::string machine_path(const PipelineOptions& options);

// A whole file; throws Failure (MR0104).
std::string read_file(const std::string& path);
// To a file, or to stdout for "-"; throws Failure (MR0606).
void write_file(const std::string& path, const std::string& text);

} // namespace millrace::cli
