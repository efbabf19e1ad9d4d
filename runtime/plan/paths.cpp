// Compares the files that handlers read and write; see paths.h.
#include "plan/paths.h"

#include <fmt/ranges.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/confine.h"
#include "graph/graph.h"
#include "graph/params.h"
#include "millrace/path_pattern.h"
#include "observe/error_codes.h"
#include "plan/facts.h"
#include "plugin/answers.h"

namespace millrace::plan {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStandardStream = "-";

constexpr const char* kFileScheme = "file://";

bool is_address(const std::string& path) {
  return path.find("://") != std::string::npos && path.rfind(kFileScheme, 0) != 0;
}

// "file:///tmp/a" is the file /tmp/a.
std::string without_scheme(const std::string& path) {
  return path.rfind(kFileScheme, 0) == 0 ? path.substr(std::string(kFileScheme).size()) : path;
}

bool is_path(const plugin::HandlerInfo::Param& param) {
  return param.raw.flags & (MR_PARAM_READS_PATH | MR_PARAM_WRITES_PATH);
}

// One parameter that names files.
struct Use {
  const graph::Handler* handler;
  const plugin::HandlerInfo::Param* param;
  Place place;
  std::string path;   // as the handler gets it
  fs::path canonical; // links resolved, as far as it exists
  bool writes = false;
  bool is_stream = false; // "-"
};

// The file on the disk that a name stands for. A device such as /dev/null may be shared, so it has no identity.
struct Identity {
  dev_t device;
  ino_t inode;
  friend bool operator==(const Identity&, const Identity&) = default;
};
std::optional<Identity> identity_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !(S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))) return {};
  return Identity{status.st_dev, status.st_ino};
}

bool is_device(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode));
}

// The length of the place for a number with which the text begins, "{index}" or "%06d"; 0 if it begins with none.
size_t place_length(std::string_view text) {
  constexpr std::string_view kIndex = "{index}";
  if (text.starts_with(kIndex)) return kIndex.size();
  if (!text.starts_with('%')) return 0;
  const size_t end = text.find_first_not_of("0123456789", 1);
  return end != text.npos && text[end] == 'd' ? end + 1 : 0;
}

// The parts before, between and after a path's places for a number: one part more than places.
std::vector<std::string> parts_between_places(const std::string& path) {
  const size_t folder = folder_length(path);
  std::vector<std::string> parts{path.substr(0, folder)};
  for (size_t at = folder; at < path.size();) {
    const size_t length = place_length(std::string_view(path).substr(at));
    if (length == 0)
      parts.back() += path[at++];
    else
      parts.emplace_back();
    at += length;
  }
  return parts;
}

// True if the text is the parts with a number between each two.
bool has_numbers_between(std::string_view text, std::span<const std::string> parts) {
  if (!text.starts_with(parts[0])) return false;
  text.remove_prefix(parts[0].size());
  if (parts.size() == 1) return text.empty();
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  for (size_t n = 1; n <= digits; ++n)
    if (has_numbers_between(text.substr(n), parts.subspan(1))) return true;
  return false;
}

bool names(const Use& pattern, const Use& plain) {
  const std::vector<std::string> numbered = parts_between_places(pattern.canonical.string());
  if (numbered.size() > 1 && has_numbers_between(plain.canonical.string(), numbered)) return true;
  const std::string canonical = pattern.canonical.string();
  const size_t folder = folder_length(canonical);
  if (pattern.writes || canonical.find_first_of("*?[", folder) == std::string::npos) return false;
  // A writer with numbers of its own is compared by one of its names.
  const std::string one = fmt::format("{}", fmt::join(parts_between_places(plain.canonical.string()), "000000"));
  return ::fnmatch(with_quoted_folder(canonical, folder).c_str(), one.c_str(), FNM_PATHNAME) == 0;
}

