// The registry: declarations are copied and checked, libraries are loaded wholly or not at all.
#include "plugin/registry.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "millrace/handler.h"
#include "millrace/testing.h"

namespace mr = millrace;
namespace fs = std::filesystem;
using mr::plugin::HandlerInfo;
using mr::plugin::Registry;

namespace {

const std::string kModules = MILLRACE_BINARY_DIR "/test_modules/";

// The error that a call ends with; code 0 where there was none.
template <class Call>
mr::Error error_of(Call&& call) {
  try {
    call();
  } catch (const mr::Failure& failure) {
    return failure.error();
  }
  return {};
}

bool mentions(const mr::Error& error, const std::string& words) {
  return mr::format_error(error).find(words) != std::string::npos;
}

// Registers one class as "test.handler" of plugin "p", after `change` has had its way with the table.
template <class H>
mr::Error error_of_type(
    void (*change)(mr_handler_type&) = [](mr_handler_type&) {}, const char* type = "test.handler") {
  static mr_handler_type table;
  table = mr::detail::Type<H>::table(type, "For a test", "");
  change(table);
  const mr_handler_type* types[] = {&table};
  const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "p", "1", types, 1, 0};
  Registry registry;
  const mr::Error error = error_of([&] { registry.add(plugin, ""); });
  CHECK((registry.find(type) != nullptr) == (error.code == 0));
  return error;
}

struct Rich final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::keeps(2), mr::pixels({mr::Pixel::rgb8}), mr::help("what to look at")};
  mr::Inputs<mr::Records<mr::Box>> boxes{*this, "boxes", 3, mr::optional};
  mr::Output<mr::Image> out{*this, "video", mr::in_place(video)};
  mr::Param<float> gain{*this, "gain", 0.1f, "how much", mr::range(0, 2), mr::unit("dB"), mr::live};
  mr::Param<bool> on{*this, "on", true, "whether"};
  mr::Param<int> count{*this, "count", -3, "how many"};
  mr::Param<std::string> mode{*this, "mode", "fast", "how", mr::choices({"fast", "good"})};
  mr::Param<std::string> path{*this, "path", "", "where", mr::required};
  Rich() {
    stateless();
    max_pending(4);
    thread("gui");
    cost_hint_us(2.5);
  }
  void process(mr::Tick&, mr::Cpu&) {}
};

TEST_CASE("a declaration is copied with all that it says, and outlives its prototype") {
  static const mr_handler_type table = mr::detail::Type<Rich>::table("test.rich", "Has everything", "A manual");
  const mr_handler_type* types[] = {&table};
  const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "p", "1", types, 1, 0};
  Registry registry;
  registry.add(plugin, "somewhere.so");
  const HandlerInfo* info = registry.find("test.rich");
  REQUIRE(info);
  CHECK(info->summary == "Has everything");
  CHECK(info->manual == "A manual");
  CHECK(info->plugin == "p");
  CHECK(info->path == "somewhere.so");
  CHECK(info->has_cpu());
  CHECK(!info->has_cuda());
  CHECK(info->stateless());
  CHECK(!info->is_source());
  CHECK(info->max_pending == 4);
  CHECK(info->thread == "gui");
  CHECK(info->cost_hint_ns == 2500);

  REQUIRE(info->ports.size() == 3);
  CHECK(info->ports[0].name == "video");
  CHECK(info->ports[0].raw.name == nullptr); // it would be the prototype's
  CHECK(info->ports[0].help == "what to look at");
  CHECK(info->ports[0].raw.keeps == 2);
  CHECK(info->ports[1].type_name == "Records<Box>");
  CHECK(info->ports[1].many());
  CHECK(info->ports[1].optional());
  CHECK(info->find_port("video", MR_OUTPUT) == &info->ports[2]);
  CHECK(info->find_port("video", MR_INPUT) == &info->ports[0]);
  CHECK(info->ports[2].raw.like == 0);

  REQUIRE(info->params.size() == 5);
  CHECK(info->find_param("gain")->default_text == "0.1");
  CHECK(info->find_param("gain")->unit == "dB");
  CHECK(info->find_param("gain")->live());
  CHECK(info->find_param("on")->default_text == "true");
  CHECK(info->find_param("count")->default_text == "-3");
  CHECK(info->find_param("mode")->choices == std::vector<std::string>{"fast", "good"});
  CHECK(info->find_param("path")->required());
  CHECK(info->find_param("nothing") == nullptr);
}

