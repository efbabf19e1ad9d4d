// --set: what it reaches and what it refuses.
#include <doctest/doctest.h>

#include "graph/graph.h"
#include "observe/error.h"

using namespace millrace;
using namespace millrace::graph;

namespace {

// A template and a handler that takes its items.
Graph streams_with(const std::string& batch) {
  std::vector<Error> kept; // mistakes elsewhere do not count
  return parse_yaml(
      "version: 1\nstreams: { cameras: { items: [gate, hall] } }\nhandlers: { video: { type: t.v, for_each: cameras },"
      " detect: { type: t.d, input: video, batch: { " +
          batch + " } } }",
      "f", &kept);
}

std::string refusal_by(Graph& graph, const std::string& assignment) {
  try {
    apply_set(graph, assignment);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "accepted";
}
std::string refusal(const std::string& assignment) {
  Graph graph = parse_line("test.pattern ! image.blur sigma=2 ! null.sink");
  return refusal_by(graph, assignment);
}

} // namespace

TEST_CASE("an assignment changes a parameter, adds one, or sets a reserved key") {
  Graph graph = parse_line("test.pattern ! image.blur sigma=2 ! null.sink");
  apply_set(graph, "blur.sigma=3");
  apply_set(graph, "blur.border.mode=a=b");
  apply_set(graph, "blur.every=4");
  apply_set(graph, "pattern.device=sim:0");
  apply_set(graph, "sink.on_error=skip");
  CHECK(graph.handlers[1].params.at(0).text == "3");
  CHECK(graph.handlers[1].params.at(1).name == "border.mode");
  CHECK(graph.handlers[1].params.at(1).text == "a=b");
  CHECK(graph.handlers[1].every == 4);
  CHECK(graph.handlers[0].device == "sim:0");
  CHECK(graph.handlers[2].on_error == OnError::skip);
}

TEST_CASE("a batch is set as a whole by its size, and key by key") {
  Graph graph = streams_with("budget: 50ms, max: 32");
  apply_set(graph, "detect.batch.budget=20ms");
  CHECK(graph.handlers[1].batch->budget_ns == 20'000'000);
  CHECK(graph.handlers[1].batch->max == 32);
  CHECK(graph.handlers[1].batch->place.file == "--set detect.batch.budget=20ms");
  apply_set(graph, "detect.batch=16");
  CHECK(graph.handlers[1].batch->size == 16);
  CHECK(graph.handlers[1].batch->budget_ns == 0);
  CHECK(graph.handlers[1].batch->max == 0);
  apply_set(graph, "detect.batch.wait=0ms");
  CHECK(graph.handlers[1].batch->size == 16);
  CHECK(graph.handlers[1].batch->wait_ns == 0);
  graph.handlers[1].batch.reset();
  apply_set(graph, "detect.batch.of=rows");
  CHECK(graph.handlers[1].batch->of_rows);
  CHECK(graph.handlers[1].params.empty());
}

TEST_CASE("an assignment to a batch that cannot be made says why, and changes nothing") {
  const auto refusal_of = [](const std::string& assignment) {
    Graph graph = streams_with("size: 8, max: 16");
    const Graph before = graph;
    const std::string told = refusal_by(graph, assignment);
    CHECK(same(graph, before));
    return told;
  };
  CHECK(refusal_of("detect.batch=0") ==
        "error MR0108: 'batch' cannot be '0'\n  at --set detect.batch=0\n  expected a whole number from 1 to 64\n"
        "  or keys: size, wait, budget, max, in_flight, late or of\n  try: detect.batch=16");
  CHECK(refusal_of("detect.batch.max=24") ==
        "error MR0108: 'max' cannot be '24'\n  at --set detect.batch.max=24\n"
        "  expected a power of two from 1 to 64\n  try: detect.batch.max=16");
  CHECK(refusal_of("detect.batch.max=4") ==
        "error MR0108: 'size' of a batch is 8, and its 'max' is 4\n  at --set detect.batch.max=4\n"
        "  expected a size of at most max\n  try: detect.batch.max=8");
  CHECK(refusal_of("detect.batch.budget=20ms") ==
        "error MR0108: 'budget' and 'size' of a batch exclude each other\n  at --set detect.batch.budget=20ms\n"
        "  with size and wait a batch is fixed, with budget and late it is learnt\n  try: leave 'budget' out");
  CHECK(refusal_of("detect.batch.sise=4") ==
        "error MR0108: 'sise' is no key of a batch\n  at --set detect.batch.sise=4\n"
        "  expected size, wait, budget, max, in_flight, late, of\n  did you mean 'size'?\n"
        "  try: detect.batch.size=4");
  CHECK(refusal_of("video.batch=4") ==
        "error MR0108: 'video' has 'for_each' and 'batch'\n  at --set video.batch=4\n"
        "  a template has an instance for each stream\n"
        "  handlers outside the streams, which read templates, take items of all streams together\n"
        "  try: leave one of them out");
  CHECK(refusal_of("video@gate.batch.size=4") ==
        "error MR0103: 'batch.size' cannot be set for one stream\n  at --set video@gate.batch.size=4\n"
        "  a stream has values of its own for parameters");
  CHECK(refusal("blur.batch=4") ==
        "error MR0108: 'blur' has 'batch', and the pipeline has no 'streams:'\n  at --set blur.batch=4\n"
        "  a batch is made of the items of several streams\n  try: leave 'batch' out");
}

TEST_CASE("an assignment that cannot be made says why") {
  CHECK(refusal("sigma=3") ==
        "error MR0101: 'sigma=3' assigns nothing\n  at --set sigma=3\n  expected handler.key=value\n"
        "  try: --set blur.sigma=2");
  CHECK(refusal("blur.sigma") ==
        "error MR0101: 'blur.sigma' assigns nothing\n  at --set blur.sigma\n  expected "
        "handler.key=value\n  try: --set blur.sigma=2");
  CHECK(refusal("blurr.sigma=3") ==
        "error MR0102: the pipeline has no handler 'blurr'\n  at --set blurr.sigma=3\n"
        "  did you mean 'blur'?\n  try: --set blur.sigma=3");
  CHECK(refusal("blur.type=image.crop") ==
        "error MR0103: 'type' shapes the graph and cannot be set\n"
        "  at --set blur.type=image.crop\n  it is changed in the pipeline itself");
  CHECK(refusal("blur.x-a=1") ==
        "error MR0103: 'x-a' is a comment for other tools and sets nothing\n  at --set blur.x-a=1");
  CHECK(refusal("blur.every=0") ==
        "error MR0108: 'every' cannot be '0'\n  at --set blur.every=0\n"
        "  expected a whole number from 1 to 1000000\n  try: blur.every=3");
  CHECK(refusal("blur.isolate=true") ==
        "error MR0108: 'isolate' is not there yet\n  at --set blur.isolate=true\n"
        "  it is reserved for handlers in processes of their own\n  try: leave 'isolate' out");
  CHECK(refusal("blur.on_error=skipp") ==
        "error MR0108: 'on_error' cannot be 'skipp'\n  at --set blur.on_error=skipp\n"
        "  expected fail, skip, restart or bypass\n  did you mean 'skip'?\n"
        "  try: blur.on_error=skip");
  CHECK(refusal("=").substr(0, 13) == "error MR0101:");
  CHECK(refusal("blur.clock=left").substr(0, 13) == "error MR0315:");
  CHECK(refusal("blur.node=edge").substr(0, 13) == "error MR0318:");
}
