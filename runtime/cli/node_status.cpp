// Writes, reads and prints the state of running nodes; see node_status.h.
#include "cli/node_status.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "net/system/descriptor.h"
#include "observe/printable.h"
#include "observe/secrets.h"
#include "observe/start_thread.h"

namespace millrace::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::chrono::seconds kEvery{1};
constexpr double kMostLooks = 0.5; // ticks that wait for a moment are no trouble
constexpr size_t kStatusBytesMax = 4 << 20;
constexpr const char* kPrefix = "running-";

uint64_t sum_of(const std::map<std::string, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [cause, count] : counts) sum += count;
  return sum;
}

// A counter that began anew has counted nothing since.
double rate(uint64_t before, uint64_t now, double seconds) {
  return now > before && seconds > 0 ? static_cast<double>(now - before) / seconds : 0;
}

std::string direction_words(const CrossingReport& crossing) {
  return crossing.name + (crossing.departs ? " to " : " from ") + crossing.node;
}

ordered_json json_of(const node::PeerLook& peer) {
  return {{"name", peer.link.node},
          {"id", peer.id},
          {"address", peer.address},
          {"state", peer.link.state},
          {"since_s", peer.since_s},
          {"program", peer.program},
          {"round_trip_us", peer.link.round_trip_us},
          {"offset_us", peer.link.offset_us},
          {"offset_error_us", peer.link.offset_error_us}};
}

ordered_json json_of(const CrossingPace& pace) {
  const CrossingReport& counts = pace.now.counts;
  return {{"name", counts.name},
          {"direction", counts.departs ? "to" : "from"},
          {"node", counts.node},
          {"parcels", counts.parcels},
          {"bytes", counts.bytes},
          {"parcels_per_s", pace.parcels_per_s},
          {"bytes_per_s", pace.bytes_per_s},
          {"sent", pace.now.look.sent},
          {"acknowledged", pace.now.look.acknowledged},
          {"left_out", counts.left_out},
          {"waits_for", pace.waits_for}};
}

