// Points of a picture of 3840 × 2160 joined to their five nearest on one thread: millrace and nanoflann in turns, in
// one process.
//
// usage: peer_links ROUNDS      prints JSON: for each work the milliseconds of each round, by program
//
// nanoflann builds its tree and finds the nearest of each point, as ours does first. Ours then makes the list of links.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/handlers/linking.h"
#include "tests/peers/turns.h"

#ifdef PEER_NANOFLANN
#include <nanoflann.hpp>
#endif

using namespace millrace;

namespace {

constexpr uint32_t kNeighbours = 5;

std::vector<Point> points_of(uint32_t count) {
  peers::Numbers any(3);
  std::vector<Point> points(count);
  for (uint32_t i = 0; i < count; ++i) {
    points[i].id = i;
    points[i].x = any(0, 3840);
    points[i].y = any(0, 2160);
  }
  return points;
}

#ifdef PEER_NANOFLANN
// The points as nanoflann reads them.
struct Cloud {
  const std::vector<Point>& points;
  size_t kdtree_get_point_count() const { return points.size(); }
  float kdtree_get_pt(size_t place, size_t axis) const { return axis == 0 ? points[place].x : points[place].y; }
  template <class Box>
  bool kdtree_get_bbox(Box&) const {
    return false;
  }
};
using Tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<float, Cloud>, Cloud, 2, uint32_t>;

void find_all(const Cloud& cloud) {
  const Tree tree(2, cloud);
  uint32_t places[kNeighbours + 1];
  float squares[kNeighbours + 1];
  for (const Point& point : cloud.points) {
    const float at[] = {point.x, point.y};
    tree.knnSearch(at, kNeighbours + 1, places, squares); // the point itself is one of them
    peers::keep(places[kNeighbours]);
  }
}
#endif

peers::Times measure(const std::vector<Point>& points, int rounds) {
  handlers::LinkRule rule;
  rule.k = kNeighbours;
  handlers::Linking graph(rule, points.size());
  peers::Jobs jobs;
  jobs["millrace"] = [&] { peers::keep(graph.view(points).size()); };
#ifdef PEER_NANOFLANN
  const Cloud cloud{points};
  jobs["nanoflann"] = [&] { find_all(cloud); };
#endif
  return peers::in_turns(jobs, rounds);
}

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 31;
  std::map<std::string, peers::Times> works;
  for (const uint32_t count : {1000u, 5000u}) {
    const std::string words = count == 1000 ? "1,000 points, k = 5" : "5,000 points, k = 5";
    works[words] = measure(points_of(count), rounds);
  }
  peers::print_json(works);
}
