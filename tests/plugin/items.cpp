// Handlers that take several items a call: how they are declared, called, and checked.
#include <doctest/doctest.h>
#include <millrace/check_handler.h>
#include <millrace/testing.h>

#include <string>
#include <vector>

#include "plugin/registry.h"

using namespace millrace;
namespace testing = millrace::testing;

namespace {

// Adds a number to each element of a tensor, for all items in one pass over their memory.
struct AddsToAll : Handler {
  Input<Tensor> in{*this, "in", dense, dtypes<float>()};
  Output<Tensor> out{*this, "out", dense, like(in)};
  Param<float> term{*this, "term", 1.0f, "is added"};
  std::vector<uint32_t> sizes; // of the calls
  AddsToAll() { items(8); }
  void process(Items& items, Cpu&) {
    sizes.push_back(items.size());
    const DenseView given = in.all(items);
    const auto elements = given.elements<float>();
    const auto made = out.allocate_all(items, dtype_of<float>(), in(items[0]).shape()).elements<float>();
    REQUIRE(made.size() == elements.size());
    for (size_t i = 0; i < elements.size(); ++i) made[i] = elements[i] + term;
    for (Tick& item : items)
      if (in(item).elements<float>()[0] < 0) item.fail("a negative number");
  }
};

// Pictures of any size: each item's lies where it lies.
struct CopiesEach final : Handler {
  Input<Image> video{*this, "video", pixels({Pixel::gray8})};
  Output<Image> out{*this, "video", like(video)};
  CopiesEach() { items(4); }
  void process(Items& items, Cpu&) {
    for (Tick& item : items) {
      const ImageView in = video(item);
      const ImageSpan made = out.allocate_like(item, in);
      for (uint32_t y = 0; y < in.height(); ++y) std::copy_n(in.row(y), in.width(), made.row(y));
    }
  }
};

struct TellsOfItsCall final : AddsToAll {
  void process(Items& items, Cpu&) {
    const float own = static_cast<float>(items.size());
    const auto made = out.allocate_all(items, dtype_of<float>(), in(items[0]).shape()).elements<float>();
    std::fill(made.begin(), made.end(), own);
  }
};

struct WritesOver final : AddsToAll {
  void process(Items& items, Cpu&) {
    const auto made = out.allocate_all(items, dtype_of<float>(), in(items[0]).shape()).elements<float>();
    for (size_t i = 0; i < made.size() + 1; ++i) made.data()[i] = 0;
  }
};

testing::Value row_of(float first) { return testing::tensor<float>({1, 3}, {first, first + 1, first + 2}); }

testing::Verdict verdict_of(const char* check, const testing::Subject& subject) {
  for (const testing::HandlerCheck& one : testing::kHandlerChecks)
    if (std::string(one.name) == check) return one.run(subject).verdict;
  FAIL("there is no check " << check);
  return testing::Verdict::fail;
}

} // namespace

TEST_CASE("items of a call lie together, and each has a result, a time and a stream of its own") {
  testing::HandlerTest<AddsToAll> test({{"term", "10"}});
  for (const uint32_t stream : {2u, 0u, 1u}) {
    test.input("in", row_of(static_cast<float>(100 * stream)));
    test.set_stream(stream);
    test.put();
  }
  const std::vector<testing::Result> results = test.fire_items();
  REQUIRE(results.size() == 3);
  CHECK(test.handler().sizes == std::vector<uint32_t>{3});
  for (size_t i = 0; i < 3; ++i) {
    const uint32_t stream = std::vector<uint32_t>{2, 0, 1}[i];
    REQUIRE_MESSAGE(results[i].ok(), results[i].error);
    CHECK(results[i].tick.index == i);
    CHECK(results[i].value("out").header().stream == stream);
    CHECK(results[i].tensor("out").elements<float>()[2] == static_cast<float>(100 * stream + 12));
  }
}

TEST_CASE("an item that fails does so alone, and one without its input is in no call") {
  testing::HandlerTest<AddsToAll> test;
  for (const float first : {1.0f, -5.0f, 3.0f}) {
    test.input("in", row_of(first));
    test.put();
  }
  test.input("in", testing::Value{});
  test.put();
  const std::vector<testing::Result> results = test.fire_items();
  CHECK(test.handler().sizes == std::vector<uint32_t>{3});
  CHECK(results[0].ok());
  CHECK(results[1].error == "a negative number");
  CHECK_FALSE(results[1].has("out"));
  CHECK(results[2].tensor("out").elements<float>()[0] == 4);
  CHECK_FALSE(results[3].fired);
}

