// Finds a level of an OME-Zarr; see zarr_group.h.
#include "plugins/volume/files/zarr_group.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "plugins/volume/files/fault.h"
#include "plugins/volume/files/zarr_array.h"

namespace millrace::volume {

namespace {

constexpr size_t kListMax = 1000; // levels, axes and pictures in one document

// Folders in a group that are Zarrs themselves: "; 0, 1 and labels in it are". "" if there are none.
std::string inner_zarrs(const std::string& group) {
  constexpr size_t kShownMax = 4;
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(group, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string folder = entry->path().string();
    if (is_there(folder + "/.zarray") || is_there(folder + "/.zgroup") || is_there(folder + "/zarr.json"))
      names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::string list;
  for (size_t n = 0; n < std::min(names.size(), kShownMax); ++n) list += (n == 0 ? "" : ", ") + names[n];
  return list.empty() ? "" : "; the path may go on to one of the Zarrs in it: " + list;
}

// The object that has the list `multiscales`.
Metadata picture_of(const std::string& group) {
  const std::string node = group + "/zarr.json", attributes = group + "/.zattrs";
  if (is_there(node)) {
    const Metadata all = Metadata::read(node);
    if (const auto found = all.find("attributes")) {
      const auto ome = found->find("ome");
      if (ome && ome->find("multiscales")) return *ome;
      if (found->find("multiscales")) return *found;
    }
  } else if (is_there(attributes)) {
    const Metadata all = Metadata::read(attributes);
    if (all.find("multiscales")) return all;
  } else if (!is_there(group + "/.zgroup")) {
    throw cannot_read(
        group, "it is a folder without .zarray, .zgroup, .zattrs and zarr.json, and so no Zarr" + inner_zarrs(group));
  }
  throw cannot_read(group,
                    "it is a group of Zarr without 'multiscales', and so no picture of OME-Zarr" + inner_zarrs(group));
}

// Versions 0.1 and 0.2 have no names, and always five axes.
std::vector<std::string> axes_of(const Metadata& picture) {
  const auto axes = picture.find("axes");
  if (!axes) return {"t", "c", "z", "y", "x"};
  std::vector<std::string> names;
  for (const Metadata& axis : axes->elements(kListMax))
    names.push_back(axis.json().is_string() ? axis.text() : axis.at("name").text());
  return names;
}

// A path that leads out of the group is no part of it.
bool leads_inside(const std::string& path) {
  const std::filesystem::path parts(path);
  return !path.empty() && !parts.is_absolute() && path.find('\0') == path.npos &&
         std::find(parts.begin(), parts.end(), "..") == parts.end();
}

} // namespace

ZarrLevel find_level(const std::string& group, int64_t level) { return level_of(picture_of(group), group, level); }

ZarrLevel level_of(const Metadata& metadata, const std::string& group, int64_t level) {
  const Metadata list = metadata.at("multiscales");
  const std::vector<Metadata> pictures = list.elements(kListMax);
  if (pictures.empty()) throw list.fault("it is empty, and the first element is the picture");
  const Metadata datasets = pictures[0].at("datasets");
  const std::vector<Metadata> levels = datasets.elements(kListMax);
  if (level < 0 || static_cast<uint64_t>(level) >= levels.size())
    throw datasets.fault("level " + std::to_string(level) + " is not there, but 0 to " +
                         std::to_string(static_cast<int64_t>(levels.size()) - 1));
  const Metadata path = levels[static_cast<size_t>(level)].at("path");
  if (!leads_inside(path.text())) throw path.fault("'" + path.text() + "' leads out of the group");
  return {group + "/" + path.text(), axes_of(pictures[0])};
}

} // namespace millrace::volume
