// points.links and marks.lines.
#include <doctest/doctest.h>
#include <millrace/payload/marks.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "builtin.h"
#include "linking.h"
#include "tests/part.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Place {
  float x, y;
};

// Points at these places, with the ids 0, 1, … or without.
std::vector<Point> at(std::initializer_list<Place> places, bool have_ids = true) {
  std::vector<Point> points;
  for (const Place& place : places) {
    Point point;
    point.x = place.x;
    point.y = place.y;
    if (have_ids) point.id = static_cast<int64_t>(points.size());
    points.push_back(point);
  }
  return points;
}

std::vector<Link> links_of(Linking& graph, const std::vector<Point>& points) {
  const std::vector<Link> links = graph.step(points);
  CHECK(graph.left_out == 0);
  return links;
}

// "01 02": the ends of the links in their order.
std::string ends(const std::vector<Link>& links) {
  std::string text;
  for (const Link& link : links) text += (text.empty() ? "" : " ") + std::to_string(link.a) + std::to_string(link.b);
  return text;
}
std::string joined(const std::vector<Point>& points, const LinkRule& rule) {
  Linking graph(rule);
  return ends(links_of(graph, points));
}

LinkRule rule_of(uint32_t k, float delta = 0, bool after = false, uint32_t degree_max = 0) {
  LinkRule rule;
  rule.k = k;
  rule.delta_y_max = delta;
  rule.delta_after = after;
  rule.degree_max = degree_max;
  return rule;
}

// The links of one list by the words of the rule, in no clever way. `before`: pairs of ids that were linked.
std::vector<std::pair<int32_t, int32_t>> slow_links(const std::vector<Point>& points, const LinkRule& rule,
                                                    const std::set<std::pair<int64_t, int64_t>>& before) {
  const auto ratio = static_cast<float>(1 / ((1 + rule.hysteresis) * (1 + rule.hysteresis)));
  std::map<int64_t, int32_t> first;
  for (size_t i = 0; i < points.size(); ++i)
    if (points[i].id >= 0 && std::isfinite(points[i].x + points[i].y)) first.emplace(points[i].id, i);
  const auto known = [&](size_t i) {
    return points[i].id >= 0 && first.count(points[i].id) && first[points[i].id] == static_cast<int32_t>(i);
  };
  const auto score = [&](size_t i, size_t j) {
    const float dx = points[i].x - points[j].x, dy = points[i].y - points[j].y;
    const float squared = dx * dx + dy * dy;
    const bool linked = known(i) && known(j) && before.count(std::minmax(points[i].id, points[j].id));
    return linked ? squared * ratio : squared;
  };
  const auto near_in_y = [&](size_t i, size_t j) {
    return rule.delta_y_max <= 0 || std::fabs(points[i].y - points[j].y) <= rule.delta_y_max;
  };
  std::vector<std::vector<size_t>> nearest(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    std::vector<std::pair<float, size_t>> all;
    for (size_t j = 0; j < points.size(); ++j) {
      if (i == j || !std::isfinite(points[i].x + points[i].y + points[j].x + points[j].y)) continue;
      if (!rule.delta_after && !near_in_y(i, j)) continue;
      if (rule.radius <= 0 || score(i, j) <= rule.radius * rule.radius) all.emplace_back(score(i, j), j);
    }
    std::sort(all.begin(), all.end());
    for (size_t n = 0; n < std::min<size_t>(rule.k, all.size()); ++n) nearest[i].push_back(all[n].second);
  }
  std::vector<std::pair<int32_t, int32_t>> links;
  for (size_t i = 0; i < points.size(); ++i)
    for (const size_t j : nearest[i]) {
      const bool both = std::find(nearest[j].begin(), nearest[j].end(), i) != nearest[j].end();
      if (both && j < i) continue;
      if (!near_in_y(i, j)) continue;
      links.emplace_back(std::min(i, j), std::max(i, j));
    }
  if (rule.degree_max == 0) return links;
  using Ranked = std::tuple<float, int32_t, int32_t>;
  std::map<int32_t, std::vector<Ranked>> of_point;
  for (const auto& [a, b] : links)
    for (const int32_t end : {a, b})
      of_point[end].push_back({score(static_cast<size_t>(a), static_cast<size_t>(b)), a, b});
  for (auto& [point, ranked] : of_point) {
    std::sort(ranked.begin(), ranked.end());
    ranked.resize(std::min<size_t>(ranked.size(), rule.degree_max));
  }
  std::erase_if(links, [&](const auto& link) {
    const Ranked one{score(static_cast<size_t>(link.first), static_cast<size_t>(link.second)), link.first, link.second};
    const auto has = [&](int32_t end) {
      return std::find(of_point[end].begin(), of_point[end].end(), one) != of_point[end].end();
    };
    return !has(link.first) || !has(link.second);
  });
  return links;
}

} // namespace