TEST_CASE("a handler that takes items takes one a tick where it stands alone") {
  testing::HandlerTest<AddsToAll> test;
  test.input("in", row_of(1));
  CHECK(test.tick().tensor("out").elements<float>()[0] == 2);
  test.input("in", row_of(-1));
  CHECK(test.tick().error == "a negative number");
  CHECK(test.handler().sizes == std::vector<uint32_t>{1, 1});
}

TEST_CASE("pictures of different sizes go together into one call") {
  testing::HandlerTest<CopiesEach> test;
  test.bounded();
  for (const uint32_t width : {8u, 3u, 5u}) {
    test.input("video", testing::image(Pixel::gray8, width, 2, static_cast<uint8_t>(width)));
    test.put();
  }
  const std::vector<testing::Result> results = test.fire_items();
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE_MESSAGE(results[i].ok(), results[i].error);
    CHECK(results[i].image("video").width() == std::vector<uint32_t>{8, 3, 5}[i]);
  }
}

TEST_CASE("a call takes as many items as the handler declares; one past the end of all of them is found") {
  testing::HandlerTest<WritesOver> test;
  for (int i = 0; i < 2; ++i) {
    test.input("in", row_of(0));
    test.put();
  }
  for (const testing::Result& result : test.fire_items())
    CHECK(result.error == "the handler wrote past the end of output 'out' of all items");
  for (int i = 0; i < 9; ++i) test.put();
  CHECK_THROWS_AS(test.fire_items(), std::logic_error);
}

TEST_CASE("check-handler compares calls of one item, of two and of as many as are declared") {
  CHECK(verdict_of("items", testing::subject_of<AddsToAll>()) == testing::Verdict::pass);
  CHECK(verdict_of("items", testing::subject_of<CopiesEach>()) == testing::Verdict::pass);
  CHECK(verdict_of("items", testing::subject_of<TellsOfItsCall>()) == testing::Verdict::fail);
}

namespace {

struct NoMost final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Items&, Cpu&) {}
};
struct TooMany final : Handler {
  Input<Tensor> in{*this, "in"};
  TooMany() { items(65); }
  void process(Items&, Cpu&) {}
};
struct LateItems final : Handler {
  Input<Tensor> in{*this, "in"};
  LateItems() { items(2), max_pending(1); }
  void process(Items&, Cpu&) {}
};
struct DenseAlone final : Handler {
  Input<Tensor> in{*this, "in", dense};
  void process(Tick&, Cpu&) {}
};
struct DensePicture final : Handler {
  Input<Image> in{*this, "in", dense};
  DensePicture() { items(2); }
  void process(Items&, Cpu&) {}
};

template <class H>
std::string refusal_of_type() {
  const mr_handler_type type = v1::detail::Type<H>::table("i.type", "", "");
  const mr_handler_type* const types[] = {&type};
  const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "i", "1", types, 1, 0};
  try {
    plugin::Registry registry;
    registry.add(plugin, "");
  } catch (const Failure& failure) {
    return failure.error().what;
  }
  return "";
}

} // namespace

namespace {

struct SaysNothing final : Handler {
  Input<Tensor> in{*this, "in"};
  SaysNothing() { items(4); }
  void process(Items& items, Cpu&) { items[1].not_yet(); }
};

} // namespace

TEST_CASE("an item of which a handler with inputs says that it has nothing fails, and the others of its call do not") {
  testing::HandlerTest<SaysNothing> test;
  for (const int64_t value : {1, 2, 3}) {
    test.input("in", testing::tensor<int64_t>({1}, {value}));
    test.put();
  }
  const std::vector<testing::Result> results = test.fire_items();
  REQUIRE(results.size() == 3);
  CHECK(results[0].ok());
  CHECK(results[1].error == "it has inputs and says that it has nothing");
  CHECK(results[2].ok());
}

TEST_CASE("a declaration of items that cannot be kept is refused when the plugin is loaded") {
  CHECK(refusal_of_type<AddsToAll>().empty());
  CHECK(refusal_of_type<NoMost>().find("items() and process(Items&, …) belong together") != std::string::npos);
  CHECK(refusal_of_type<TooMany>().find("it takes 65 items a call, at most 64 are possible") != std::string::npos);
  CHECK(refusal_of_type<LateItems>().find("it cannot have results pending") != std::string::npos);
  CHECK(refusal_of_type<DenseAlone>().find("input 'in' is dense") != std::string::npos);
  CHECK(refusal_of_type<DensePicture>().find("input 'in' is dense") != std::string::npos);
}
