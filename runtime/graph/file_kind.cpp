// Kinds of files by the extensions that are usual for video.file and image.file; see file_kind.h.
#include "graph/file_kind.h"

#include <filesystem>
#include <string_view>

#include "millrace/nearest.h"

namespace millrace::graph {

namespace {

// Each extension has a comma on both sides. The containers are those that `millrace doctor` lists, the pictures those
// of OpenCV.
constexpr std::string_view kVideos =
    ",mp4,m4v,mov,qt,mkv,webm,avi,ts,m2ts,mts,flv,nut,gif,y4m,mpg,mpeg,wmv,ogv,3gp,m3u8,h264,hevc,";
constexpr std::string_view kPictures = ",png,jpg,jpeg,bmp,tif,tiff,webp,pgm,ppm,";

std::string path_value(const std::string& path) {
  return "path=" + (path.find_first_of(" \t") == std::string::npos ? path : "\"" + path + "\"");
}

} // namespace

FileKind file_kind(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension.size() < 2) return FileKind::other;
  const std::string word = "," + v1::detail::in_small_letters(extension.substr(1)) + ",";
  if (kVideos.find(word) != std::string_view::npos) return FileKind::video;
  return kPictures.find(word) != std::string_view::npos ? FileKind::picture : FileKind::other;
}

std::string source_of(const std::string& path) {
  return (file_kind(path) == FileKind::picture ? "image.file " : "video.file ") + path_value(path);
}

std::string sink_of(const std::string& path) {
  if (file_kind(path) != FileKind::picture) return "video.writer " + path_value(path);
  const std::filesystem::path name(path);
  const std::string numbered = name.stem().string() + "-{index}" + name.extension().string();
  return "image.writer " + path_value((name.parent_path() / numbered).string());
}

} // namespace millrace::graph
