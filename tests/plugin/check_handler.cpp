// check_handler.h as an author's own test uses it: in one process, on a class.
#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>

#include "millrace/check_handler.h"

namespace mr = millrace;
using mr::testing::Verdict;

namespace {

struct Brighten final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8})};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<int> by{*this, "by", 1, "how much is added", mr::range(0, 255), mr::live};
  Brighten() { stateless(); }
  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan made = out.allocate_like(tick, in);
    for (uint32_t y = 0; y < in.height(); ++y)
      for (uint32_t x = 0; x < in.width(); ++x) made.row(y)[x] = static_cast<uint8_t>(in.row(y)[x] + by);
  }
};

struct Forgets final : mr::Handler {
  mr::Input<mr::Tensor> in{*this, "in"};
  void drain() override {
    if (drained_) throw std::runtime_error("drained before");
    drained_ = true;
  }
  void process(mr::Tick&, mr::Cpu&) {}

 private:
  bool drained_ = false;
};

struct NeedsAFile final : mr::Handler {
  mr::Output<mr::Image> out{*this, "video"};
  mr::Param<std::string> path{*this, "path", "", "the file to read"};
  void probe(mr::Facts&) override {
    if (path->empty()) throw std::runtime_error("there is no file ''");
  }
  void configure(const mr::Formats& formats) override { formats.image(out, mr::Pixel::gray8, 8, 8); }
  void process(mr::Tick& tick, mr::Cpu&) { tick.end(); }
};

// Takes what it declares and nothing else, and fails where it is given that.
struct OfFloats final : mr::Handler {
  mr::Input<mr::Tensor> in{*this, "in", mr::dtypes<float, uint8_t>(), mr::ranks(2, 3)};
  mr::Output<mr::Tensor> out{*this, "out", mr::dtypes<double>(), mr::rank(1)};
  void configure(const mr::Formats& formats) override { formats.tensor(out, mr::dtype_of<double>(), {1}); }
  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::TensorView tensor = in(tick);
    const size_t rank = tensor.shape().size();
    if (rank != 2 && rank != 3) throw std::runtime_error("a tensor of " + std::to_string(rank) + " dimensions");
    if (tensor.dtype() != mr::dtype_of<uint8_t>()) (void)tensor.elements<float>();
    const std::array<int64_t, 1> shape = {1};
    out.allocate(tick, mr::dtype_of<double>(), shape).elements<double>()[0] = 1;
  }
};

// Declares a type that it does not take.
struct Boastful final : mr::Handler {
  mr::Input<mr::Tensor> in{*this, "in", mr::dtypes<float, int16_t>()};
  void process(mr::Tick& tick, mr::Cpu&) { (void)in(tick).elements<float>(); }
};

// Takes any device that is not the host for a GPU.
struct Hasty final : mr::Handler {
  mr::Input<mr::Tensor> in{*this, "in", mr::dtypes<float>()};
  void start(const mr::DeviceInfo& device) override {
    if (device.kind != mr::DeviceKind::cpu && device.multiprocessors == 0)
      throw std::runtime_error("no multiprocessors");
  }
  void process(mr::Tick&, mr::Cpu&) {}
};

// Names of the checks with this verdict.
std::set<std::string> with(Verdict verdict, const mr::testing::Subject& subject) {
  std::set<std::string> names;
  for (const mr::testing::HandlerCheck& check : mr::testing::kHandlerChecks)
    if (check.run(subject).verdict == verdict) names.insert(check.name);
  return names;
}

} // namespace

TEST_CASE("a handler that does what it declares passes every check that concerns it") {
  const mr::testing::Subject subject = mr::testing::subject_of<Brighten>();
  CHECK(with(Verdict::fail, subject).empty());
  const std::set<std::string> passed = with(Verdict::pass, subject);
  for (const char* name : {"works", "restart", "sizes", "pixels", "parameters", "live", "keeps", "stateless"}) {
    INFO(name);
    CHECK(passed.count(name) == 1);
  }
}

TEST_CASE("a fault fails the check that is made for it, with the handler's words") {
  const mr::testing::Subject subject = mr::testing::subject_of<Forgets>();
  const std::set<std::string> failed = with(Verdict::fail, subject);
  CHECK(failed.count("drain") == 1);
  for (const mr::testing::HandlerCheck& check : mr::testing::kHandlerChecks)
    if (std::string(check.name) == "drain")
      CHECK(check.run(subject).reason == "a second drain fails: it said: drained before");
}

TEST_CASE("a handler that starts on the host alone fails the check of devices") {
  CHECK(with(Verdict::fail, mr::testing::subject_of<Hasty>()) == std::set<std::string>{"devices"});
}

TEST_CASE("tensors are fed as the port declares them, and every declared one is tried") {
  CHECK(with(Verdict::fail, mr::testing::subject_of<OfFloats>()).empty());
  CHECK(with(Verdict::pass, mr::testing::subject_of<OfFloats>()).count("tensors") == 1);
  const mr::testing::Subject subject = mr::testing::subject_of<Boastful>();
  for (const mr::testing::HandlerCheck& check : mr::testing::kHandlerChecks)
    if (std::string(check.name) == "tensors")
      CHECK(check.run(subject).reason == "it fails with int16 of 1 dimensions: the tensor holds int16, not float32");
}

TEST_CASE("who does not start fails one check, and the parameter that it lacks can be given") {
  CHECK(with(Verdict::fail, mr::testing::subject_of<NeedsAFile>()) == std::set<std::string>{"works"});
  CHECK(with(Verdict::fail, mr::testing::subject_of<NeedsAFile>({{"path", "a.raw"}})).empty());
}

TEST_CASE("without a counter of allocations their check is left out") {
  for (const mr::testing::HandlerCheck& check : mr::testing::kHandlerChecks)
    if (std::string(check.name) == "no_allocation")
      CHECK(check.run(mr::testing::subject_of<Brighten>()).verdict == Verdict::skipped);
}