TEST_CASE("the built-in handlers are there from the start, sorted by type") {
  Registry registry;
  std::vector<std::string> names;
  for (const HandlerInfo* info : registry.all()) {
    CHECK(info->plugin == "millrace");
    CHECK(info->path == "");
    names.push_back(info->type);
  }
  CHECK(!names.empty());
  CHECK(std::is_sorted(names.begin(), names.end()));
}

struct Plain final : mr::Handler {
  mr::Input<mr::Image> in{*this, "in"};
  void process(mr::Tick&, mr::Cpu&) {}
};

TEST_CASE("a table that lacks a function, a body or a proper name is refused") {
  CHECK(error_of_type<Plain>().code == 0);
  CHECK(error_of_type<Plain>([](mr_handler_type& t) { t.stop = nullptr; }).code == 504);
  CHECK(error_of_type<Plain>([](mr_handler_type& t) { t.process = nullptr; }).code == 504);
  CHECK(error_of_type<Plain>([](mr_handler_type& t) { t.process_cuda = t.process; }).code == 504);
  CHECK(error_of_type<Plain>([](mr_handler_type& t) { t.finish = t.process; }).code == 504);
  CHECK(error_of_type<Plain>([](mr_handler_type& t) { t.size -= 8; }).code == 504);
  for (const char* name : {"", "plain", "a.", ".b", "a..b", "a.b c", "a.1b"})
    CHECK(error_of_type<Plain>([](mr_handler_type&) {}, name).code == 504);
}

template <int Case>
struct BadPorts final : mr::Handler {
  static constexpr const char* kFirst = Case == 1 ? "two words" : Case == 2 ? "" : "in";
  mr::Input<mr::Image> first{*this, kFirst, mr::keeps(Case == 3 ? 1000 : 0)};
  mr::Input<mr::Tensor> second{*this, Case == 4 ? "in" : "tensor"};
  mr::Inputs<mr::Image> list{*this, "list", Case == 5 ? 0u : 4u};
  mr::Output<mr::Image> out{*this, "in"};
  mr::Output<mr::Image> other{*this, "other", mr::Relation{Case == 6 ? out.port() : first.port(), 0}};
  mr::Output<mr::Image> third{*this, "third", mr::Relation{Case == 7 ? second.port() : first.port(), 0}};
  BadPorts() { max_pending(Case == 8 ? 100000 : 0); }
  void process(mr::Tick&, mr::Cpu&) {}
};

TEST_CASE("ports that contradict themselves are refused, and say which") {
  CHECK(error_of_type<BadPorts<0>>().code == 0);
  CHECK(mentions(error_of_type<BadPorts<1>>(), "input 'two words': the name is not an identifier"));
  CHECK(mentions(error_of_type<BadPorts<2>>(), "input '': the name is not an identifier"));
  CHECK(mentions(error_of_type<BadPorts<3>>(), "input 'in' keeps 1000 values, at most 64"));
  CHECK(mentions(error_of_type<BadPorts<4>>(), "input 'in' is declared twice"));
  CHECK(mentions(error_of_type<BadPorts<5>>(), "input 'list' takes a list of 1 to 256 edges"));
  CHECK(mentions(error_of_type<BadPorts<6>>(), "output 'other' is like a port that is no input"));
  CHECK(mentions(error_of_type<BadPorts<7>>(), "output 'third' is like an input of another payload type"));
  CHECK(mentions(error_of_type<BadPorts<8>>(), "max_pending is 100000, at most 256"));
  CHECK(mentions(error_of_type<BadPorts<1>>(), "MR0504"));
  CHECK(mentions(error_of_type<BadPorts<1>>(), "plugin 'p'"));
}

