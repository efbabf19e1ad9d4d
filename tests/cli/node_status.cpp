// The state of running nodes: how crossings do, the file, and its table.
#include "cli/node_status.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

Report report_with(uint64_t parcels, std::map<std::string, uint64_t> left_out) {
  Report report;
  report.crossings.resize(1);
  report.crossings[0] = {"main/0>1", "gpu", true, parcels, parcels * 1000, 0, std::move(left_out)};
  return report;
}

node::FleetLook fleet_with(uint64_t looks, uint64_t reader, uint64_t wire, uint64_t away) {
  node::FleetLook fleet;
  fleet.revision = 1;
  fleet.has_started = true;
  fleet.peers = {{{"gpu", away > 0 ? "away" : "there", 310, -1200, 90}, "mr:4FQK-AAAA", "10.0.0.2:7433", "0.9", 12}};
  fleet.crossings = {{"main/0>1", true, 100, 98, looks, reader, wire, away}};
  return fleet;
}

// The words after a second in which the counters went up to these.
std::string words_after(uint64_t left_out, const node::FleetLook& fleet) {
  const std::vector<CrossingState> before = join_crossings(report_with(70, {{"link", 5}}), fleet_with(20, 3, 3, 0));
  const std::vector<CrossingState> now = join_crossings(report_with(100, {{"link", 5 + left_out}}), fleet);
  return trouble_words(paces_of(before, now, 2), fleet);
}

} // namespace

TEST_CASE("a crossing that does badly is told with what it waits for") {
  CHECK(words_after(0, fleet_with(40, 3, 3, 0)) == "");
  CHECK(words_after(0, fleet_with(40, 12, 3, 0)) == ""); // at less than half of the looks
  CHECK(words_after(0, fleet_with(40, 20, 4, 0)) == "main/0>1 to gpu waits for the reader");
  CHECK(words_after(0, fleet_with(40, 4, 20, 0)) == "main/0>1 to gpu waits for the wire");
  CHECK(words_after(24, fleet_with(40, 20, 4, 0)) == "main/0>1 to gpu: 12/s left out (the reader)");
  CHECK(words_after(24, fleet_with(40, 3, 3, 20)) == "main/0>1 to gpu: 12/s left out (gpu is away)");
  CHECK(words_after(24, fleet_with(40, 3, 3, 0)) == "main/0>1 to gpu: 12/s left out");
}

TEST_CASE("a node that is away is told though no tick is held up") {
  node::FleetLook fleet = fleet_with(40, 3, 3, 0);
  fleet.peers[0].link.state = "away";
  CHECK(words_after(0, fleet) == "away: gpu");
  fleet.has_started = false;
  CHECK(words_after(0, fleet) == "");
}

TEST_CASE("rates are those of the time between two looks, and a counter that begins anew has none") {
  const node::FleetLook fleet = fleet_with(40, 0, 0, 0);
  const std::vector<CrossingState> before = join_crossings(report_with(70, {{"link", 5}}), fleet);
  const std::vector<CrossingPace> paces = paces_of(before, join_crossings(report_with(100, {{"link", 5}}), fleet), 2);
  REQUIRE(paces.size() == 1);
  CHECK(paces[0].parcels_per_s == 15);
  CHECK(paces[0].bytes_per_s == 15'000);
  CHECK(paces[0].left_out_per_s == 0);
  CHECK(paces[0].waits_for == "");
  CHECK(paces_of(before, join_crossings(report_with(7, {}), fleet), 2)[0].parcels_per_s == 0);
  CHECK(paces_of({}, before, 0.001)[0].parcels_per_s == 0);
}

TEST_CASE("the file of a node that runs is its user's alone, whatever the umask and whatever lay there before") {
  const fs::path folder = fs::temp_directory_path() / ("node-status-mode-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path own = folder / ("running-" + std::to_string(getpid()) + ".json");
  const mode_t before = umask(0);
  for (const fs::path& file : {own, fs::path(own.string() + ".new")}) std::ofstream(file) << "{}";
  {
    NodeStatus::Options options;
    options.folder = folder;
    options.fleet = [] { return node::FleetLook{}; };
    options.report = [] { return Report{}; };
    std::atomic<int> looks{0};
    options.on_trouble = [&](const std::string&) { ++looks; };
    const NodeStatus status(options);
    while (looks < 2) std::this_thread::yield(); // it has written once
    CHECK(fs::status(own).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
    CHECK(running_nodes(folder).size() == 1);
  }
  CHECK(!fs::exists(own));
  umask(before);
  fs::remove_all(folder);
}

TEST_CASE("files of processes that live are read, in words too, and that of one that died is removed") {
  const fs::path folder = fs::temp_directory_path() / ("node-status-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path own = folder / ("running-" + std::to_string(getpid()) + ".json");
  std::ofstream(own)
      << R"({"pid": 7, "pipeline": "p.yaml", "node": "edge", "program": "0.9", "state": "runs", "revision": 1,
    "elapsed_s": 12.4, "ticks": 300, "nodes": [{"name": "gpu", "id": "mr:4FQK-AAAA", "address": "10.0.0.2:7433",
    "state": "there", "since_s": 12.2, "program": "", "round_trip_us": 310, "offset_us": -1200, "offset_error_us": 90}],
    "crossings": [{"name": "main/0>1", "direction": "to", "node": "gpu", "parcels_per_s": 25, "bytes_per_s": 1500000,
    "sent": 100, "acknowledged": 98, "left_out": {"away": 2, "link": 5}, "waits_for": "the reader"}]})";
  const fs::path dead = folder / "running-99999999.json"; // no process has so large a number
  std::ofstream(dead) << "{}";
  std::ofstream(folder / "peers.txt") << "";
  std::ofstream(folder / "running-nobody.json") << "{}";
  const std::vector<nlohmann::ordered_json> running = running_nodes(folder);
  REQUIRE(running.size() == 1);
  CHECK(status_words(running[0]) ==
        R"(edge of p.yaml, process 7, version 0.9: runs for 12 s, 300 ticks, plan 1
  node  id            address        state           version  round trip  clock is ahead by
  gpu   mr:4FQK-AAAA  10.0.0.2:7433  there for 12 s  -        0.31 ms     -1.20 ms, error 0.09 ms
  crossing         ticks/s  MB/s  sent  acknowledged  left out        waits for
  main/0>1 to gpu  25.0     1.50  100   98            away 2, link 5  the reader
)");
  CHECK(status_words(nlohmann::ordered_json::parse(R"({"version": 2})")) == "");
  CHECK(!fs::exists(dead));
  std::ofstream(own, std::ios::trunc) << "{ a part";
  CHECK(running_nodes(folder).empty());
  fs::remove_all(folder);
}

} // namespace millrace::cli
