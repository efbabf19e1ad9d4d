// Finds the container that a path or a name means, and what it can do with times.
#pragma once

#include <string>
#include <vector>

#include "plugins/media/av.h"

namespace millrace::media {

// ASCII letters in lower case.
std::string lower(std::string text);

// How a container says when a picture is shown.
enum class Times {
  any,  // each picture has a time of its own
  grid, // each picture has a number, at a constant rate; numbers may be left out
  none  // pictures follow each other at a constant rate
};

struct Container {
  const AVOutputFormat* format = nullptr;
  std::string name; // as people call it: "mp4", "mkv"
  Times times = Times::any;
  bool is_mov = false; // of the MP4 family, which can be written in fragments
  bool has_sound = true;
  AVRational tick = {0, 1}; // that it counts all its times in; 0: any
};

// An address such as rtmp://host/app, which libavformat opens itself.
bool is_address(const std::string& path);

// By name, else by the path's extension, else by the address's scheme. Throws std::invalid_argument with the nearest
// name and what there is.
Container container_of(const std::string& path, const std::string& name);

// The common ones that this libavformat has, as people call them.
std::vector<std::string> container_names();

// True if the container can hold the codec, as far as libavformat knows.
bool can_hold(const Container& container, AVCodecID codec);

} // namespace millrace::media