TEST_CASE("the links of six points, in their order, by neighbours, height and degree") {
  const std::vector<Point> six = at({{0, 0}, {3, 0}, {0, 4}, {10, 0}, {10, 1}, {5, 9}});
  CHECK(joined(six, rule_of(2)) == "01 02 12 34 13 14 25 15");
  CHECK(joined(six, rule_of(1)) == "01 02 34 25");
  for (const bool after : {false, true}) CHECK(joined(six, rule_of(2, 4, after)) == "01 02 12 34 13 14");
  CHECK(joined(six, rule_of(2, 0, false, 2)) == "01 02 12 34");
  CHECK(joined(six, rule_of(2, 0, false, 1)) == "01 34");
  CHECK(joined(six, rule_of(2, 0, false, 3)) == "01 02 12 34 13 25");
  const std::vector<Point> five = at({{0, 0}, {2, 0}, {0, 2}, {2, 2}, {1, 1}});
  CHECK(joined(five, rule_of(1)) == "04 14 24 34");
  CHECK(joined(five, rule_of(2)) == "04 01 14 24 02 34 13");
}

TEST_CASE(
    "points of one place join by their numbers, points that are not finite join nobody, and before is not after") {
  const std::vector<Point> equal = at({{1, 1}, {1, 1}, {1, 1}, {1, 1}});
  CHECK(joined(equal, rule_of(1)) == "01 02 03");
  CHECK(joined(equal, rule_of(2)) == "01 02 12 03 13");
  CHECK(joined(at({{0, 0}, {kNaN, 1}, {5, 0}}), rule_of(1)) == "02");
  CHECK(joined(at({}), rule_of(3)) == "");
  CHECK(joined(at({{1, 2}}), rule_of(3)) == "");
  const std::vector<Point> four = at({{0, 0}, {1, 5}, {6, 0}, {7, 0}});
  CHECK(joined(four, rule_of(1, 4)) == "02 23");
  CHECK(joined(four, rule_of(1, 4, true)) == "23");
  LinkRule near = rule_of(2);
  near.radius = 1.5f;
  CHECK(joined(four, near) == "23");
}

TEST_CASE("a pair that was linked counts as nearer, as much as the hysteresis says") {
  const std::vector<Point> first = at({{0, 0}, {10, 0}, {21, 0}, {21, 1}}),
                           then = at({{0, 0}, {10, 0}, {19, 0}, {19, 1}});
  for (const auto& [hysteresis, wanted] : {std::pair{0.0, "01 12 23"}, {0.05, "01 12 23"}, {0.12, "01 23"}}) {
    LinkRule rule = rule_of(1);
    rule.hysteresis = hysteresis;
    Linking graph(rule);
    CHECK(ends(links_of(graph, first)) == "01 23");
    CHECK(ends(links_of(graph, then)) == wanted);
    graph.forget();
    CHECK(ends(links_of(graph, then)) == "01 12 23");
  }
  LinkRule rule = rule_of(1);
  rule.hysteresis = 0.12;
  Linking graph(rule);
  std::vector<Point> without = first, later = then;
  for (std::vector<Point>* points : {&without, &later})
    for (Point& point : *points) point.id = -1;
  links_of(graph, without);
  CHECK(ends(links_of(graph, later)) == "01 12 23"); // without ids there is no past
}

TEST_CASE("a link lives up by its gain and fades when it is linked no more") {
  LinkRule rule = rule_of(1);
  rule.gain = 0.25f;
  rule.fade = 0.7f;
  Linking graph(rule);
  const std::vector<Point> near = at({{0, 0}, {1, 0}, {50, 0}, {51, 0}}), far = at({{0, 0}, {50, 1}, {50, 0}, {1, 0}});
  for (const float life : {0.25f, 0.5f, 0.75f, 1.0f, 1.0f}) {
    const std::vector<Link> links = links_of(graph, near);
    CHECK(ends(links) == "01 23");
    CHECK(links[0].life == life);
    CHECK(links[0].length == 1);
  }
  float wanted = 1;
  for (int tick = 0; tick < 10; ++tick) {
    const std::vector<Link> links = links_of(graph, far);
    wanted *= 0.7f;
    CHECK(ends(links) == "03 12 01 23");
    CHECK(links[2].life == doctest::Approx(wanted).epsilon(1e-5));
  }
  CHECK(wanted == doctest::Approx(0.028248).epsilon(1e-4));
  CHECK(ends(links_of(graph, far)) == "03 12");
}

