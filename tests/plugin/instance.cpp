// Instances: parameters from text, sentences of failures, and the end of a blocked call.
#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <semaphore>
#include <thread>

#include "millrace/handler.h"
#include "observe/error_codes.h"
#include "plugin/registry.h"

namespace mr = millrace;
using mr::plugin::Instance;

namespace {

constexpr mr_device_info kHost = {sizeof(mr_device_info), MR_DEVICE_CPU, 0, 0, 0, 0, 0, 0, "cpu"};

struct Everything final : mr::Handler {
  mr::Output<mr::Packet> out{*this, "out"};
  mr::Param<bool> on{*this, "on", false, ""};
  mr::Param<int> count{*this, "count", 0, "", mr::range(-5, 999)};
  mr::Param<uint16_t> port{*this, "port", 80, ""};
  mr::Param<float> gain{*this, "gain", 1, "", mr::range(0, 2), mr::unit("dB")};
  mr::Param<double> bias{*this, "bias", 0, "", mr::at_least(-1)};
  mr::Param<std::string> mode{*this, "mode", "fast", "", mr::choices({"fast", "careful"})};
  mr::Param<std::string> path{*this, "path", "", ""};
  mr::Param<std::string> doing{*this, "doing", "", "what a call does: throw, throw_coded, throw_int, no_memory, wait"};

  std::binary_semaphore waiting{0}, ended{0};

  void start() override { act(); }
  void drain() override { act(); }
  void stop() override { act(); }
  void reset() override { act(); }
  void probe(mr::Facts&) override { act(); }
  void configure(const mr::Formats&) override { act(); }
  void interrupt() override { ended.release(); }
  void process(mr::Tick&, mr::Cpu&) {}

