// `millrace bench conversions`: ten chains of built-in handlers whose ends share no pixel format, so one conversion has
// to stand somewhere on the way.
//
// `chosen` leaves its place to the plan, which knows no measured times here. The other ways write image.convert in at
// each place where it may stand. A time is the sum of all handlers' but the source's, each the median of its calls; the
// ways take turns. `dearest` and `cheapest` are of the places by hand; `chosen to cheapest` is 1 where the plan found
// the best.
#include <millrace/handler.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "observe/report.h"

namespace millrace::bench {
namespace conversions {
namespace {

constexpr int kTurns = 5;
constexpr uint64_t kTicks = 24;

template <Pixel kPixel>
struct Takes final : Handler {
  Input<Image> in{*this, "in", pixels({kPixel})};
  void process(Tick&, Cpu&) {}
};

const mr_plugin& takers() {
  static const mr_handler_type rgb = detail::Type<Takes<Pixel::rgb8>>::table("bench.rgb8", "Takes rgb8", "");
  static const mr_handler_type nv12 = detail::Type<Takes<Pixel::nv12>>::table("bench.nv12", "Takes nv12", "");
  static const mr_handler_type* const types[] = {&rgb, &nv12};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "takers", "1", types, 2, 0};
  return plugin;
}

using Settings = std::vector<std::pair<std::string, std::string>>;
struct Link {
  const char* type;
  Settings settings;
};
// From pictures of test.pattern in `from` through `links` to a reader that takes `to` alone.
struct Case {
  const char* name;
  const char* from;
  const char* to;
  std::string width, height;
  std::vector<Link> links;
};

Link resized(const char* width) { return {"image.resize", {{"width", width}}}; }

std::vector<Case> cases() {
  const Link blur{"image.blur", {{"sigma", "1"}}}, adjust{"image.adjust", {{"contrast", "1.2"}}};
  const Link crop{"image.crop", {{"width", "320"}, {"height", "240"}}}, flip{"image.flip", {}};
  return {
      {"smaller", "i420", "rgb8", "1280", "720", {resized("640")}},
      {"larger", "i420", "rgb8", "640", "360", {resized("1280")}},
      {"nv12, larger", "nv12", "rgb8", "1280", "720", {resized("1920")}},
      {"blur, smaller", "i420", "rgb8", "1280", "720", {blur, resized("640")}},
      {"smaller, adjust", "i420", "rgb8", "1280", "720", {resized("640"), adjust}},
      {"larger, adjust", "i420", "rgb8", "640", "360", {resized("1280"), adjust}},
      {"rgb8, smaller", "rgb8", "nv12", "1280", "720", {resized("640")}},
      {"rgb8, larger", "rgb8", "nv12", "640", "360", {resized("1280")}},
      {"crop, larger", "i420", "rgb8", "1280", "720", {crop, resized("640")}},
      {"flip, smaller, larger", "nv12", "rgb8", "1280", "720", {flip, resized("320"), resized("640")}},
  };
}

// `place`: the link before which the conversion stands; the number of links: before the reader; -1: the plan decides.
double time_us(const Case& one, int place) {
  graph::Graph graph;
  add_free_clock(graph, 1);
  std::string last = "source";
  add(graph, last, "test.pattern", "");
  for (const auto& [param, value] :
       Settings{{"format", one.from}, {"width", one.width}, {"height", one.height}, {"count", std::to_string(kTicks)}})
    set(graph, param, value);
  const auto append = [&](const std::string& name, const std::string& type, const Settings& settings) {
    add(graph, name, type, last);
    for (const auto& [param, value] : settings) set(graph, param, value);
    last = name;
  };
  for (size_t i = 0; i <= one.links.size(); ++i) {
    if (static_cast<int>(i) == place) append("convert", "image.convert", {{"to", one.to}});
    if (i < one.links.size()) append("link" + std::to_string(i), one.links[i].type, one.links[i].settings);
  }
  append("reader", std::string("bench.") + one.to, {});
  const Report report = run_graph(graph, 1, kTicks, &takers());
  double us = 0;
  for (const HandlerReport& handler : report.handlers)
    if (handler.name != "source") us += handler.p50_us;
  return us;
}

std::vector<Row> measured() {
  std::vector<Row> rows;
  for (const Case& one : cases()) {
    std::vector<double> chosen;
    std::vector<std::vector<double>> by_hand(one.links.size() + 1);
    for (int turn = 0; turn < kTurns; ++turn) {
      chosen.push_back(time_us(one, -1));
      for (size_t place = 0; place < by_hand.size(); ++place)
        by_hand[place].push_back(time_us(one, static_cast<int>(place)));
    }
    const auto slower = [](const std::vector<double>& a, const std::vector<double>& b) {
      return quantile(a, 0.5) < quantile(b, 0.5);
    };
    const auto [least, most] = std::minmax_element(by_hand.begin(), by_hand.end(), slower);
    rows.push_back(row_of("conversions", one.name, "chosen", "us", chosen));
    rows.push_back(row_of("conversions", one.name, "cheapest", "us", *least));
    rows.push_back(row_of("conversions", one.name, "dearest", "us", *most));
    rows.push_back({"conversions", one.name, "chosen to cheapest", "ratio",
                    quantile(chosen, 0.5) / quantile(*least, 0.5), 0, kTurns});
  }
  return rows;
}

} // namespace
} // namespace conversions

std::vector<Row> bench_conversions() { return conversions::measured(); }

} // namespace millrace::bench
