// Finds the container that a path or a name means, and how it stores times.
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
  bool is_mov = false; // belongs to the MP4 family, which can be written in fragments
  bool has_sound = true;
  AVRational tick = {0, 1}; // the unit of all its times; 0: any unit
};

// An address such as rtmp://host/app, which libavformat opens itself.
bool is_address(const std::string& path);

// Finds the container by name, else by the path's extension, else by the address's scheme. Throws std::invalid_argument
// with the nearest name and the names that there are.
Container container_of(const std::string& path, const std::string& name);

// The common containers that this libavformat has, as people call them.
std::vector<std::string> container_names();

// True if the container can hold the codec, as far as libavformat knows.
bool can_hold(const Container& container, AVCodecID codec);

} // namespace millrace::media
