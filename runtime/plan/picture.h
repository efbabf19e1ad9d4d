// A plan as a picture: a box for each handler with its connected ports, an arrow for each edge, a band for each domain
// and for each other node. Handlers and edges that are there for each stream of a set are drawn once for each domain,
// with a count. The same plan gives the same picture.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace::plan {

struct Plan;

// Places are in pixels from the top left corner.
struct PicturePort {
  std::string name; // "video", "marks[1]"
  int y = 0;        // below the top of its box: an input on the left side, an output on the right
};
struct PictureBox {
  std::vector<uint32_t> handlers; // numbers in the plan: one, or those of all streams
  std::string name, type;
  bool is_inserted = false; // by the plan
  uint32_t lane = 0;
  int x = 0, y = 0, width = 0, height = 0;
  std::vector<PicturePort> inputs, outputs;
};
struct PictureArrow {
  std::vector<uint32_t> edges; // numbers in the plan
  std::string words;           // "video.video → boxes.video, sync"
  bool is_sync = true;
  bool goes_back = false;                   // to a later tick
  std::vector<std::pair<int, int>> corners; // x and y, from an output to an input
};
struct PictureLane {
  std::string name; // a domain, or "node gpu"
  int top = 0, bottom = 0;
};
struct Picture {
  int width = 0, height = 0;
  std::vector<PictureLane> lanes;
  std::vector<PictureBox> boxes;
  std::vector<PictureArrow> arrows;
};

Picture picture_of(const Plan& plan);

// The picture as an SVG document that needs nothing else.
std::string svg_of(const Picture& picture);

} // namespace millrace::plan
