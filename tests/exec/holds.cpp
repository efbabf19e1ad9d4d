// Handlers hold things of their run: objects that they share (rule 4.15), and pages that they serve (rule 4.16).
#include "exec/holds.h"

#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/page_server.h"
#include "exec/run.h"
#include "harness.h"
#include "observe/error_codes.h"
#include "table_of.h"

namespace millrace::test::held {
namespace {

struct Counter {
  static inline std::atomic<int> made{0}, alive{0};
  std::atomic<int64_t> value{0};
  Counter() {
    ++made;
    ++alive;
  }
  ~Counter() { --alive; }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
};

// Adds one for each tick to a counter of this name, and gives the sum.
struct Adds final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<std::string> name{*this, "counter", "main", "the counter's name"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick on which it fails"};
  Counter* counter = nullptr;
  void start() override {
    counter = &share<Counter>(*name);
    if (&share<Counter>(*name) != counter) throw std::logic_error("asked again, it is another one");
  }
  void process(Tick& tick, Cpu&) {
    if (static_cast<int64_t>(tick.index()) == *fail_at) throw std::runtime_error("as it was told");
    const TensorSpan sum = out.allocate(tick, dtype_of<int64_t>(), in(tick).shape());
    *reinterpret_cast<int64_t*>(sum.data()) = ++counter->value;
  }
};

struct Refuses {
  Refuses() { throw std::runtime_error("the object does not want to be"); }
};
struct SharesInVain final : Handler {
  Input<Tensor> in{*this, "in"};
  void start() override { share<Refuses>("x"); }
  void process(Tick&, Cpu&) {}
};
struct SharesTooEarly final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void configure(const Formats&) override { share<Counter>("main"); }
  void process(Tick&, Cpu&) {}
};

struct Serves final : Handler {
  Input<Tensor> in{*this, "in"};
  Param<std::string> path{*this, "page", "here", "the page's path"};
  mr_site site{};
  void start() override {
    site.size = sizeof site;
    site.path = path->c_str();
    site.title = "a page";
    site.listen = "";
    serve(site);
  }
  void process(Tick&, Cpu&) {}
};

struct Owner final : Handler {
  Input<Tensor> in{*this, "in"};
  Param<std::string> name{*this, "counter", "main", "the counter's name", owns("counter")};
  void process(Tick&, Cpu&) {}
};
struct Joiner final : Handler {
  Input<Tensor> in{*this, "in"};
  Param<std::string> name{*this, "counter", "main", "the counter's name", joins("counter")};
  void process(Tick&, Cpu&) {}
};

const mr_plugin& plugin() {
  static const mr_handler_type* const types[] = {
      table_of<Adds>("h.adds"),     table_of<SharesInVain>("h.in_vain"), table_of<SharesTooEarly>("h.early"),
      table_of<Serves>("h.serves"), table_of<Owner>("h.owner"),          table_of<Joiner>("h.joiner")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "h", "1", types, std::size(types), 0};
  return table;
}

constexpr int64_t kTicks = 20;

Setup setup() {
  Setup setup;
  setup.more = &plugin();
  return setup;
}

Pipeline pipeline_of(const std::string& middle) {
  return Pipeline("t.count name=source count=" + std::to_string(kTicks) + " ! " + middle);
}

// Notes which pages are served.
struct NotedServer final : exec::PageServer {
  std::set<std::string> now;
  std::vector<std::string> all;
  std::shared_ptr<void> serve(const mr_site& site) override {
    const std::string path = site.path;
    if (!now.insert(path).second) throw Failure(code::page_not_served, "there is a page at " + path);
    all.push_back(path);
    return {this, [this, path](void*) { now.erase(path); }};
  }
};

} // namespace

TEST_CASE("4.15: two handlers of a run share an object, which is made once and gone with the run") {
  for (const uint32_t workers : {1u, 3u}) {
    Counter::made = 0;
    Setup with = setup();
    with.workers = workers;
    const Ran ran = run(pipeline_of("h.adds name=a ! h.adds name=b ! t.sink log=v"), with);
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(values(ran.seen("v")).back() == 2 * kTicks);
    CHECK(Counter::made == 1);
    CHECK(Counter::alive == 0);
  }
}

