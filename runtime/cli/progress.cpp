// Writes the lines about a run's progress and its end; see progress.h.
#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "exec/run_options.h"
#include "observe/printable.h"
#include "observe/report.h"
#include "observe/secrets.h"
#include "observe/terminal_line.h"
#include "plan/format_text.h"

namespace millrace::cli {

namespace {

// Below this, a rate says more about the start than about the run.
constexpr double kRateAfterS = 0.5;

std::string time_words(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string us_words(double us) {
  if (us < 1e3) return fmt::format("{:.1f} µs", us);
  return us < 1e6 ? fmt::format("{:.1f} ms", us / 1e3) : fmt::format("{:.2f} s", us / 1e6);
}

std::string count_of(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The cause of values that a source gave and no beat showed. The report and the metrics have the same word.
constexpr const char* kPassedOver = "rate";

// The parts of a live line; progress_words() says which are left out first if the line is too long.
struct Parts {
  std::string ticks, percent, rate, left, late, passed_over, dropped, causes;
};

Parts parts_of(const exec::Progress& progress, double duration_s) {
  Parts parts;
  const bool known = progress.ticks_expected > 0;
  parts.ticks = known ? fmt::format("  {}/{} ticks", progress.ticks, progress.ticks_expected)
                      : "  " + count_of(progress.ticks, "tick");
  if (known) {
    const double part = static_cast<double>(progress.ticks) / static_cast<double>(progress.ticks_expected);
    parts.percent = fmt::format("  {:.0f} %", std::min(100.0, 100 * part));
  }
  if (progress.elapsed_s < kRateAfterS || progress.ticks == 0) return parts;
  const double rate = static_cast<double>(progress.ticks) / progress.elapsed_s;
  parts.rate = fmt::format("  {:.1f} ticks/s", rate);
  if (progress.late + progress.skipped > 0) parts.late = fmt::format("  {} late", progress.late + progress.skipped);
  uint64_t sum = 0;
  for (const auto& [cause, count] : progress.dropped) {
    if (cause == kPassedOver) {
      parts.passed_over = fmt::format("  {} came too late for {} beat", count, count == 1 ? "its" : "their");
      continue;
    }
    sum += count;
    parts.causes += fmt::format("{}{} {}", parts.causes.empty() ? " (" : ", ", cause, count);
  }
  if (sum > 0) parts.dropped = fmt::format("  {} dropped", sum);
  if (!parts.causes.empty()) parts.causes += ")";
  double left = duration_s > 0 ? duration_s - progress.elapsed_s : INFINITY;
  if (known) left = std::min(left, static_cast<double>(progress.ticks_expected) / rate - progress.elapsed_s);
  if (std::isfinite(left)) parts.left = "  " + time_words(std::max(0.0, left)) + " left";
  return parts;
}

// The number of columns of a terminal; 80 if `terminal` is none or does not say.
size_t columns_of(std::FILE* terminal) {
  winsize size{};
  const bool said = ioctl(fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return said ? size.ws_col : 80;
}

// The cause of a drop in words; a cause that is not known here stays as it is.
std::string because(const std::string& cause) {
  static const std::map<std::string, const char*> kWords = {
      {"busy", "the reader was still busy with an earlier tick"},   {"queue_full", "the queue was full"},
      {"superseded", "a newer value came before it was read"},      {"end", "the run ended before it was read"},
      {"unaligned", "no value of the other clock was near enough"}, {"late", "it would have missed its deadline"},
  };
  const auto known = kWords.find(cause);
  return known == kWords.end() ? cause : cause + ", " + known->second;
}

// "51 dropped on video.video → detect.layers[1]: queue_full, the queue was full"
std::string drop_words(const EdgeReport& edge, const std::string& cause, uint64_t count) {
  if (cause != kPassedOver)
    return fmt::format("  {} dropped on {} → {}: {}\n", count, edge.from, edge.to, because(cause));
  return fmt::format(
      "  {} came too late for {} beat on {} → {}: a newer one was due, because {} gives more than the "
      "clock has beats, or beats were missed\n",
      count_of(count, "value"), count == 1 ? "its" : "their", edge.from, edge.to,
      edge.from.substr(0, edge.from.find('.')));
}

// Fewer measurements have no 99th percentile: it would be their maximum by another name.
constexpr uint64_t kSampledForP99 = 100;
// The first tick is listed separately if it took longer than this many times the median.
constexpr double kFirstIsSlow = 2;

// "p50 2.4 ms, p99 3.1 ms, max 7.3 ms; the first tick 7.3 ms"
std::string times_words(uint64_t sampled, double p50_us, double p99_us, double max_us, double first_us) {
  if (sampled == 1) return us_words(max_us);
  std::string words = "p50 " + us_words(p50_us);
  if (sampled >= kSampledForP99) words += ", p99 " + us_words(p99_us);
  words += ", max " + us_words(max_us);
  if (first_us > kFirstIsSlow * p50_us) words += "; the first tick " + us_words(first_us);
  return words;
}

std::string latency_words(const Report& report) {
  if (report.latency_sampled == 0) return "";
  const bool all = report.latency_sampled >= report.ticks_run;
  return fmt::format("  latency of {}{}: {}\n", all ? "" : fmt::format("{} of ", report.latency_sampled),
                     count_of(report.ticks_run, "tick"),
                     times_words(report.latency_sampled, report.latency_p50_us, report.latency_p99_us,
                                 report.latency_max_us, report.latency_first_us));
}

// The time that the plan predicted for a path; "" unless it knows all costs on the path, since a part of them says
// little.
std::string predicted_words(const PathReport& path) {
  return path.predicted_us > 0 && path.unknown_costs == 0 ? "; predicted " + us_words(path.predicted_us) : "";
}

// The clocks of two machines say how long it took to a sink of another node than the clock's.
std::string error_words(const PathReport& path) {
  return path.home.empty() ? "" : fmt::format("; right to {}, from {}", us_words(path.clock_error_us), path.home);
}

// Leaves out the only sink if it has no prediction and its clock is here: the line of the latency has said its times.
std::string paths_words(const Report& report, bool explain) {
  std::string words;
  for (const PathReport& path : report.paths) {
    const std::string predicted = explain ? predicted_words(path) : "";
    if (path.sampled == 0 || (report.paths.size() == 1 && predicted.empty() && path.home.empty())) continue;
    words += fmt::format("  to {}, {}: {}{}{}\n", path.sink, count_of(path.sampled, "tick"),
                         times_words(path.sampled, path.p50_us, path.p99_us, path.max_us, path.first_us),
                         error_words(path), predicted);
  }
  return words;
}

// True if a price was far off and there is more than one domain: prices decide where handlers run.
bool matters(const Misprediction& misprediction, const Report& report) {
  constexpr double kFarOff = 2, kPartOfLatency = 0.1;
  const double more = std::max(misprediction.measured_us, misprediction.predicted_us);
  const double less = std::min(misprediction.measured_us, misprediction.predicted_us);
  return report.pools.size() > 1 && more > kFarOff * less && more - less > kPartOfLatency * report.latency_p50_us;
}

std::string mispredictions_words(const Report& report, bool explain) {
  std::string words;
  for (const Misprediction& misprediction : report.mispredictions)
    if (explain || matters(misprediction, report))
      words += fmt::format("  {} took {}, predicted {}\n", misprediction.what, us_words(misprediction.measured_us),
                           us_words(misprediction.predicted_us));
  return words;
}

// Only one in 64 short calls is timed. One that was interrupted would count for 64, so the median stands for all.
double busy_us(const HandlerReport& handler) {
  if (handler.sampled == 0) return 0;
  const bool all = handler.sampled >= handler.calls;
  const double a_call_us = all ? handler.sampled_us / static_cast<double>(handler.sampled) : handler.p50_us;
  return a_call_us * static_cast<double>(handler.calls);
}

// The handlers that took most of the time in which handlers worked. A handler whose calls wait for something outside is
// listed separately, because its time includes that waiting.
std::string busiest_words(const Report& report) {
  constexpr size_t kToldMax = 3;
  constexpr double kToldFrom = 0.05, kWorthTellingS = 0.1;
  std::vector<const HandlerReport*> working;
  std::string waiting;
  double sum_us = 0;
  for (const HandlerReport& handler : report.handlers) {
    const double mean_us = handler.calls > 0 ? busy_us(handler) / static_cast<double>(handler.calls) : 0;
    if (handler.waits && mean_us > 0)
      waiting += fmt::format("; {} {} a call, on a thread of its own", handler.name, us_words(mean_us));
    if (handler.waits) continue;
    working.push_back(&handler);
    sum_us += busy_us(handler);
  }
  if (sum_us < kWorthTellingS * 1e6) return "";
  std::sort(working.begin(), working.end(), [](const auto* a, const auto* b) { return busy_us(*a) > busy_us(*b); });
  std::string words;
  for (size_t i = 0; i < std::min(working.size(), kToldMax) && busy_us(*working[i]) >= kToldFrom * sum_us; ++i)
    words += fmt::format("{}{} {:.0f} % ({} a call)", words.empty() ? "" : ", ", working[i]->name,
                         100 * busy_us(*working[i]) / sum_us,
                         us_words(busy_us(*working[i]) / static_cast<double>(working[i]->calls)));
  return "  time went into " + words + waiting + "\n";
}

// "  1 of 8 streams of cameras failed: gate7"
std::string streams_words(const Report& report) {
  constexpr size_t kToldMax = 8;
  std::map<std::string, std::pair<size_t, std::vector<std::string>>> sets; // how many streams, and those that failed
  for (const StreamReport& stream : report.streams) {
    auto& [count, failed] = sets[stream.set];
    ++count;
    if (stream.state == "failed") failed.push_back(stream.name);
  }
  std::string words;
  for (auto& [set, found] : sets) {
    auto& [count, failed] = found;
    if (failed.empty()) continue;
    words += fmt::format("  {} of {} of {} failed: ", failed.size(), count_of(count, "stream"), set);
    const size_t more = failed.size() > kToldMax ? failed.size() - kToldMax : 0;
    failed.resize(failed.size() - more);
    words += fmt::format("{}{}\n", fmt::join(failed, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  }
  return words;
}

// "  blur: 55 items of cams in 12 firings, at most 8 at a time; waited p50 1.0 ms, p99 2.1 ms; …"
std::string groups_words(const Report& report) {
  std::string words;
  for (const GroupReport& group : report.groups) {
    if (group.firings == 0) continue;
    words += fmt::format("  {}: {} of {} in {}, at most {} at a time; waited p50 {}", group.name,
                         count_of(group.items, "item"), group.set, count_of(group.firings, "firing"),
                         group.firings_of.rbegin()->first, us_words(group.waiting_p50_us));
    if (group.items >= kSampledForP99) words += ", p99 " + us_words(group.waiting_p99_us);
    if (group.limit > 0) words += fmt::format("; limit {}, set by the {}", group.limit, group.limit_set_by);
    uint64_t settled = 0, dropped = 0;
    for (const GroupReport::LateItems& late : group.late) {
      settled += late.settled;
      dropped += late.dropped;
    }
    if (settled > 0) words += fmt::format("; {} settled late", count_of(settled, "item"));
    if (dropped > 0) words += fmt::format("; {} dropped, being late", count_of(dropped, "item"));
    words += '\n';
  }
  return words;
}

std::string errors_words(const Report& report) {
  constexpr size_t kErrorBytesMax = 300;
  std::string words;
  for (const HandlerReport& handler : report.handlers) {
    if (handler.errors == 0) continue;
    words += fmt::format("  {} failed in {} of {}", handler.name, handler.errors, count_of(handler.calls, "call"));
    if (!handler.first_error.empty()) words += ", first: " + printable(handler.first_error, kErrorBytesMax);
    words += "\n";
  }
  return words;
}

} // namespace

std::string progress_words(const exec::Progress& progress, double duration_s, size_t columns_max,
                           const std::string& trouble) {
  const Parts parts = parts_of(progress, duration_s);
  const std::string hurts = trouble.empty() ? "" : "  " + trouble;
  const std::string kept = parts.ticks + parts.percent;
  const std::string with_rate = kept + parts.rate;
  const std::string losses = parts.late + parts.passed_over + parts.dropped;
  for (const std::string& words :
       {with_rate + losses + parts.causes + parts.left + hurts, with_rate + losses + parts.left + hurts,
        with_rate + losses + hurts, with_rate + hurts, kept + hurts, with_rate, kept})
    if (words.size() <= columns_max) return words;
  return parts.ticks.substr(0, columns_max);
}

std::string summary_words(const Report& report, bool explain) {
  std::string words = fmt::format("{} in {:.2f} s", count_of(report.ticks_run, "tick"), report.duration_s);
  if (report.duration_s > 0)
    words += fmt::format(", {:.1f} ticks/s", static_cast<double>(report.ticks_run) / report.duration_s);
  if (report.ticks_late + report.ticks_skipped > 0)
    words += fmt::format("; {} late, {} skipped", report.ticks_late, report.ticks_skipped);
  words += '\n' + latency_words(report) + paths_words(report, explain);
  for (const EdgeReport& edge : report.edges)
    for (const auto& [cause, count] : edge.dropped) words += drop_words(edge, cause, count);
  for (const EdgeReport& edge : report.edges)
    if (edge.is_too_fine())
      words += fmt::format("  {} → {} is aligned within {}, and its clocks agree only within {}\n", edge.from, edge.to,
                           us_words(edge.within_us), us_words(edge.clock_error_us));
  for (const CrossingReport& crossing : report.crossings)
    words += fmt::format("  {} {} {}: {}, {}{}{}\n", crossing.name, crossing.departs ? "to" : "from", crossing.node,
                         count_of(crossing.parcels, "tick"), plan::bytes_words(crossing.bytes),
                         crossing.p50_us > 0 ? ", there in " + us_words(crossing.p50_us) : "",
                         crossing.lost > 0 ? fmt::format("; {} lost with its process", crossing.lost) : "");
  return words + groups_words(report) + streams_words(report) + errors_words(report) + busiest_words(report) +
         mispredictions_words(report, explain);
}

std::optional<Progress> parse_progress(const std::string& word) {
  if (word == "bar") return Progress::bar;
  if (word == "lines") return Progress::lines;
  if (word == "none") return Progress::none;
  return std::nullopt;
}

void ProgressLine::show(const exec::Progress& progress) {
  if (kind_ == Progress::none) return;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (kind_ == Progress::lines) {
    if (progress.elapsed_s < told_s_ + kLineEveryS) return;
    told_s_ = progress.elapsed_s;
    std::fprintf(out_, "%s\n", progress_words(progress, duration_s_, std::string::npos, trouble_).c_str());
  } else {
    terminal_line_is_open.store(true);
    // The last column stays free: some terminals begin a new line once it is written.
    std::fprintf(out_, "\r%s\x1b[K", progress_words(progress, duration_s_, columns_of(out_) - 1, trouble_).c_str());
  }
  std::fflush(out_);
}

void ProgressLine::set_trouble(const std::string& words) {
  const std::lock_guard lock(mutex_);
  trouble_ = words;
}

void ProgressLine::message(const std::string& line) { message_with_secret(without_secrets(line)); }

void ProgressLine::message_with_secret(const std::string& line) {
  const std::lock_guard lock(mutex_);
  clear();
  std::fprintf(out_, "%s\n", line.c_str());
}

void ProgressLine::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  clear();
}

// Called under the lock.
void ProgressLine::clear() {
  if (terminal_line_is_open.exchange(false)) std::fputs(kClearLine, out_);
}

} // namespace millrace::cli