// True if `folder` is read as a whole, and the written file lies in it and is there now.
bool is_folder_of(const Use& folder, const Use& file) {
  std::error_code error;
  if (folder.writes || !fs::is_directory(folder.canonical, error)) return false;
  if (file.canonical.parent_path() != folder.canonical) return false;
  const std::vector<std::string> numbered = parts_between_places(file.canonical.string());
  if (numbered.size() == 1) return fs::exists(file.canonical, error);
  for (fs::directory_iterator entry(folder.canonical, error), end; !error && entry != end; entry.increment(error))
    if (has_numbers_between(entry->path().string(), numbered)) return true;
  return false;
}

// True if a parameter says that the handler's files are written in pieces.
bool cuts_paths(const graph::Handler& handler, const plugin::HandlerInfo& info) {
  return std::any_of(info.params.begin(), info.params.end(), [&](const plugin::HandlerInfo::Param& param) {
    if (!(param.raw.flags & MR_PARAM_CUTS_PATHS)) return false;
    const graph::Param* const given = graph::find_param(handler.params, param.name);
    return !(given ? given->text : param.default_text).empty();
  });
}

// The pattern of the names of a path's pieces, even if it has no place for a number: "take.mp4" → "take-%03d.mp4".
std::string pieces_of(const std::string& path) {
  if (parts_between_places(path).size() > 1) return path;
  const fs::path name(path);
  return (name.parent_path() / (name.stem().string() + "-%03d" + name.extension().string())).string();
}

bool meet(const Use& a, const Use& b) {
  if (a.is_stream || b.is_stream) return a.is_stream && b.is_stream && a.writes == b.writes;
  if (is_address(a.path) || is_address(b.path)) return a.writes && b.writes && a.path == b.path;
  if (is_device(a.canonical)) return false;
  if (a.canonical == b.canonical || names(a, b) || names(b, a) || is_folder_of(a, b) || is_folder_of(b, a)) return true;
  const std::optional<Identity> on_disk = identity_of(a.canonical);
  return on_disk && on_disk == identity_of(b.canonical);
}

std::vector<Use> uses_of(const graph::Graph& graph, const Facts& facts) {
  std::vector<Use> uses;
  for (size_t h = 0; h < facts.handlers.size(); ++h) {
    const graph::Handler& declared = graph.handlers[h];
    if (!facts.handlers[h].answers) continue; // another node runs it, with files of its own
    const plugin::HandlerInfo& info = facts.handlers[h].answers->info();
    for (const auto& param : info.params) {
      if (!is_path(param)) continue;
      const graph::Param* const given = graph::find_param(declared.params, param.name);
      Use use{&declared, &param, declared.place, param.default_text, {}, false, false};
      if (given) {
        use.path = completed_path(param, *given);
        use.place = given->place;
      }
      if (use.path.empty()) continue;
      use.writes = param.raw.flags & MR_PARAM_WRITES_PATH;
      use.is_stream = use.path == kStandardStream;
      std::error_code error;
      const bool in_pieces = (param.raw.flags & MR_PARAM_IN_PIECES) && cuts_paths(declared, info);
      const std::string named = in_pieces ? pieces_of(use.path) : use.path;
      use.canonical = fs::weakly_canonical(fs::absolute(named, error), error);
      if (error) use.canonical = fs::path(named).lexically_normal();
      uses.push_back(std::move(use));
    }
  }
  return uses;
}

std::string words_of(const Use& use) {
  const std::string stream = use.writes ? "standard output" : "standard input";
  return use.handler->name + " (" + use.handler->type + ") " + (use.writes ? "writes " : "reads ") +
         (use.is_stream ? stream : use.path) + ", its " + use.param->name;
}

// "out/a.mp4" → "out/a-2.mp4"
std::string other_name(const std::string& path) {
  const fs::path name(path);
  return (name.parent_path() / (name.stem().string() + "-2" + name.extension().string())).string();
}

[[noreturn]] void refuse(const Use& first, const Use& second) {
  const bool both_write = first.writes && second.writes;
  const Use& changed = second.writes ? second : first; // a written name is the one to change
  std::string what = "two handlers write one file";
  if (!both_write && (first.writes || second.writes)) what = "a file is read and written by one pipeline";
  if (first.is_stream) what = both_write ? "two handlers write to standard output" : "two handlers read standard input";
  const bool has_edit = !changed.is_stream && !is_address(changed.path);
  throw Failure(Error{code::file_conflict,
                      what,
                      changed.place,
                      {words_of(first), words_of(second)},
                      "",
                      has_edit ? assignment(changed.place, changed.param->name, other_name(changed.path)) : ""});
}

} // namespace

