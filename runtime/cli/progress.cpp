// The words of a run's progress and of its end.
#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

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
  return us < 1000 ? fmt::format("{:.1f} µs", us) : fmt::format("{:.1f} ms", us / 1000);
}

// "  2 late  7 dropped (busy 5, queue_full 2)", or nothing.
std::string lost_words(const exec::Progress& progress) {
  std::string words;
  if (progress.late + progress.skipped > 0) words += fmt::format("  {} late", progress.late + progress.skipped);
  uint64_t sum = 0;
  std::string causes;
  for (const auto& [cause, count] : progress.dropped) {
    sum += count;
    causes += fmt::format("{}{} {}", causes.empty() ? "" : ", ", cause, count);
  }
  return sum > 0 ? words + fmt::format("  {} dropped ({})", sum, causes) : words;
}

// Why a value was dropped, as a person would say it; a cause that is not known here stands for itself.
std::string because(const std::string& cause) {
  static const std::map<std::string, const char*> kWords = {
      {"busy", "the reader was still busy with an earlier tick"},
      {"queue_full", "the queue was full"},
      {"superseded", "a newer value came before it was read"},
      {"end", "the run ended before it was read"},
      {"rate", "its source gave more values than the clock has beats"},
      {"unaligned", "no value of the other clock was near enough"},
  };
  const auto known = kWords.find(cause);
  return known == kWords.end() ? cause : cause + ", " + known->second;
}

// What the plan expected of a way, where it knows all the costs on it: a part of them says little.
bool is_predicted(const exec::PathReport& path) { return path.predicted_us > 0 && path.unknown_costs == 0; }
std::string predicted_words(const exec::PathReport& path) {
  return is_predicted(path) ? "; predicted " + us_words(path.predicted_us) : "";
}

} // namespace

std::string progress_words(const exec::Progress& progress, double duration_s) {
  const bool known = progress.ticks_expected > 0;
  std::string words = known ? fmt::format("  {}/{} ticks", progress.ticks, progress.ticks_expected)
                            : fmt::format("  {} ticks", progress.ticks);
  if (known) {
    const double part = static_cast<double>(progress.ticks) / static_cast<double>(progress.ticks_expected);
    words += fmt::format("  {:.0f} %", std::min(100.0, 100 * part));
  }
  if (progress.elapsed_s < kRateAfterS || progress.ticks == 0) return words;
  const double rate = static_cast<double>(progress.ticks) / progress.elapsed_s;
  words += fmt::format("  {:.1f}/s", rate);
  words += lost_words(progress);
  double left = duration_s > 0 ? duration_s - progress.elapsed_s : INFINITY;
  if (known) left = std::min(left, static_cast<double>(progress.ticks_expected) / rate - progress.elapsed_s);
  if (std::isfinite(left)) words += "  " + time_words(std::max(0.0, left)) + " left";
  return words;
}

std::string summary_words(const exec::Report& report) {
  std::string words = fmt::format("{} ticks in {:.2f} s", report.ticks_run, report.duration_s);
  if (report.duration_s > 0)
    words += fmt::format(", {:.1f}/s", static_cast<double>(report.ticks_run) / report.duration_s);
  if (report.ticks_late + report.ticks_skipped > 0)
    words += fmt::format("; {} late, {} skipped", report.ticks_late, report.ticks_skipped);
  if (report.latency_max_us > 0)
    words += fmt::format("; latency p50 {}, p99 {}", us_words(report.latency_p50_us), us_words(report.latency_p99_us));
  words += '\n';
  for (const exec::EdgeReport& edge : report.edges)
    for (const auto& [cause, count] : edge.dropped)
      words += fmt::format("  {} dropped on {} → {}: {}\n", count, edge.from, edge.to, because(cause));
  // Where there is one sink and no prediction, the line above has said it.
  const auto says_more = [&](const exec::PathReport& path) {
    return path.sampled > 0 && (report.paths.size() > 1 || is_predicted(path));
  };
  for (const exec::PathReport& path : report.paths)
    if (says_more(path))
      words += fmt::format("  to {}: p50 {}, p99 {}, max {}{}\n", path.sink, us_words(path.p50_us),
                           us_words(path.p99_us), us_words(path.max_us), predicted_words(path));
  for (const exec::Surprise& surprise : report.surprises)
    words += fmt::format("  {} took {}, predicted {}\n", surprise.what, us_words(surprise.measured_us),
                         us_words(surprise.predicted_us));
  for (const exec::HandlerReport& handler : report.handlers)
    if (handler.errors > 0) words += fmt::format("  {} failed in {} of its calls\n", handler.name, handler.errors);
  return words;
}

void ProgressLine::show(const exec::Progress& progress) {
  if (!shown_) return;
  const std::string words = progress_words(progress, duration_s_);
  const std::lock_guard lock(mutex_);
  std::fprintf(stderr, "\r%s\x1b[K", words.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::message(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
  std::fprintf(stderr, "%s\n", line.c_str());
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

} // namespace millrace::cli
