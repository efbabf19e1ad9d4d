// Follows paths to where they lead; see confine.h.
#include "graph/confine.h"

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <string_view>
#include <system_error>

#include "millrace/read_number.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::graph {

namespace fs = std::filesystem;

namespace {

constexpr int kLinksMax = 40;         // as many as Linux follows
constexpr size_t kNamesMax = 100'000; // in the folders that a path with a pattern may mean

// Marks of patterns: *.png, [ab].png, %06d.png, {index}.npy.
constexpr const char* kPatternMarks = "*?[%{";

// FFmpeg takes "concat:a|b" and "subfile,,start,0,end,9,,:a" for addresses too.
bool is_address(const std::string& path) {
  if (path.find("://") != std::string::npos) return true;
  const auto is_scheme = [](char c) {
    return v1::detail::is_letter(c) || v1::detail::is_digit(c) || c == '+' || c == '-' || c == '.' || c == ',';
  };
  const size_t colon = path.find(':');
  return colon != std::string::npos && colon > 0 && v1::detail::is_letter(path[0]) &&
         std::all_of(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(colon), is_scheme);
}

// The end of the path, through all links. Names that do not exist stay as written. Empty: links lead in a circle.
fs::path followed(const fs::path& path) {
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed);
  std::deque<fs::path> rest(whole.begin(), whole.end());
  fs::path at;
  for (int links = 0; !rest.empty();) {
    const fs::path part = rest.front();
    rest.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path next = part.is_absolute() ? part : at / part;
    if (!fs::is_symlink(fs::symlink_status(next, failed))) {
      at = next;
      continue;
    }
    if (++links > kLinksMax) return {};
    const fs::path target = fs::read_symlink(next, failed);
    if (failed) return {};
    rest.insert(rest.begin(), target.begin(), target.end()); // an absolute one begins with "/"
  }
  return at;
}

// True if the file is a list whose entries are opened in its place, such as a playlist.
bool names_other_files(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return false; // a FIFO would wait for its writer
  std::ifstream file(path, std::ios::binary);
  std::string head(64, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  std::string_view text = head;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  for (const std::string_view begin : {"#EXTM3U", "ffconcat", "file ", "<?xml", "<MPD", "[playlist]", "v=0"})
    if (text.starts_with(begin)) return true;
  return false;
}

} // namespace

// One path on its way to all the files that it may name.
class Confine::Look {
 public:
  Look(const Confine& confine, bool writes) : confine_(confine), writes_(writes) {}

  std::string objection(const fs::path& path) {
    const std::deque<fs::path> parts(path.begin(), path.end());
    return objection(path.is_absolute() ? fs::path() : fs::path("."), parts);
  }

 private:
  std::string objection(const fs::path& folder, std::deque<fs::path> rest) {
    while (!rest.empty() && rest.front().empty()) rest.pop_front();
    if (rest.empty()) return objection_to_end(folder);
    const std::string name = rest.front().string();
    rest.pop_front();
    while (!rest.empty() && rest.front().empty()) rest.pop_front();
    const bool is_last = rest.empty();
    if (std::string why = objection(folder / name, rest); !why.empty()) return why;
    size_t mark = name.find_first_of(kPatternMarks);
    // A file is written under names of its own first, such as film.part.mp4, and kept ones are numbered.
    if (is_last && writes_) mark = std::min(mark, fs::path(name).stem().string().size());
    if (mark == std::string::npos) return "";
    if (std::find(rest.begin(), rest.end(), "..") != rest.end()) return "a pattern stands before '..'";
    return objection_to_others(folder, name.substr(0, mark), rest);
  }

  // Entries of the folder that begin so.
  std::string objection_to_others(const fs::path& folder, const std::string& begin, const std::deque<fs::path>& rest) {
    if (!confine_.objection_to_place(folder).empty()) return ""; // told if anything in it is named
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
      if (++names_ > kNamesMax) return "there are too many files that it may name";
      if (!entry->path().filename().string().starts_with(begin)) continue;
      std::error_code ignored;
      if (!rest.empty() && !entry->is_directory(ignored)) continue;
      if (writes_ && rest.empty() && !entry->is_symlink(ignored)) continue;
      if (std::string why = objection(entry->path(), rest); !why.empty()) return why;
    }
    return "";
  }

  std::string objection_to_end(const fs::path& path) {
    if (std::string why = confine_.objection_to_place(path); !why.empty()) return why;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return ""; // it comes into being there
    if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode) || S_ISSOCK(status.st_mode))
      return "'" + path.lexically_normal().string() + "' is a device or a socket, and no file";
    if (writes_) return "";
    if (names_other_files(path))
      return "'" + path.lexically_normal().string() + "' is a list, whose entries may lead anywhere";
    return S_ISDIR(status.st_mode) ? objection_to_entries(path) : "";
  }

  // A folder is read with the files in it.
  std::string objection_to_entries(const fs::path& folder) {
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
      if (++names_ > kNamesMax) return "there are too many files in it";
      if (std::string why = confine_.objection_to_place(entry->path()); !why.empty()) return why;
      if (names_other_files(entry->path()))
        return "'" + entry->path().lexically_normal().string() + "' is a list, whose entries may lead anywhere";
    }
    return "";
  }

  const Confine& confine_;
  const bool writes_;
  size_t names_ = 0;
};

Confine::Confine(const std::string& folder) {
  std::error_code failed;
  const fs::path whole = fs::canonical(folder, failed);
  if (failed || !fs::is_directory(whole, failed))
    throw Failure(Error{code::outside_option,
                        "--confine takes a folder, and '" + folder + "' is none",
                        {},
                        {failed ? failed.message() : "it is a file"},
                        "",
                        "mkdir -p " + folder});
  folder_ = whole.string();
}

std::string Confine::objection_to_place(const fs::path& path) const {
  const fs::path end = followed(path);
  if (end.empty()) return "its links lead in a circle";
  const std::string place = end.string();
  const bool is_inside = place == folder_ || folder_ == "/" || place.starts_with(folder_ + "/");
  return is_inside ? "" : "it leads to '" + place + "'";
}

std::string Confine::objection(const std::string& path, bool writes) const {
  if (path.empty() || path == "-") return "";
  if (is_address(path)) return "it is an address, and no file";
  return Look(*this, writes).objection(path);
}

void Confine::require(const std::string& option, const std::string& path, bool writes) const {
  const std::string why = objection(path, writes);
  if (why.empty()) return;
  throw Failure(Error{code::outside_option,
                      option + " '" + path + "' is not within '" + folder_ + "'",
                      {},
                      {why, "--confine keeps all files of the run in that folder"},
                      "",
                      option + " " + (fs::path(folder_) / fs::path(path).filename()).string()});
}

} // namespace millrace::graph
