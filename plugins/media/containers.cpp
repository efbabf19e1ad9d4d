// A table of the common containers; libavformat finds the others.
#include "plugins/media/containers.h"

#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "millrace/nearest.h"
#include "plugins/media/nearest_name.h"

namespace millrace::media {

namespace {

struct Named {
  const char* name;       // as people call it
  const char* muxer;      // as libavformat calls it
  const char* extensions; // in lower case, with commas at both ends
};
constexpr Named kNamed[] = {
    {"mp4", "mp4", ",mp4,m4v,"},      {"mov", "mov", ",mov,qt,"}, {"mkv", "matroska", ",mkv,"},
    {"webm", "webm", ",webm,"},       {"avi", "avi", ",avi,"},    {"ts", "mpegts", ",ts,m2ts,mts,m2t,"},
    {"nut", "nut", ",nut,"},          {"flv", "flv", ",flv,"},    {"gif", "gif", ",gif,"},
    {"y4m", "yuv4mpegpipe", ",y4m,"},
};

const AVCodecTag* const kAviTags[] = {avformat_get_riff_video_tags(), nullptr};

std::string extension_of(const std::string& path) {
  const std::string extension = lower(std::filesystem::path(path).extension().string());
  return extension.empty() ? "" : extension.substr(1);
}

Container container_with(const AVOutputFormat* format, const std::string& name) {
  Container container{format, name, Times::any, false, true, {0, 1}};
  const std::string_view muxer = format->name;
  // The MP4 muxer of libavformat 5.1 does not declare that it holds variable rates.
  if (muxer == "yuv4mpegpipe" || (format->flags & AVFMT_NOTIMESTAMPS)) container.times = Times::none;
  if (muxer == "avi" || muxer == "dv") container.times = Times::grid;
  container.is_mov = muxer == "mp4" || muxer == "mov" || muxer == "ipod" || muxer == "ismv" || muxer == "f4v";
  if (muxer == "mpegts" || muxer == "rtp_mpegts" || muxer == "vob") container.tick = {1, 90000};
  if (muxer == "matroska" || muxer == "webm" || muxer == "flv") container.tick = {1, 1000};
  if (muxer == "gif") container.tick = {1, 100};
  container.has_sound = format->audio_codec != AV_CODEC_ID_NONE;
  return container;
}

Container named_container(const Named& named, const std::string& asked) {
  if (const AVOutputFormat* format = av_guess_format(named.muxer, nullptr, nullptr))
    return container_with(format, named.name);
  throw std::invalid_argument("container '" + asked + "' is not in this libavformat, which has " +
                              listed(container_names(), " and "));
}

const char* container_of_scheme(const std::string& path) {
  const std::string scheme = lower(path.substr(0, path.find("://")));
  if (scheme.rfind("rtmp", 0) == 0) return "flv";
  if (scheme == "rtsp" || scheme == "rtsps") return "rtsp";
  if (scheme == "rtp") return "rtp_mpegts";
  return "mpegts";
}

} // namespace

std::string lower(std::string text) { return v1::detail::in_small_letters(text); }

namespace {

// Refuses muxers that write their own files beside the given name: those have no part file, no lock and no checked
// writes. `segment` of video.writer makes pieces instead.
void refuse_own_files(const AVOutputFormat& format, const std::string& path) {
  const std::string_view name(format.name);
  const bool delegates = name == "segment" || name == "stream_segment" || name == "tee" || name.starts_with("image2");
  if (is_address(path) || (!(format.flags & AVFMT_NOFILE) && !delegates)) return;
  throw std::invalid_argument(
      "the container '" + std::string(name) +
      "' writes files of its own, outside the writer's care; `segment` writes pieces and `list` "
      "their list");
}

} // namespace

bool is_address(const std::string& path) { return path.find("://") != std::string::npos; }

Container container_of(const std::string& path, const std::string& name) {
  if (!name.empty()) {
    const std::string asked = lower(name);
    for (const Named& named : kNamed)
      if (asked == named.name || asked == named.muxer) return named_container(named, name);
    if (const AVOutputFormat* format = av_guess_format(asked.c_str(), nullptr, nullptr)) {
      refuse_own_files(*format, path);
      return container_with(format, asked);
    }
    throw std::invalid_argument("there is no container '" + name + "'" + nearest_in_words(asked, container_names()) +
                                "; this libavformat has " + listed(container_names(), " and ") + ", and others");
  }
  if (is_address(path)) {
    const char* muxer = container_of_scheme(path);
    for (const Named& named : kNamed)
      if (std::string_view(muxer) == named.muxer) return named_container(named, muxer);
    if (const AVOutputFormat* format = av_guess_format(muxer, nullptr, nullptr)) return container_with(format, muxer);
    throw std::invalid_argument("this libavformat has no muxer '" + std::string(muxer) + "' for '" + path + "'");
  }
  const std::string extension = extension_of(path);
  for (const Named& named : kNamed)
    if (!extension.empty() && std::string_view(named.extensions).find("," + extension + ",") != std::string_view::npos)
      return named_container(named, extension);
  const AVOutputFormat* format = extension.empty() ? nullptr : av_guess_format(nullptr, path.c_str(), nullptr);
  if (format && std::string_view(format->name).rfind("image2", 0) == 0)
    throw std::invalid_argument("'" + path + "' is the name of a picture; image.writer writes those");
  if (format) {
    refuse_own_files(*format, path);
    return container_with(format, format->name);
  }
  const std::string have = "`container` names it: " + listed(container_names());
  if (path == "-") throw std::invalid_argument("standard output has no extension that chooses a container; " + have);
  if (extension.empty())
    throw std::invalid_argument("'" + path + "' has no extension that chooses a container; " + have +
                                "\ntry: path=" + path + ".mp4");
  const std::string near = nearest_of(extension, container_names());
  const std::string stem = path.substr(0, path.size() - extension.size());
  throw std::invalid_argument("'" + path + "' has an extension that no container has, '." + extension + "'; " + have +
                              "\ntry: path=" + stem + (near.empty() ? "mp4" : near));
}

std::vector<std::string> container_names() {
  std::vector<std::string> names;
  for (const Named& named : kNamed)
    if (av_guess_format(named.muxer, nullptr, nullptr)) names.emplace_back(named.name);
  return names;
}

bool can_hold(const Container& container, AVCodecID codec) {
  const AVCodecID own = container.format->video_codec;
  if (container.name == "y4m") return codec == AV_CODEC_ID_WRAPPED_AVFRAME;
  if (container.name == "ts") { // its muxer takes any codec, but stores it as unidentifiable bytes
    for (const AVCodecID held :
         {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG4})
      if (codec == held) return true;
    return false;
  }
  const int answer = avformat_query_codec(container.format, codec, FF_COMPLIANCE_NORMAL);
  // These muxers list the codecs and refuse them all the same.
  const bool is_of_mp4 = codec == AV_CODEC_ID_VP8 || codec == AV_CODEC_ID_VP9 || codec == AV_CODEC_ID_AV1;
  if (container.name == "mov" && is_of_mp4) return false;
  if (container.name == "flv" && codec == AV_CODEC_ID_MPEG4) return false;
  // Matroska stores a codec without a name of its own under its AVI letters, which libavformat does not report when
  // asked. QuickTime's muxer does the same, but only FFmpeg's players know those codecs there, so only codecs for
  // archives are allowed.
  const bool has_letters = av_codec_get_tag(kAviTags, codec) != 0;
  if (answer == 0 && container.name == "mkv" && has_letters) return true;
  const bool is_archive = codec == AV_CODEC_ID_FFV1 || codec == AV_CODEC_ID_HUFFYUV || codec == AV_CODEC_ID_FFVHUFF;
  if (answer == 0 && container.name == "mov" && is_archive) return true;
  if (answer >= 0) return answer == 1;
  return own == codec || (container.times != Times::none && container.name != "gif");
}

} // namespace millrace::media
