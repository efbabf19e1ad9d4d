// --set: what it reaches and what it refuses.
#include <doctest/doctest.h>

#include "graph/graph.h"

using namespace millrace;
using namespace millrace::graph;

namespace {

std::string refusal(const std::string& assignment) {
  Graph graph = parse_line("test.pattern ! image.blur sigma=2 ! null.sink");
  try {
    apply_set(graph, assignment);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "accepted";
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
  CHECK(refusal("blur.batch=4") ==
        "error MR0108: 'batch' is not there yet\n  at --set blur.batch=4\n"
        "  it is reserved for running over several items at once\n  try: leave 'batch' out");
  CHECK(refusal("blur.on_error=skipp") ==
        "error MR0108: 'on_error' cannot be 'skipp'\n  at --set blur.on_error=skipp\n"
        "  expected fail, skip, restart or bypass\n  did you mean 'skip'?\n"
        "  try: blur.on_error=skip");
  CHECK(refusal("=").substr(0, 13) == "error MR0101:");
  CHECK(refusal("blur.clock=left").substr(0, 13) == "error MR0315:");
  CHECK(refusal("blur.node=edge").substr(0, 13) == "error MR0318:");
}