template <int Case>
struct BadParams final : mr::Handler {
  mr::Input<mr::Image> in{*this, "in"};
  mr::Param<int> first{*this,
                       Case == 1   ? "every"
                       : Case == 2 ? "x-note"
                                   : "first",
                       Case == 3 ? 11 : 1, "", mr::range(0, 10)};
  mr::Param<int> second{*this, Case == 4 ? "first" : "second", 0, "", mr::range(0, Case == 5 ? -1 : 1)};
  mr::Param<std::string> third{*this, "third", Case == 6 ? "c" : "a", "", mr::choices({"a", "b"})};
  void process(mr::Tick&, mr::Cpu&) {}
};

TEST_CASE("parameters that contradict themselves or the pipeline file are refused, and say which") {
  CHECK(error_of_type<BadParams<0>>().code == 0);
  CHECK(mentions(error_of_type<BadParams<1>>(), "parameter 'every': the pipeline file uses this key itself"));
  CHECK(mentions(error_of_type<BadParams<2>>(), "parameter 'x-note': the name is not an identifier"));
  CHECK(mentions(error_of_type<BadParams<3>>(), "'11' is not a whole number from 0 to 10"));
  CHECK(mentions(error_of_type<BadParams<4>>(), "parameter 'first' is declared twice"));
  CHECK(mentions(error_of_type<BadParams<5>>(), "parameter 'second' has a range that holds nothing"));
  CHECK(mentions(error_of_type<BadParams<6>>(), "'c' is not one of a, b"));
}

template <int Case>
struct BadConverter final : mr::Handler {
  mr::Input<mr::Image> in{*this, "in"};
  mr::Output<mr::Image> out{*this, "out", mr::like(in)};
  mr::Output<mr::Image> more{*this, "more", mr::like(in)};
  BadConverter() { converts(); }
  void process(mr::Tick&, mr::Cpu&) {}
};

template <int Case>
struct BadRole final : mr::Handler {
  mr::Input<mr::Image> in{*this, "in", Case == 6 ? mr::pixels({}) : mr::pixels({mr::Pixel::gray8})};
  mr::Output<mr::Image> out{*this, "out", mr::like(in)};
  mr::Param<std::string> to{*this,
                            "to",
                            "rgb8",
                            "",
                            Case == 4 ? mr::choices({}) : mr::choices({"rgb8", "bgr8"}),
                            Case == 1   ? mr::says_width
                            : Case == 7 ? mr::Role{MR_ROLE_NONE}
                                        : mr::says_pixels};
  mr::Param<std::string> also{*this, "also", "bt709", "",
                              Case == 2   ? mr::says_pixels
                              : Case == 5 ? mr::says_matrix
                                          : mr::Role{MR_ROLE_NONE}};
  mr::Param<int64_t> width{*this, "width", 0, "", Case == 8 ? mr::says_width : mr::Role{MR_ROLE_NONE}};
  BadRole() {
    if (Case != 3) converts();
  }
  void process(mr::Tick&, mr::Cpu&) {}
};

struct NeedyConverter final : mr::Handler {
  mr::Input<mr::Image> in{*this, "in", mr::pixels({mr::Pixel::gray8})};
  mr::Output<mr::Image> out{*this, "out", mr::like(in)};
  mr::Param<std::string> to{*this, "to", "rgb8", "", mr::choices({"rgb8"}), mr::says_pixels};
  mr::Param<std::string> table{*this, "table", "", "", mr::required};
  NeedyConverter() { converts(); }
  void process(mr::Tick&, mr::Cpu&) {}
};

