// The state of the nodes that run on this machine. Each `run --node` writes it to a file beside the key once a second,
// and `nodes` reads it there:
//
//   running-PID.json  {"version": 1, "pid", "pipeline", "node", "program", "state", "revision", "elapsed_s", "ticks",
//                      "nodes": […], "crossings": […]}
//
// The file is its user's alone. It is removed when the run is over. One of a process that died is removed by whoever
// reads it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>
#include <vector>

#include "node/fleet_look.h"
#include "observe/report.h"

namespace millrace::cli {

// A crossing, as its run and its link count it.
struct CrossingState {
  CrossingReport counts;
  node::CrossingLook look;
};
std::vector<CrossingState> join_crossings(const Report& report, const node::FleetLook& fleet);

// A crossing between two looks.
struct CrossingPace {
  CrossingState now;
  double parcels_per_s = 0, bytes_per_s = 0, left_out_per_s = 0;
  std::string waits_for; // "the reader", "the wire", "gpu", if ticks waited for it at most looks; else ""
};
// A crossing that `before` lacks has no rates yet.
std::vector<CrossingPace> paces_of(const std::vector<CrossingState>& before, const std::vector<CrossingState>& now,
                                   double seconds);

// The crossing that does worst, in a few words: "main/0>1 to gpu: 12/s left out (the reader)"; a node that is
// away; "" if all is well.
std::string trouble_words(const std::vector<CrossingPace>& paces, const node::FleetLook& fleet);

// Writes the file while it lives, with a thread of its own.
class NodeStatus {
 public:
  struct Options {
    std::filesystem::path folder;
    std::string pipeline, node, program;
    // Any thread.
    std::function<node::FleetLook()> fleet;
    std::function<Report()> report;
    std::function<void(const std::string&)> on_trouble; // once a second; trouble_words()
  };
  // Throws Failure if there is no thread. A folder that cannot be written is no reason not to run.
  explicit NodeStatus(Options options);
  ~NodeStatus();
  NodeStatus(const NodeStatus&) = delete;
  NodeStatus& operator=(const NodeStatus&) = delete;

 private:
  void loop();
  void look(double seconds);

  const Options options_;
  const std::filesystem::path file_;
  std::vector<CrossingState> before_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

// The states of all nodes that run here now, in the order of their processes.
std::vector<nlohmann::ordered_json> running_nodes(const std::filesystem::path& folder);
// One of them as a table.
std::string status_words(const nlohmann::ordered_json& status);

} // namespace millrace::cli