  void act() {
    if (*doing == "throw") throw std::runtime_error("it is raining");
    if (*doing == "throw_coded") throw mr::CodedError(static_cast<uint32_t>(*count), "it is raining");
    if (*doing == "throw_int") throw 5;
    if (*doing == "no_memory") throw std::bad_alloc();
    if (*doing == "wait") {
      waiting.release();
      ended.acquire();
    }
  }
};

struct Fixture {
  mr::plugin::Registry registry;
  mr_host host = mr::plugin::basic_host();
  std::unique_ptr<Instance> instance;
  Fixture() {
    static const mr_handler_type table = mr::detail::Type<Everything>::table("test.everything", "For a test", "");
    const mr_handler_type* types[] = {&table};
    registry.add({sizeof(mr_plugin), MR_ABI_VERSION, "p", "1", types, 1, 0}, "");
    instance = std::make_unique<Instance>(*registry.find("test.everything"), host, "it");
  }
  Everything& handler() { return *static_cast<Everything*>(instance->self()); }
  mr::Error error_of(const std::string& name, const std::string& text) {
    try {
      instance->set_param(name, text, {"street.yaml", 3, 7});
    } catch (const mr::Failure& failure) {
      return failure.error();
    }
    return {};
  }
  int code_of(const std::string& name, const std::string& text) { return error_of(name, text).code; }
};

TEST_CASE_FIXTURE(Fixture, "booleans are read from the words that people use") {
  for (const char* text : {"true", "yes", "on", "1"}) {
    CHECK(code_of("on", text) == 0);
    CHECK(*handler().on == true);
  }
  for (const char* text : {"false", "no", "off", "0"}) {
    CHECK(code_of("on", text) == 0);
    CHECK(*handler().on == false);
  }
  for (const char* text : {"", "maybe", "2", "True "}) CHECK(code_of("on", text) == 311);
}

TEST_CASE_FIXTURE(Fixture, "whole numbers are decimal or hexadecimal, never octal and never rounded") {
  CHECK(code_of("count", "0xff") == 0);
  CHECK(*handler().count == 255);
  CHECK(code_of("count", "-5") == 0);
  CHECK(*handler().count == -5);
  CHECK(code_of("count", "010") == 0);
  CHECK(*handler().count == 10);
  for (const char* text : {"7.0", "7.", "0.7e1", "70e-1", "+7.00", "7e0"}) {
    CHECK(code_of("count", text) == 0);
    CHECK(*handler().count == 7);
  }
  CHECK(code_of("count", "1e1") == 0);
  for (const char* text :
       {"", " 1", "1 ", "1.5", "1e", "1e+", "15e-1", "1.0.0", ".", "0x", "0x-1", "--1", "+-1", "one", "0xg", "-"})
    CHECK(code_of("count", text) == 311);
  for (const char* text : {"-6", "1000", "99999999999999999999", "1e4", "1e99", "-0xffffffffffffffff"})
    CHECK(code_of("count", text) == 312);
  CHECK(*handler().count == 10);
}

TEST_CASE_FIXTURE(Fixture, "a number that the handler's own type does not hold is out of range") {
  CHECK(code_of("port", "65535") == 0);
  CHECK(*handler().port == 65535);
  CHECK(code_of("port", "65536") == 312);
  CHECK(code_of("port", "-1") == 312);
  CHECK(*handler().port == 65535);
}

TEST_CASE_FIXTURE(Fixture, "numbers stay inside their range, and the message has the range and the unit") {
  CHECK(code_of("gain", "1.5e0") == 0);
  CHECK(*handler().gain == 1.5f);
  for (const char* text : {"", "nan", "inf", "1,5", "0x1", "1.5 dB"}) CHECK(code_of("gain", text) == 311);
  CHECK(code_of("bias", "1e999") == 312);
  CHECK(code_of("bias", "-1.1") == 312);
  const mr::Error error = error_of("gain", "2.1");
  CHECK(error.code == 312);
  CHECK(error.what == "parameter 'gain' of test.everything: '2.1' is not a number from 0 to 2 dB");
  CHECK(error.place.line == 3);
  CHECK(error.place.column == 7);
}

TEST_CASE_FIXTURE(Fixture, "a choice that is nearly right gets a suggestion, and so does a name") {
  CHECK(code_of("mode", "careful") == 0);
  CHECK(*handler().mode == "careful");
  const mr::Error choice = error_of("mode", "carefull");
  CHECK(choice.code == 313);
  CHECK(choice.nearest == "careful");
  const mr::Error name = error_of("gian", "1");
  CHECK(name.code == 310);
  CHECK(name.nearest == "gain");
  CHECK(code_of("path", "any thing at all") == 0);
  CHECK(*handler().path == "any thing at all");
}

TEST_CASE_FIXTURE(Fixture, "a parameter that takes JSON takes nothing else") {
  mr::plugin::HandlerInfo::Param param = instance->info().params.back();
  param.raw.type = MR_PARAM_JSON;
  const std::string good = R"({"preset": ["fast", 3]})", bad = "{preset: fast}";
  CHECK(mr::plugin::parse_param(instance->info(), param, good, {}).as.text == good.c_str());
  CHECK_THROWS_AS(mr::plugin::parse_param(instance->info(), param, bad, {}), mr::Failure);
}

TEST_CASE_FIXTURE(Fixture, "an exception at any entry becomes the sentence of the failure") {
  const std::vector<mr_format> none;
  mr_facts facts = millrace::no_facts();
  const auto sentences = [&](const char* doing) {
    instance->set_param("doing", doing, {});
    std::vector<std::string> said;
    const auto keep = [&](mr_status status) { said.push_back(status == MR_ERROR ? instance->error() : "no error"); };
    std::vector<mr_format> outputs(1);
    keep(instance->bind({1}));
    keep(instance->probe(facts));
    keep(instance->configure(none, outputs));
    keep(instance->start(kHost));
    keep(instance->reset());
    keep(instance->drain());
    keep(instance->stop());
    return said;
  };
  const auto all_but_bind = [](const std::string& sentence) {
    std::vector<std::string> said(7, sentence);
    said[0] = "no error";
    return said;
  };
  CHECK(sentences("") == all_but_bind("no error"));
  CHECK(sentences("throw") == all_but_bind("it is raining"));
  CHECK(sentences("throw_int") == all_but_bind("an exception that is no std::exception was thrown"));
  const std::vector<std::string> silent = sentences("no_memory");
  CHECK(silent[3] == "start failed without saying why; perhaps there was no memory left");
  CHECK(sentences("") == all_but_bind("no error"));
}

TEST_CASE_FIXTURE(Fixture,
                  "a failure has the code that its handler gave, if it is one of those that handlers may give") {
  instance->set_param("doing", "throw_coded", {});
  const auto fault_of = [&](const char* code) {
    instance->set_param("count", code, {});
    CHECK(instance->start(kHost) == MR_ERROR);
    CHECK(instance->error() == "it is raining");
    return instance->fault();
  };
  CHECK(fault_of("906") == mr::code::model_shape);
  CHECK(fault_of("404") == 0);
  CHECK(fault_of("999") == 0);
  CHECK(fault_of("901") == mr::code::model_missing);
  CHECK(instance->take_error("start") == "it is raining");
  CHECK(instance->fault() == 0);
}

TEST_CASE_FIXTURE(Fixture, "a runtime whose table ends before fail_as gets the sentence alone") {
  host.size = offsetof(mr_host, fail_as);
  host.fail_as = nullptr;
  instance->set_param("doing", "throw_coded", {});
  instance->set_param("count", "906", {});
  CHECK(instance->start(kHost) == MR_ERROR);
  CHECK(instance->error() == "it is raining");
  CHECK(instance->fault() == 0);
}

TEST_CASE_FIXTURE(Fixture, "interrupt ends a blocked call from another thread") {
  instance->set_param("doing", "wait", {});
  std::thread worker([&] { CHECK(instance->start(kHost) == MR_OK); });
  handler().waiting.acquire();
  instance->interrupt();
  worker.join();
}

struct Refuses final : mr::Handler {
  static inline bool refuse = false;
  mr::Output<mr::Packet> out{*this, "out"};
  Refuses() {
    if (refuse) throw std::runtime_error("not twice");
  }
  void process(mr::Tick&, mr::Cpu&) {}
};

TEST_CASE("a constructor that fails is an error with the handler's name and its sentence") {
  static const mr_handler_type table = mr::detail::Type<Refuses>::table("test.refuses", "For a test", "");
  const mr_handler_type* types[] = {&table};
  mr::plugin::Registry registry;
  registry.add({sizeof(mr_plugin), MR_ABI_VERSION, "p", "1", types, 1, 0}, "");
  const mr_host host = mr::plugin::basic_host();
  Refuses::refuse = true;
  try {
    Instance instance(*registry.find("test.refuses"), host, "door");
    FAIL("it was constructed");
  } catch (const mr::Failure& failure) {
    CHECK(failure.error().code == 506);
    CHECK(std::string(failure.what()).find("door") != std::string::npos);
    CHECK(std::string(failure.what()).find("not twice") != std::string::npos);
  }
}

} // namespace