TEST_CASE("a converter that the plan could not use is refused, and says why") {
  CHECK(error_of_type<BadRole<0>>().code == 0);
  CHECK(mentions(error_of_type<BadConverter<0>>(), "has other ports than one input and one output for pictures"));
  CHECK(mentions(error_of_type<BadRole<1>>(), "parameter 'to' has a role that is not known, or is of another type"));
  CHECK(mentions(error_of_type<BadRole<2>>(), "parameter 'also' has the role of another parameter"));
  CHECK(mentions(error_of_type<BadRole<3>>(), "parameter 'to' has a role, and the handler does not say converts()"));
  CHECK(mentions(error_of_type<BadRole<4>>(), "parameter 'to' has a role whose choices have to be said"));
  CHECK(mentions(error_of_type<BadRole<5>>(), "parameter 'also' has another default than its role's, which is bt601"));
  CHECK(mentions(error_of_type<BadRole<6>>(), "its input does not say which it reads"));
  CHECK(mentions(error_of_type<BadRole<7>>(), "other than one of: pixels, a turn, width and height"));
  CHECK(mentions(error_of_type<BadRole<8>>(), "other than one of: pixels, a turn, width and height"));
  CHECK(mentions(error_of_type<NeedyConverter>(), "its parameter 'table' is required"));
}

TEST_CASE("a converter is found by what it converts, built-in ones before others") {
  Registry registry;
  REQUIRE(registry.find_converter(MR_ROLE_PIXELS));
  CHECK(registry.find_converter(MR_ROLE_PIXELS)->type == "image.convert");
  CHECK(registry.find_converter(MR_ROLE_TURN)->type == "image.flip");
  CHECK(registry.find_converter(MR_ROLE_WIDTH)->type == "image.resize");
  static const mr_handler_type early = mr::detail::Type<BadRole<0>>::table("a.convert", "", "");
  const mr_handler_type* types[] = {&early};
  const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "p", "1", types, 1, 0};
  registry.add(plugin, "somewhere.so");
  CHECK(registry.find_converter(MR_ROLE_PIXELS)->type == "image.convert");
}

// ---- shared libraries

TEST_CASE("a plugin's handlers are found and can be constructed") {
  Registry registry;
  registry.load(kModules + "good.so");
  const mr::plugin::RegisteredType* info = registry.find("good.count");
  REQUIRE(info);
  CHECK(info->plugin == "good");
  CHECK(info->path == kModules + "good.so");
  CHECK(info->is_source());
  CHECK(registry.find("good.swallow")->manual == "Takes anything and makes nothing of it.");
  const mr_host host = mr::plugin::basic_host();
  mr::plugin::Instance instance(*info, host, "counter");
  CHECK(instance.bind({1}) == MR_OK);
  CHECK(instance.start({sizeof(mr_device_info), MR_DEVICE_CPU, 0, 0, 0, 0, 0, 0, "cpu"}) == MR_OK);
  CHECK(instance.stop() == MR_OK);
}

TEST_CASE("a plugin may have several files, and its handlers can be tested by their tables") {
  Registry registry;
  registry.load(kModules + "good.so");
  REQUIRE(registry.find("good.pair"));
  CHECK(registry.find("good.first")); // two that are registered on one line
  CHECK(registry.find("good.second"));
  mr::testing::TableTest test(*registry.find("good.pair")->table);
  const mr::testing::Value first = mr::testing::image(mr::Pixel::gray8, 1, 1);
  const mr::testing::Value second = mr::testing::image(mr::Pixel::gray8, 1, 1);
  test.input("in", first, 0);
  test.input("in", second, 1);
  CHECK(test.tick().value("out").data() == first.data());
  CHECK(test.tick().value("out").data() == second.data());
}

TEST_CASE("a plugin that is loaded twice is loaded once") {
  Registry registry;
  registry.load(kModules + "good.so");
  registry.load(kModules + "../test_modules/good.so");
  CHECK(registry.find("good.count"));
}

TEST_CASE("two registries know different plugins") {
  Registry one, other;
  one.load(kModules + "good.so");
  CHECK(other.find("good.count") == nullptr);
  other.load(kModules + "good.so");
  CHECK(other.find("good.count"));
}