TEST_CASE("4.15: objects of other names, and of another run in the same process, are others") {
  Counter::made = 0;
  const Ran ran = run(pipeline_of("h.adds name=a counter=one ! h.adds name=b counter=two ! t.sink log=v"), setup());
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(values(ran.seen("v")).back() == kTicks);
  CHECK(Counter::made == 2);
  Compiled first(pipeline_of("h.adds ! t.sink log=v"), setup()), second(pipeline_of("h.adds ! t.sink log=v"), setup());
  first.live().start();
  second.live().start();
  CHECK(Counter::alive == 2);
  REQUIRE(first.wait().ok);
  REQUIRE(second.wait().ok);
  CHECK(values(first.seen("v")).back() == kTicks);
  CHECK(values(second.seen("v")).back() == kTicks);
  CHECK(Counter::alive == 0);
}

TEST_CASE("4.15: a handler that restarts finds the object that others hold, and a new one if nobody does") {
  Counter::made = 0;
  Pipeline alone = pipeline_of("h.adds name=a fail_at=5 on_error=restart ! t.sink log=v");
  const Ran of_one = run(std::move(alone), setup());
  REQUIRE_MESSAGE(of_one.ok, of_one.error.what);
  CHECK(Counter::made == 2);
  CHECK(values(of_one.seen("v")).back() == kTicks - 6);
  Counter::made = 0;
  Pipeline shared =
      pipeline_of("h.adds name=a fail_at=5 on_error=restart ! t.sink log=v ; source. ! h.adds name=b ! t.sink log=w");
  const Ran of_two = run(std::move(shared), setup());
  REQUIRE_MESSAGE(of_two.ok, of_two.error.what);
  CHECK(Counter::made == 1);
  CHECK(Counter::alive == 0);
}

TEST_CASE("4.15: an object that cannot be made, or is asked for before the run, is a failure with its sentence") {
  Compiled in_vain(pipeline_of("h.in_vain"), setup());
  try {
    in_vain.live().start();
    FAIL("it starts");
  } catch (const Failure& failure) {
    CHECK(failure.error().code == code::start_failed);
    CHECK(failure.error().what.find("the object does not want to be") != std::string::npos);
  }
  CHECK_THROWS_WITH_AS(Compiled(pipeline_of("h.early ! t.sink log=v"), setup()),
                       doctest::Contains("share() and serve() belong to start()"), Failure);
}

TEST_CASE("4.15: the plan refuses a second owner of an object, and a handler that joins one without an owner") {
  const auto refusal_of = [](const std::string& rest) {
    try {
      Compiled compiled(pipeline_of(rest), setup());
    } catch (const Failure& failure) {
      return failure.error();
    }
    return Error{};
  };
  CHECK(refusal_of("h.owner name=a ; source. ! h.joiner name=b ; source. ! h.owner counter=two").code == 0);
  const Error twice = refusal_of("h.owner name=a ; source. ! h.owner name=b");
  CHECK(twice.code == code::object_owned_twice);
  CHECK(twice.what == "the counter \"main\" is owned twice: by a (h.owner) and by b (h.owner)");
  const Error misspelt = refusal_of(
      "h.owner name=a counter=left ; source. ! h.owner name=b counter=right ; "
      "source. ! h.joiner name=c counter=lefy");
  CHECK(misspelt.code == code::object_without_owner);
  CHECK(misspelt.nearest == "left");
  const Error none = refusal_of("h.joiner name=c");
  CHECK(none.code == code::object_without_owner);
  REQUIRE(none.notes.size() == 1);
  CHECK(none.notes[0] == "no handler of this pipeline owns a counter; one can: h.owner");
}

TEST_CASE("4.16: a page is served from a handler's start until it is about to stop") {
  NotedServer server;
  Setup with = setup();
  with.options.pages = &server;
  Compiled compiled(pipeline_of("h.serves"), with);
  CHECK(server.now.empty());
  compiled.live().start();
  CHECK(server.now == std::set<std::string>{"here"});
  REQUIRE(compiled.wait().ok);
  CHECK(server.now.empty());
  CHECK(server.all.size() == 1);
}

TEST_CASE("4.16: a page that cannot be served is refused at the start, and the pages before it are given back") {
  NotedServer server;
  Setup with = setup();
  with.options.pages = &server;
  Compiled twice(pipeline_of("h.serves ; source. ! h.serves name=again"), with);
  try {
    twice.live().start();
    FAIL("it starts");
  } catch (const Failure& failure) {
    CHECK(failure.error().what.find("MR0613: there is a page at here") != std::string::npos);
  }
  CHECK(server.now.empty());
  Compiled without(pipeline_of("h.serves"), setup());
  CHECK_THROWS_WITH_AS(without.live().start(), doctest::Contains("serves no pages of handlers"), Failure);
}

} // namespace millrace::test::held
