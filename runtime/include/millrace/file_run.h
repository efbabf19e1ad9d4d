// A pipeline that an application runs as `millrace run` does: from a file, with the plugins and devices of this machine
// and the costs that were measured here, and as one node of several.
//
//   millrace::FileRunOptions options;
//   options.pipeline = "street.yaml";
//   options.node = "edge";
//   millrace::FileRun run(options);
//   millrace::Outcome outcome = run.run();
//
// An application that gives values to a pipeline, or takes some from it, uses Runtime (runtime.h).
//
// Threads: one makes it and calls run(). Any thread may call stop().
//
// Errors: RuntimeError if something that the user gave cannot be used, from the constructor or, if it shows when the
// nodes have met, from run(); std::logic_error for a second run().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "millrace/runtime.h"

namespace millrace {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // Texts are as on the command line; "" is as if the option were not given.
  struct FileRunOptions {
    std::string pipeline;          // a file, or a line
    std::vector<std::string> sets; // "blur.sigma=2"
    std::string devices;           // "": those that the pipeline gives to the node, else the host
    uint32_t threads = 0;          // number to plan for; 0: one for each core
    std::string clock, rate;
    std::string machine;     // a file of costs; "": the one that `millrace calibrate` keeps for this machine
    uint64_t ticks_max = 0;  // 0: the run ends with its sources
    int64_t duration_ns = 0; // 0: no limit
    // Folders of plugins in addition to the standard ones, and to `installed_plugins`, as in RuntimeOptions.
    std::vector<std::string> plugin_paths;
    std::string installed_plugins = RuntimeOptions().installed_plugins;

    std::string node; // the one to run, together with the others; "": all of them here
    // With `node`: where others reach this one, and where the first node is reached. Empty: as the pipeline and the
    // list of `millrace nodes` say.
    std::vector<std::string> listen, coordinator;
    int64_t patience_ns = 30'000'000'000; // with `node`: the run ends if a node is away for so long
    int64_t wait_ns = 0;                  // with `node`: for nodes that are missing before the start; 0: for ever

    // Receives warnings, notes of the nodes, and messages of handlers, one line each; one thread at a time. Null: they
    // are dropped.
    std::function<void(const std::string&)> on_message;
  };

  class FileRun {
   public:
    // Reads the pipeline and loads its plugins. Without `node` it also opens the sources and makes the plan.
    explicit FileRun(FileRunOptions options);
    ~FileRun();
    FileRun(const FileRun&) = delete;
    FileRun& operator=(const FileRun&) = delete;

    // Runs to the end, once. The report is that of the whole run on the node that the pipeline names first, and that of
    // its own part on another.
    Outcome run();
    // The sources end, and what is in flight is finished; on a node that is not the first one, this node leaves.
    // Returns at once. Before run(), the run ends as it begins.
    void stop();

   private:
    class Work;
    std::unique_ptr<Work> work_;
  };

} // namespace )
} // namespace millrace
