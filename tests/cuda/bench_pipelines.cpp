// Whole pipelines of the built-in handlers on a GPU, beside the same kernels by hand, beside the host, and where the
// plan puts them; and values that go from one GPU to another.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench.h"
#include "embed/calibrate.h"
#include "handlers/draw/glyphs.h"
#include "plan/machine.h"
#include "plan/plan.h"
#include "rivals.h"

namespace millrace::test {
namespace {

constexpr uint32_t kWorkers = 8, kInFlight = 4;
constexpr double kSeconds = 2; // about as long as a measurement runs
constexpr uint64_t kTicksMin = 20;

// ---- the pipeline -----------------------------------------------------------------------------------------------

// The file in which draw.text finds its letters; throws if there is none.
std::string font_file() {
  const char* given = std::getenv("MILLRACE_FONT");
  const std::string here = ".deps/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
  std::string font = given ? given : "";
  try {
    handlers::GlyphSet(font, 16);
  } catch (const std::runtime_error&) {
    if (given || !std::filesystem::exists(here)) throw;
    font = here;
  }
  return font;
}

// `place` and `sink`: domains; "" is the plan's choice.
Pipeline five_handlers(const Five& five, const std::string& place, const std::string& sink) {
  Pipeline pipeline;
  pipeline.add("source", "test.pattern",
               {{"pattern", "gradient"},
                {"format", "rgba8"},
                {"width", std::to_string(five.width)},
                {"height", std::to_string(five.height)}});
  pipeline.add("blur", "image.blur", {{"sigma", std::to_string(Five::kSigma)}});
  std::map<std::string, std::string> text = {{"text", Five::kText},
                                             {"size", std::to_string(five.text_size())},
                                             {"x", std::to_string(Five::kTextX)},
                                             {"y", std::to_string(Five::kTextY)}};
  if (!five.font.empty()) text["font"] = five.font;
  pipeline.add("text", "draw.text", text);
  pipeline.add("waveform", "draw.waveform", {{"size", std::to_string(Five::kMonitorSize)}});
  pipeline.add("sink", "null.sink");
  for (graph::Handler& handler : pipeline.graph.handlers) handler.device = handler.name == "sink" ? sink : place;
  const char* names[] = {"source", "blur", "text", "waveform", "sink"};
  for (int n = 0; n < 4; ++n) pipeline.connect(names[n], names[n + 1]);
  pipeline.clock(graph::ClockMode::free, 0, 1, kInFlight);
  return pipeline;
}

Setup five_setup(std::vector<std::string> domains = {"cuda:0", "cpu"}) {
  Setup setup = bench_setup(std::move(domains));
  setup.workers = kWorkers;
  return setup;
}

// Frames a second: runs that become longer until one of them is long enough.
double fps_of(const Pipeline& pipeline, Setup setup, double about_s = kSeconds) {
  for (uint64_t ticks = kTicksMin;;) {
    setup.options.ticks_max = ticks;
    const Result result = run_or_die(pipeline, setup);
    const double seconds = std::max(1e-6, result.report.duration_s);
    if (seconds >= about_s / 2) return static_cast<double>(result.report.ticks_run) / seconds;
    ticks *= static_cast<uint64_t>(std::clamp(about_s / seconds + 1, 2.0, 100.0));
  }
}

// ---- where the plan puts it -------------------------------------------------------------------------------------

// Measures the bodies of a pipeline in the domain that all of it is pinned to.
void measure_bodies(const Five& five, const std::string& domain, uint64_t ticks, std::vector<plan::BodyCost>& bodies) {
  Setup setup = five_setup();
  setup.options.ticks_max = ticks;
  setup.options.measure_bodies = true;
  const Pipeline pipeline = five_handlers(five, domain, domain);
  Compiled compiled(pipeline, setup);
  const Result result = compiled.run();
  if (!result.ok) throw Failure(result.error);
  for (uint32_t h = 0; h < compiled.plan().handlers.size(); ++h) {
    const HandlerReport& report = result.report.handlers[h];
    const graph::Handler* declared = pipeline.graph.find(report.name);
    if (!declared || report.domain != domain || report.sampled == 0) continue;
    bodies.push_back({report.type, plan::settings_of(*declared), domain, plan::bytes_read(compiled.plan(), h),
                      report.sampled_us / static_cast<double>(report.sampled), report.p50_us, report.p99_us,
                      report.sampled});
  }
}

// "source blur text waveform sink" with a g for what is on the GPU, a c for the rest: "gggcc".
std::string choice_of(const plan::Plan& plan) {
  std::string choice;
  for (const char* name : {"source", "blur", "text", "waveform", "sink"})
    for (const plan::HandlerPlan& handler : plan.handlers)
      if (handler.name == name) choice += plan.domains[handler.domain].is_host() ? 'c' : 'g';
  return choice;
}

struct Measured {
  double host, device, device_to_host; // frames a second
};

// On the host as many ticks as 50 ms have: what is short would be measured in cold caches.
std::vector<plan::BodyCost> measured_bodies(const Five& five) {
  std::vector<plan::BodyCost> bodies;
  for (uint64_t ticks = kTicksMin;; ticks *= 10) {
    bodies.clear();
    measure_bodies(five, "cpu", ticks, bodies);
    double tick_us = 0;
    for (const plan::BodyCost& body : bodies) tick_us += body.mean_us;
    if (tick_us * static_cast<double>(ticks) > 50'000) break;
  }
  measure_bodies(five, "cuda:0", 2000, bodies);
  return bodies;
}

// The time that cuda:0 takes on each tick beside that, measured once.
const plan::LaunchCost& measured_launch() {
  static const plan::LaunchCost cost = [] {
    const auto launches = embed::measure_launches({}, {"cpu", "cuda:0"});
    if (launches.empty()) throw Failure(701, "a region without a body cannot be measured on cuda:0");
    return launches[0];
  }();
  return cost;
}

// All that the plan knows: measured bodies and launches, and hops at `down` bytes a second.
Setup priced_setup(const std::vector<std::string>& domains, const std::vector<plan::BodyCost>& bodies, double down) {
  Setup setup = five_setup(domains);
  setup.machine = [bodies](plan::Machine& machine) {
    machine.bodies = bodies;
    machine.launches = {measured_launch()};
  };
  setup.hops = {copy_hop("cpu", "cuda:0", 10, 1e6 / down), copy_hop("cuda:0", "cpu", 10, 1e6 / down)};
  return setup;
}

void print_launch() {
  row("\nA tick on cuda:0 is planned with %.1f µs for each region and %.1f for each copy.", measured_launch().region_us,
      measured_launch().copy_us);
}

// " image.blur cpu 12.3 …", means.
std::string words_of(const std::vector<plan::BodyCost>& bodies) {
  std::string words;
  for (const plan::BodyCost& body : bodies) {
    char one[96];
    std::snprintf(one, sizeof one, " %s %s %.1f", body.type.c_str(), body.domain.c_str(), body.mean_us);
    words += one;
  }
  return words;
}

// On both orders of the domains, beside the better of what was measured with the sink where the plan has it.
void place_by_plan(const Five& five, const Measured& measured, double down) {
  const std::vector<plan::BodyCost> bodies = measured_bodies(five);
  const auto on_device = std::count_if(bodies.begin(), bodies.end(), [](const auto& b) { return b.domain != "cpu"; });
  const char* measuring = on_device >= 4 ? "" : ", GPU unmeasured";
  for (const std::vector<std::string>& domains : {std::vector<std::string>{"cuda:0", "cpu"}, {"cpu", "cuda:0"}})
    for (const char* sink : {"cuda:0", "cpu"}) {
      const Setup setup = priced_setup(domains, bodies, down);
      const Pipeline pipeline = five_handlers(five, "", sink);
      const std::string choice = choice_of(Compiled(pipeline, setup).plan());
      const double fps = fps_of(pipeline, setup);
      const double best = std::max(measured.host, choice.back() == 'g' ? measured.device : measured.device_to_host);
      row("| %ux%u | %s first, sink %s%s | %s | %.1f | %.3f |", five.width, five.height, domains[0].c_str(),
          *sink == 'c' && sink[1] == 'p' ? "on the host" : "on the GPU", measuring, choice.c_str(), fps, fps / best);
    }
  row("| %ux%u | bodies, µs |%s | | |", five.width, five.height, words_of(bodies).c_str());
}

std::vector<Five> sizes() {
  const std::string font = font_file();
  return {{640, 480, font}, {1920, 1080, font}, {3840, 2160, font}};
}

// ---- peers ------------------------------------------------------------------------------------------------------

// True if each tick's number came over. Each is told once, in order.
bool all_came(const std::vector<Seen>& log, int64_t frames) {
  const std::vector<int64_t> seen = values(log);
  if (static_cast<int64_t>(seen.size()) != frames) return false;
  for (int64_t n = 0; n < frames; ++n)
    if (seen[static_cast<size_t>(n)] != n) return false;
  return true;
}

} // namespace

void bench_five() {
  row("\n### five: test.pattern → image.blur → draw.text → draw.waveform → null.sink, rgba8, free clock, %u workers, "
      "%u ticks in flight; frames a second\n",
      kWorkers, kInFlight);
  row("| size | host | GPU | GPU, sink on the host | copy's limit | sink on the host / limit | by hand, same calls | "
      "by hand, glyphs uploaded once | GPU / same calls |");
  row("|---|---|---|---|---|---|---|---|---|");
  const std::vector<Five> all = sizes();
  std::vector<Measured> measured;
  std::vector<double> down;
  for (const Five& five : all) {
    const Measured fps{fps_of(five_handlers(five, "cpu", "cpu"), five_setup()),
                       fps_of(five_handlers(five, "cuda:0", "cuda:0"), five_setup()),
                       fps_of(five_handlers(five, "cuda:0", "cpu"), five_setup())};
    down.push_back(copies_down(five.bytes(), 300));
    const double limit = down.back() / static_cast<double>(five.bytes());
    const auto frames = static_cast<uint32_t>(std::max(200.0, kSeconds * fps.device));
    const double same = five_by_hand(five, true, frames), once = five_by_hand(five, false, frames);
    row("| %ux%u | %.1f | %.0f | %.0f | %.0f | %.3f | %.0f | %.0f | %.3f |", five.width, five.height, fps.host,
        fps.device, fps.device_to_host, limit, fps.device_to_host / limit, same, once, fps.device / same);
    measured.push_back(fps);
  }
  row("\nwhere the plan puts them, by measured bodies and hops (g: GPU, c: host)\n");
  row("| size | domains | source, blur, text, waveform, sink | frames a second | / the better one |");
  row("|---|---|---|---|---|");
  for (size_t s = 0; s < all.size(); ++s) place_by_plan(all[s], measured[s], down[s]);
  print_launch();
}

// From so small that a launch costs more than the work, to so large that the host is far behind.
void bench_crossover() {
  row("\n### crossover: the pipeline of `five`, its sink on the host; frames a second\n");
  row("| size | host | GPU | as planned | planned: source, blur, text, waveform, sink | planned / the better one |");
  row("|---|---|---|---|---|---|");
  const std::string font = font_file();
  std::vector<std::string> costs;
  for (uint32_t width = 16; width <= 2048; width *= 2) {
    const Five five{width, width * 9 / 16, font};
    const std::vector<plan::BodyCost> bodies = measured_bodies(five);
    const Setup setup = priced_setup({"cuda:0", "cpu"}, bodies, copies_down(five.bytes(), 300));
    const Pipeline as_planned = five_handlers(five, "", "cpu");
    const std::string choice = choice_of(Compiled(as_planned, setup).plan());
    std::array<double, 3> hosts, devices, by_plan; // in turns: the machine is not always alike
    for (size_t n = 0; n < hosts.size(); ++n) {
      constexpr double kTurnSeconds = 0.8;
      hosts[n] = fps_of(five_handlers(five, "cpu", "cpu"), five_setup(), kTurnSeconds);
      devices[n] = fps_of(five_handlers(five, "cuda:0", "cpu"), five_setup(), kTurnSeconds);
      by_plan[n] = fps_of(as_planned, setup, kTurnSeconds);
    }
    for (auto* turns : {&hosts, &devices, &by_plan}) std::sort(turns->begin(), turns->end());
    const double host = hosts[1], device = devices[1], planned = by_plan[1];
    row("| %ux%u | %.1f | %.1f | %.1f | %s | %.3f |", five.width, five.height, host, device, planned, choice.c_str(),
        planned / std::max(host, device));
    costs.push_back("| " + std::to_string(five.width) + "x" + std::to_string(five.height) + " |" + words_of(bodies) +
                    " |");
  }
  row("\n| size | planned with these bodies, µs |");
  row("|---|---|");
  for (const std::string& line : costs) row("%s", line.c_str());
  print_launch();
}

void bench_naive() {
  row("\n### naive: the kernels of `five`, memory allocated for each tick, each waited for and copied to the host; "
      "frames a second\n");
  row("| size | naive | ours, sink on the host | × | ours, sink on the GPU | × |");
  row("|---|---|---|---|---|---|");
  for (const Five& five : sizes()) {
    const double naive = five_naively(five, five.height > 2000 ? 50 : 300);
    const double host = fps_of(five_handlers(five, "cuda:0", "cpu"), five_setup());
    const double device = fps_of(five_handlers(five, "cuda:0", "cuda:0"), five_setup());
    row("| %ux%u | %.0f | %.0f | %.1f | %.0f | %.1f |", five.width, five.height, naive, host, host / naive, device,
        device / naive);
  }
}

namespace {

void compare_with_bare_copies(uint64_t bytes, uint32_t in_flight) {
  const int64_t frames = bytes > (100u << 20) ? 1000 : bytes > (10u << 20) ? 10'000 : 50'000;
  Pipeline pipeline;
  pipeline.add("source", "c.make", {{"bytes", std::to_string(bytes)}, {"count", std::to_string(frames)}}).device =
      "cuda:0";
  pipeline.add("first", "c.first").device = "cuda:1";
  pipeline.add("sink", "t.sink", {{"log", "peers"}}).device = "cpu";
  pipeline.connect("source.out", "first.in");
  pipeline.connect("first.out", "sink.in");
  pipeline.clock(graph::ClockMode::free, 0, 1, in_flight);
  Setup setup = bench_setup({"cuda:0", "cuda:1", "cpu"});
  setup.hops = {copy_hop("cuda:0", "cuda:1", 5, 1.0 / 376'000), copy_hop("cuda:1", "cuda:0", 5, 1.0 / 376'000)};
  const Ran result = run_or_die(std::move(pipeline), setup);
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  const double ours = gigabytes * static_cast<double>(frames) / result.report.duration_s;
  constexpr uint32_t kByHand = 2000;
  const PeerCopies pushed = peer_copies(bytes, kByHand, 0), pulled = peer_copies(bytes, kByHand, 1);
  const auto rate = [&](const PeerCopies& copies) { return gigabytes * kByHand / copies.seconds; };
  double copy_us = 0;
  for (const TransferReport& transfer : result.report.transfers)
    if (transfer.to == "cuda:1") copy_us = transfer.p50_us;
  row("| %llu | %u | %lld | %.1f | %.1f | %.3f | %.1f | %.3f | %.1f / %.1f / %.1f | %llu | %s |",
      static_cast<unsigned long long>(bytes), in_flight, static_cast<long long>(frames), ours, rate(pulled),
      ours / rate(pulled), rate(pushed), ours / rate(pushed), copy_us, pulled.one_us, pushed.one_us,
      static_cast<unsigned long long>(copied(result, "cuda:0", "cuda:1")),
      all_came(result.seen("peers"), frames) ? "equal" : "NOT EQUAL");
}

} // namespace

void bench_peers() {
  row("\n### peers: a value made on cuda:0 and read on cuda:1\n");
  row("| bytes | ticks in flight | frames | ours, GB/s | bare, pulled by cuda:1 | ours / pulled | bare, pushed by "
      "cuda:0 "
      "| ours / pushed | one copy between two events, µs p50: ours / pulled / pushed | peer copies | values |");
  row("|---|---|---|---|---|---|---|---|---|---|---|");
  for (const uint32_t in_flight : {4u, 16u}) compare_with_bare_copies(uint64_t{1} << 20, in_flight);
  compare_with_bare_copies(uint64_t{3840} * 2160 * 4, kInFlight);
  compare_with_bare_copies(uint64_t{256} << 20, kInFlight);
}

} // namespace millrace::test