TEST_CASE("classes of one name in two plugins do not meet, whichever way the plugins were built") {
  Registry registry;
  for (const char* name : {"good", "twin", "by_hand"}) registry.load(kModules + name + ".so");
  const mr_host host = mr::plugin::basic_host();
  const auto count_of = [&](const char* type) {
    mr::plugin::Instance instance(*registry.find(type), host, "counter");
    mr_facts facts = millrace::no_facts();
    CHECK(instance.probe(facts) == MR_OK);
    return facts.tick_count;
  };
  // Each has its own code; how many were constructed before depends on the tests that ran.
  const int64_t twin = count_of("twin.count");
  CHECK(count_of("good.count") / 1000 == 1);
  CHECK(count_of("by_hand.count") / 1000 == 3);
  CHECK(count_of("twin.count") == twin + 1);
  CHECK(registry.find("twin.count")->params[0].name == "word");
}

TEST_CASE("what is no plugin is refused with the loader's words") {
  Registry registry;
  const mr::Error missing = error_of([&] { registry.load(kModules + "missing.so"); });
  CHECK(missing.code == 501);
  CHECK(mentions(missing, "no such file"));

  const fs::path text = fs::temp_directory_path() / ("millrace_no_elf_" + std::to_string(getpid()) + ".so");
  std::ofstream(text) << "this is a text\n";
  const mr::Error no_elf = error_of([&] { registry.load(text.string()); });
  fs::remove(text);
  CHECK(no_elf.code == 501);
  CHECK(mentions(no_elf, "the loader said"));

  const fs::path pipe = text.string() + "_pipe.so"; // nobody writes into it
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const mr::Error no_file = error_of([&] { registry.load(pipe.string()); });
  fs::remove(pipe);
  CHECK(no_file.code == 501);
  CHECK(mentions(no_file, "no regular file"));

  const mr::Error no_entry = error_of([&] { registry.load(kModules + "no_entry.so"); });
  CHECK(no_entry.code == 502);
  CHECK(mentions(no_entry, "millrace_plugin"));
  CHECK(error_of([&] { registry.load(kModules + "wrong_table.so"); }).code == 504);
}

TEST_CASE("a plugin of another ABI version is refused with both versions") {
  Registry registry;
  const mr::Error error = error_of([&] { registry.load(kModules + "other_abi.so"); });
  CHECK(error.code == 503);
  CHECK(mentions(error, "ABI 4711"));
  CHECK(mentions(error, "this millrace: ABI " + std::to_string(MR_ABI_VERSION)));
}

TEST_CASE("of a plugin with one bad handler, nothing is registered") {
  Registry registry;
  const mr::Error thrown = error_of([&] { registry.load(kModules + "throws.so"); });
  CHECK(thrown.code == 506);
  CHECK(mentions(thrown, "throws.always"));
  CHECK(mentions(thrown, "the moon is in the wrong phase"));
  CHECK(registry.find("throws.fine") == nullptr);

  registry.load(kModules + "good.so");
  const mr::Error clash = error_of([&] { registry.load(kModules + "clash.so"); });
  CHECK(clash.code == 505);
  CHECK(mentions(clash, "good.swallow"));
  CHECK(mentions(clash, "first by plugin 'good'"));
  CHECK(mentions(clash, "then by plugin 'clash'"));
  CHECK(registry.find("clash.fresh") == nullptr);
  CHECK(registry.find("good.swallow")->plugin == "good");
}

TEST_CASE("scanning a folder loads what is good, keeps what failed, and takes a missing folder for an empty one") {
  Registry registry;
  registry.scan(kModules + "not_there");
  CHECK(registry.failures().empty());
  registry.scan(kModules);
  CHECK(registry.find("clash.fresh"));
  CHECK(registry.find("twin.count"));
  std::vector<int> codes;
  for (const mr::plugin::LoadFailure& failure : registry.failures()) {
    CHECK(!failure.path.empty());
    codes.push_back(failure.error.code);
  }
  // By file name: clash comes before good and so good is the one that fails; no_entry, other_abi, throws, wrong_table.
  CHECK(codes == std::vector<int>{505, 502, 503, 506, 504});
}

} // namespace