TEST_CASE("a point that has gone takes its links with it, and the first of several with one id has the past") {
  LinkRule rule = rule_of(1);
  rule.fade = 0.9f;
  Linking graph(rule);
  links_of(graph, at({{0, 0}, {1, 0}, {50, 0}, {51, 0}}));
  std::vector<Point> fewer = at({{0, 0}, {30, 0}, {31, 0}});
  fewer[1].id = 2;
  fewer[2].id = 3;
  CHECK(ends(links_of(graph, fewer)) == "01 12"); // that of 0 and 1 does not fade: 1 is not there
  std::vector<Point> twice = at({{0, 0}, {60, 0}, {0, 1}});
  twice[2].id = 0;
  CHECK(ends(links_of(graph, twice)) == "02 01");
  twice[2].x = 59;
  CHECK(ends(links_of(graph, twice)) == "02 12 01"); // that of the ids 0 and 1 fades, at the first with 0
}

TEST_CASE("links of random points are those of a slow program, tick after tick") {
  Below below(11);
  for (int64_t n = 0; n < test::part_of(10'000); ++n) {
    CAPTURE(n);
    const LinkRule rule = any_rule(below, false);
    Linking graph(rule);
    std::set<std::pair<int64_t, int64_t>> before;
    std::vector<Point> points(below(40));
    for (int tick = 0; tick < 3; ++tick) {
      move_points(points, below, n % 2 == 0);
      const std::vector<Link> links = links_of(graph, points);
      std::vector<std::pair<int32_t, int32_t>> found;
      for (const Link& link : links) found.emplace_back(link.a, link.b);
      REQUIRE(found == slow_links(points, rule, before));
      before.clear();
      for (const Link& link : links)
        if (link.id_a >= 0 && link.id_b >= 0) before.insert(std::minmax(link.id_a, link.id_b));
    }
  }
}

TEST_CASE("points.links gives what there is room for and counts the rest, and refuses too many points") {
  TableTest handler(builtin("points.links"), {{"k", "2"}, {"links_max", "3"}});
  handler.input("points", testing::records<Point>(at({{0, 0}, {3, 0}, {0, 4}, {10, 0}, {10, 1}, {5, 9}})));
  const Result result = handler.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  const std::span<const Link> links = result.records<Link>("links");
  CHECK(ends({links.begin(), links.end()}) == "01 02 12");
  CHECK(handler.counts()["links_left_out"] == 5);
  TableTest full(builtin("points.links"));
  full.input("points", testing::records<Point>(std::vector<Point>(16'385)));
  CHECK(full.start() != MR_OK);
}

TEST_CASE(
    "marks.lines leads from the lower id to the higher, fades with life and length, and has a dot for no length") {
  std::vector<Point> points = at({{10, 20}, {40, 60}, {10, 20}, {kNaN, 5}});
  points[0].id = 7;
  points[1].id = 3;
  std::vector<Link> links(4);
  links[0] = {0, 1, 7, 3, 50, 0.5f};
  links[1] = {0, 2, -1, -1, 0, 1};
  links[2] = {1, 3, -1, -1, 0, 1};
  links[3] = {0, 9, -1, -1, 0, 1};
  TableTest handler(builtin("marks.lines"), {{"width", "3"}, {"length_max", "100"}, {"opacity", "0.5"}});
  handler.input("links", testing::records<Link>(links));
  handler.input("points", testing::records<Point>(points));
  const Result result = handler.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  const std::span<const Mark> marks = result.records<Mark>("marks");
  REQUIRE(marks.size() == 4);
  const auto leads = [&](size_t m, float ax, float ay, float bx, float by) {
    CHECK((marks[m].at[0] == ax && marks[m].at[1] == ay && marks[m].at[2] == bx && marks[m].at[3] == by));
    CHECK(marks[m].width == 3);
  };
  leads(0, 40, 60, 10, 20);
  leads(1, 10, 20, 10, 20);
  leads(2, 40, 60, 40, 60);
  leads(3, 10, 20, 10, 20);
  CHECK(marks[0].color[3] == doctest::Approx(0.5 * 0.5 * 0.5));
  CHECK(marks[0].fill[3] == marks[0].color[3]);
  CHECK(marks[0].color[0] != marks[0].fill[0]);
  TableTest empty(builtin("marks.lines"));
  empty.input("links", testing::records<Link>(links));
  const Result none = empty.tick();
  REQUIRE_MESSAGE(none.ok(), none.error);
  CHECK(none.records<Mark>("marks").empty());
}
