// Reads and writes the files of kept briefs; see kept_brief.h.
#include "node/kept_brief.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "fleet/statement.h"
#include "net/system/private_file.h"
#include "observe/error.h"

namespace millrace::node {

namespace fs = std::filesystem;

namespace {

fs::path file_of(const fs::path& folder, const std::string& pipeline) {
  return folder / "briefs" / (pipeline.substr(0, 32) + ".json");
}

std::string age_words(std::chrono::seconds age) {
  const auto count = age.count();
  const auto [number, unit] = count < 60       ? std::pair(count, "second")
                              : count < 3600   ? std::pair(count / 60, "minute")
                              : count < 172800 ? std::pair(count / 3600, "hour")
                                               : std::pair(count / 86400, "day");
  return fmt::format("{} {}{} ago", number, unit, number == 1 ? "" : "s");
}

} // namespace

void keep_brief(const fs::path& folder, const std::string& pipeline, const std::string& body) {
  const fs::path file = file_of(folder, pipeline);
  net::make_private_folder(file.parent_path());
  const net::FolderLock lock(file.parent_path());
  net::write_private_file(file, body);
}

std::optional<KeptBrief> kept_brief(const fs::path& folder, const std::string& pipeline) {
  const fs::path file = file_of(folder, pipeline);
  KeptBrief kept;
  try {
    if (!net::read_private_file(file, fleet::kStatementBytesMax, kept.body)) return std::nullopt;
  } catch (const Failure&) {
    return std::nullopt;
  }
  std::error_code failed;
  const auto age = std::max(fs::file_time_type::clock::now() - fs::last_write_time(file, failed),
                            fs::file_time_type::duration::zero());
  const std::time_t when = std::chrono::system_clock::to_time_t(
      std::chrono::system_clock::now() - std::chrono::duration_cast<std::chrono::system_clock::duration>(age));
  kept.when = fmt::format("{:%Y-%m-%d %H:%M} UTC, {}", fmt::gmtime(when),
                          age_words(std::chrono::duration_cast<std::chrono::seconds>(age)));
  return kept;
}

} // namespace millrace::node