// Readers see the file before or the file after, and never a part. It names addresses and machines, so it is its user's
// alone. It is not worth a write to the disk that is waited for.
void replace(const fs::path& file, std::string_view text) {
  const fs::path unfinished = file.string() + ".new";
  ::unlink(unfinished.c_str()); // a process that died may have left it, with any mode
  const net::Descriptor out(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out) return;
  while (!text.empty()) {
    const ssize_t written = ::write(out.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
  std::error_code ignored;
  fs::rename(unfinished, file, ignored);
}

// The process that a file is named after; none if it is no such file.
std::optional<pid_t> process_of(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kPrefix) || file.extension() != ".json") return std::nullopt;
  try {
    return static_cast<pid_t>(std::stol(name.substr(std::char_traits<char>::length(kPrefix))));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool is_gone(pid_t process) { return process <= 0 || (kill(process, 0) != 0 && errno == ESRCH); }

} // namespace

// ---- crossings -----------------------------------------------------------------------------------------------------

std::vector<CrossingState> join_crossings(const Report& report, const node::FleetLook& fleet) {
  std::vector<CrossingState> all;
  for (const CrossingReport& counts : report.crossings) {
    CrossingState& state = all.emplace_back();
    state.counts = counts;
    for (const node::CrossingLook& look : fleet.crossings)
      if (look.name == counts.name && look.departs == counts.departs) state.look = look;
  }
  return all;
}

std::vector<CrossingPace> paces_of(const std::vector<CrossingState>& before, const std::vector<CrossingState>& now,
                                   double seconds) {
  std::vector<CrossingPace> paces;
  for (const CrossingState& state : now) {
    CrossingPace& pace = paces.emplace_back();
    pace.now = state;
    const auto same = std::find_if(before.begin(), before.end(), [&](const CrossingState& one) {
      return one.counts.name == state.counts.name && one.counts.departs == state.counts.departs;
    });
    if (same == before.end()) continue;
    const CrossingState& then = *same;
    pace.parcels_per_s = rate(then.counts.parcels, state.counts.parcels, seconds);
    pace.bytes_per_s = rate(then.counts.bytes, state.counts.bytes, seconds);
    pace.left_out_per_s = rate(sum_of(then.counts.left_out), sum_of(state.counts.left_out), seconds);
    const double looks = rate(then.look.looks, state.look.looks, 1);
    const std::pair<double, std::string> waits[] = {
        {rate(then.look.waits_for_reader, state.look.waits_for_reader, 1), "the reader"},
        {rate(then.look.waits_for_wire, state.look.waits_for_wire, 1), "the wire"},
        {rate(then.look.waits_for_node, state.look.waits_for_node, 1), state.counts.node}};
    const auto& most = *std::max_element(std::begin(waits), std::end(waits));
    const double all = waits[0].first + waits[1].first + waits[2].first;
    if (all > 0 && all >= kMostLooks * looks) pace.waits_for = most.second;
  }
  return paces;
}

std::string trouble_words(const std::vector<CrossingPace>& paces, const node::FleetLook& fleet) {
  const CrossingPace* worst = nullptr;
  for (const CrossingPace& pace : paces) {
    if (pace.left_out_per_s == 0 && pace.waits_for.empty()) continue;
    if (!worst || pace.left_out_per_s > worst->left_out_per_s) worst = &pace;
  }
  if (worst) {
    const CrossingReport& counts = worst->now.counts;
    const bool is_away = worst->waits_for == counts.node;
    const std::string why = is_away ? counts.node + " is away" : worst->waits_for;
    if (worst->left_out_per_s == 0) return direction_words(counts) + (is_away ? ": " : " waits for ") + why;
    return fmt::format("{}: {:.0f}/s left out{}", direction_words(counts), std::max(worst->left_out_per_s, 1.0),
                       why.empty() ? "" : " (" + why + ")");
  }
  std::string away;
  for (const node::PeerLook& peer : fleet.peers)
    if (peer.link.state == "away") away += (away.empty() ? "" : ", ") + peer.link.node;
  return away.empty() || !fleet.has_started || fleet.is_over ? "" : "away: " + away;
}

// ---- the file ------------------------------------------------------------------------------------------------------

NodeStatus::NodeStatus(Options options)
    : options_(std::move(options)), file_(options_.folder / fmt::format("{}{}.json", kPrefix, getpid())) {
  thread_ = start_thread("the thread that writes the node's state", [this] { loop(); });
}

NodeStatus::~NodeStatus() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
  std::error_code ignored;
  fs::remove(file_, ignored);
}

void NodeStatus::loop() {
  using Clock = std::chrono::steady_clock;
  auto looked = Clock::now();
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    const auto now = Clock::now();
    look(std::chrono::duration<double>(now - std::exchange(looked, now)).count());
    lock.lock();
  } while (!wake_.wait_for(lock, kEvery, [&] { return ends_; }));
}