std::string completed_path(const plugin::HandlerInfo::Param& param, const graph::Param& given) {
  const bool in_a_file = given.place.line > 0 && !given.place.is_one_line();
  const bool is_whole = given.text.empty() || given.text == kStandardStream || is_address(given.text) ||
                        fs::path(given.text).is_absolute();
  if (is_path(param) && without_scheme(given.text) != given.text) return without_scheme(given.text);
  if (!is_path(param) || !in_a_file || is_whole) return given.text;
  const fs::path folder = fs::path(given.place.file).parent_path();
  return folder.empty() ? given.text : (folder / given.text).lexically_normal().string();
}

void refuse_home(const plugin::HandlerInfo::Param& param, const graph::Param& given) {
  if (!is_path(param)) return;
  for (const std::string word : {"~/", "$HOME/", "${HOME}/"}) {
    if (given.text.rfind(word, 0) != 0) continue;
    const char* const home = std::getenv("HOME");
    const std::string rest = given.text.substr(word.size() - 1);
    throw Failure(Error{code::unexpanded_path,
                        "'" + word.substr(0, word.size() - 1) + "' in '" + given.text +
                            "' is nothing but a name here: a shell replaces it, and not within quotes",
                        given.place,
                        {param.name + ": " + param.help},
                        "",
                        assignment(given.place, param.name, (home ? home : "/home/…") + rest)});
  }
}

void refuse_shared_files(const graph::Graph& graph, const Facts& facts) {
  const std::vector<Use> uses = uses_of(graph, facts);
  for (size_t b = 1; b < uses.size(); ++b)
    for (size_t a = 0; a < b; ++a) {
      const bool several_readers = !uses[a].writes && !uses[b].writes && !uses[a].is_stream;
      if (!several_readers && meet(uses[a], uses[b])) refuse(uses[a], uses[b]);
    }
}

void refuse_outside(const std::string& handler, const plugin::HandlerInfo::Param& param, const std::string& path,
                    const Place& place, const graph::Confine& confine) {
  if (!is_path(param)) return;
  const bool writes = param.raw.flags & MR_PARAM_WRITES_PATH;
  const std::string why = confine.objection(path, writes);
  if (why.empty()) return;
  const std::string inside = (fs::path(confine.folder()) / fs::path(path).filename()).string();
  throw Failure(Error{code::outside_folder,
                      handler + " would " + (writes ? "write" : "read") + " '" + path + "', its " + param.name +
                          ", outside of '" + confine.folder() + "'",
                      place,
                      {why, "--confine keeps all files of the run in that folder"},
                      "",
                      assignment(place, param.name, inside)});
}

void refuse_outside(const graph::Handler& declared, const plugin::HandlerInfo& info, const graph::Confine& confine) {
  const std::string whose = declared.name + " (" + info.type + ")";
  const bool in_pieces = cuts_paths(declared, info);
  for (const graph::Param& given : declared.params) {
    const auto* const param = info.find_param(given.name);
    if (!param) continue;
    const std::string path = completed_path(*param, given);
    refuse_outside(whose, *param, path, given.place, confine);
    if (in_pieces && (param->raw.flags & MR_PARAM_IN_PIECES) && !path.empty())
      refuse_outside(whose, *param, pieces_of(path), given.place, confine);
  }
}

void refuse_outside(const graph::Graph& graph, const Facts& facts, const graph::Confine& confine,
                    std::vector<Error>* kept) {
  for (size_t h = 0; h < facts.handlers.size(); ++h)
    if (const auto* const answers = facts.handlers[h].answers) // else another node runs it, in a folder of its own
      attempt(kept, [&] { refuse_outside(graph.handlers[h], answers->info(), confine); });
}

} // namespace millrace::plan
