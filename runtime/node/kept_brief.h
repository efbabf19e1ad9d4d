// The last brief of each pipeline that this machine took part in, kept beside its key: `millrace plan` explains by it
// what the nodes agreed on, on any of their machines and without the others.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace millrace::node {

struct KeptBrief {
  std::string body; // documents.h
  std::string when; // "2026-11-26 07:05 UTC, 3 minutes ago"
};

// `pipeline`: the hash of the canonical pipeline. Throws Failure if the file cannot be written.
void keep_brief(const std::filesystem::path& folder, const std::string& pipeline, const std::string& body);
// None if there is none, or if it cannot be read.
std::optional<KeptBrief> kept_brief(const std::filesystem::path& folder, const std::string& pipeline);

} // namespace millrace::node