void NodeStatus::look(double seconds) {
  const node::FleetLook fleet = options_.fleet();
  const Report report = options_.report();
  std::vector<CrossingState> now = join_crossings(report, fleet);
  const std::vector<CrossingPace> paces = paces_of(before_, now, seconds);
  before_ = std::move(now);
  options_.on_trouble(trouble_words(paces, fleet));
  const char* const state = fleet.is_over ? "over" : fleet.has_started ? "runs" : "waits";
  ordered_json json = {{"version", 1},
                       {"pid", getpid()},
                       {"pipeline", options_.pipeline},
                       {"node", options_.node},
                       {"program", options_.program},
                       {"state", state},
                       {"revision", fleet.revision},
                       {"elapsed_s", fleet.has_started ? report.duration_s : 0},
                       {"ticks", report.ticks_run},
                       {"nodes", ordered_json::array()},
                       {"crossings", ordered_json::array()}};
  for (const node::PeerLook& peer : fleet.peers) json["nodes"].push_back(json_of(peer));
  for (const CrossingPace& pace : paces) json["crossings"].push_back(json_of(pace));
  hide_secrets(json);
  replace(file_, json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::vector<ordered_json> running_nodes(const fs::path& folder) {
  std::map<pid_t, ordered_json> running;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::optional<pid_t> process = process_of(entry.path());
    if (!process || fs::file_size(entry.path(), ignored) > kStatusBytesMax) continue;
    if (is_gone(*process)) {
      fs::remove(entry.path(), ignored);
      continue;
    }
    std::ifstream in(entry.path());
    ordered_json status = ordered_json::parse(in, nullptr, false);
    if (status.is_object()) running[*process] = std::move(status);
  }
  std::vector<ordered_json> all;
  for (auto& [process, status] : running) all.push_back(std::move(status));
  return all;
}

// ---- as a table ----------------------------------------------------------------------------------------------------

namespace {

using Cells = std::vector<std::string>;

std::string aligned(const std::vector<Cells>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const Cells& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) line += fmt::format("  {:<{}}", printable(row[c]), widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string left_out_words(const ordered_json& causes) {
  std::string words;
  for (const auto& [cause, count] : causes.items())
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", cause, count.get<uint64_t>());
  return words.empty() ? "-" : words;
}

std::string or_dash(const ordered_json& text) {
  return text.get<std::string>().empty() ? "-" : text.get<std::string>();
}

std::string ms_words(double us) { return fmt::format("{:.2f} ms", us / 1e3); }

Cells row_of_node(const ordered_json& node) {
  const double round_trip_us = node.at("round_trip_us");
  const std::string since =
      fmt::format("{} for {:.0f} s", node.at("state").get<std::string>(), node.at("since_s").get<double>());
  const std::string offset = fmt::format("{:+.2f} ms, error {}", node.at("offset_us").get<double>() / 1e3,
                                         ms_words(node.at("offset_error_us")));
  const bool is_measured = round_trip_us > 0;
  return {node.at("name"),
          node.at("id"),
          or_dash(node.at("address")),
          since,
          or_dash(node.at("program")),
          is_measured ? ms_words(round_trip_us) : "-",
          is_measured ? offset : "-"};
}

Cells row_of_crossing(const ordered_json& crossing) {
  return {fmt::format("{} {} {}", crossing.at("name").get<std::string>(), crossing.at("direction").get<std::string>(),
                      crossing.at("node").get<std::string>()),
          fmt::format("{:.1f}", crossing.at("parcels_per_s").get<double>()),
          fmt::format("{:.2f}", crossing.at("bytes_per_s").get<double>() / 1e6),
          std::to_string(crossing.at("sent").get<uint64_t>()),
          std::to_string(crossing.at("acknowledged").get<uint64_t>()),
          left_out_words(crossing.at("left_out")),
          or_dash(crossing.at("waits_for"))};
}

} // namespace

std::string status_words(const ordered_json& status) {
  try {
    const std::string state = status.at("state");
    std::string words = fmt::format("{} of {}, process {}, version {}: ", status.at("node").get<std::string>(),
                                    printable(status.at("pipeline").get<std::string>()),
                                    status.at("pid").get<int64_t>(), status.at("program").get<std::string>());
    words += state == "waits"
                 ? "waits for the others\n"
                 : fmt::format("{} {:.0f} s, {} ticks, plan {}\n", state == "over" ? "is over after" : "runs for",
                               status.at("elapsed_s").get<double>(), status.at("ticks").get<uint64_t>(),
                               status.at("revision").get<uint64_t>());
    std::vector<Cells> nodes = {{"node", "id", "address", "state", "version", "round trip", "clock is ahead by"}};
    for (const ordered_json& node : status.at("nodes")) nodes.push_back(row_of_node(node));
    std::vector<Cells> crossings = {{"crossing", "ticks/s", "MB/s", "sent", "acknowledged", "left out", "waits for"}};
    for (const ordered_json& crossing : status.at("crossings")) crossings.push_back(row_of_crossing(crossing));
    words += aligned(nodes);
    if (crossings.size() > 1) words += aligned(crossings);
    return words;
  } catch (const ordered_json::exception&) {
    return ""; // another version wrote it
  }
}

} // namespace millrace::cli
