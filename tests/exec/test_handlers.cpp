// The handlers of test_handlers.h.
#include "test_handlers.h"

#include <millrace/handler.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/run.h"
#include "seen.h"

namespace millrace::test {

namespace {

// A value is one number, `size` times over: so that bodies touch memory, and whoever reads it looks at every byte.
// Made from an empty value, whose size is 0, it has as many as were planned.
void write(const Output<Tensor>& out, Tick& tick, int64_t value, int64_t size = 1) {
  if (size == 0) {
    const int64_t none[] = {0};
    out.allocate(tick, dtype_of<int64_t>(), none);
    size = static_cast<int64_t>(out.raw(tick).capacity / sizeof(int64_t));
  }
  const int64_t shape[] = {size};
  for (int64_t& element : out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()) element = value;
}
int64_t number(const TensorView& view) {
  const auto elements = view.elements<int64_t>();
  if (elements.empty()) return 0; // an empty initial value
  for (const int64_t element : elements)
    if (element != elements[0]) throw std::runtime_error("a value of unlike elements");
  return elements[0];
}
int64_t size_of(const TensorView& view) { return view.element_count(); }

bool every(uint64_t period, uint64_t index) { return period > 0 && index % period == period - 1; }

// Writes down what it saw where it is told to.
struct Witness : Handler {
  LogWriter writer;
  Param<std::string> log{*this, "log", "", "where it writes what it saw"};
  void saw(const Tick& tick, std::vector<int64_t> values) {
    if (log->empty()) return;
    writer.write(*log, {tick.index(), tick.media_time_ns(), std::move(values)});
  }
};

struct Count final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> size{*this, "size", 1, "elements of a value"};
  Param<int64_t> count{*this, "count", 0, "values; 0: endless"};
  Param<int64_t> rate{*this, "rate", 0, "values a second; 0: none"};
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th gives nothing"};
  Param<int64_t> first{*this, "first", 0, "the first value"};
  Param<bool> is_live{*this, "live", false, "cannot wait"};
  int64_t next = 0;
  void probe(Facts& facts) override {
    if (rate > 0) facts.rate(rate);
    if (is_live) facts.live();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {*size}); }
  void start() override { next = 0; }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && next >= count) return tick.end();
    const int64_t n = next++;
    if (every(static_cast<uint64_t>(*silent_every), static_cast<uint64_t>(n))) return;
    write(out, tick, first + n, size);
    if (rate > 0) out.header(tick).pts_ns = n * 1'000'000'000 / rate;
  }
};

struct Index final : Handler {
  Output<Tensor> out{*this, "out"};
  Index() { stateless(); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) { write(out, tick, static_cast<int64_t>(tick.index())); }
};

struct Relay : Witness {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> add{*this, "add", 0, "added to each value", live};
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th tick gives nothing"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails"};
  Param<int64_t> fail_every{*this, "fail_every", 0, "every k-th tick fails"};
  void process(Tick& tick, Cpu&) {
    const int64_t value = number(in(tick));
    saw(tick, {value});
    if (static_cast<int64_t>(tick.index()) == fail_at || every(static_cast<uint64_t>(*fail_every), tick.index()))
      throw std::runtime_error("told to fail");
    if (every(static_cast<uint64_t>(*silent_every), tick.index())) return;
    write(out, tick, value + add, size_of(in(tick)));
  }
};
struct Stateless final : Relay {
  Stateless() { stateless(); }
};
struct Window final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> from{*this, "from", 0, "the first silent tick"};
  Param<int64_t> until{*this, "until", 0, "the first tick that has a value again"};
  void process(Tick& tick, Cpu&) {
    const auto index = static_cast<int64_t>(tick.index());
    if (index < from || index >= until) write(out, tick, number(in(tick)));
  }
};
struct Capturable final : Relay {
  Capturable() { capturable(); }
};

std::vector<int64_t> numbers(const Inputs<Tensor>& in, Tick& tick) {
  std::vector<int64_t> values;
  for (uint32_t i = 0; i < in.count(); ++i) values.push_back(in.present(tick, i) ? number(in(tick, i)) : kEmpty);
  return values;
}

struct Join final : Witness {
  Inputs<Tensor> in{*this, "in", 8, optional};
  Output<Tensor> out{*this, "out"};
  Param<int64_t> size{*this, "size", 4, "elements of a value"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {*size}); }
  void process(Tick& tick, Cpu&) {
    const std::vector<int64_t> values = numbers(in, tick);
    saw(tick, values);
    int64_t value = static_cast<int64_t>(tick.index());
    for (size_t i = 0; i < values.size(); ++i)
      value = mix(value, values[i] != kEmpty ? values[i] : -1 - static_cast<int64_t>(i));
    write(out, tick, value, size);
  }
};

struct Need : Witness {
  Input<Tensor> a{*this, "a"};
  Input<Tensor> b{*this, "b"};
  Output<Tensor> out{*this, "out", like(a)};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number(a(tick)), number(b(tick))});
    write(out, tick, thousands(number(a(tick)), number(b(tick))), size_of(a(tick)));
  }
};

struct CaptureNeed final : Need {
  CaptureNeed() { capturable(); }
};

struct Paced final : Witness { // fires for `in`, looks at `extra` where it is there
  Input<Tensor> in{*this, "in"};
  Input<Tensor> extra{*this, "extra", optional};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick& tick, Cpu&) {
    const int64_t other = extra.present(tick) ? number(extra(tick)) : kEmpty;
    saw(tick, {number(in(tick)), other});
    write(out, tick, thousands(number(in(tick)), other == kEmpty ? 999 : other), size_of(in(tick)));
  }
};

struct Sink final : Handler {
  LogWriter writer;
  Inputs<Tensor> in{*this, "in", 8, optional};
  Param<std::string> name{*this, "log", "", "where it writes", required};
  void process(Tick& tick, Cpu&) { writer.write(*name, {tick.index(), tick.media_time_ns(), numbers(in, tick)}); }
};

struct Ended final : Handler {
  LogWriter writer;
  Inputs<Tensor> in{*this, "in", 8, optional};
  Param<std::string> name{*this, "log", "", "where it writes", required};
  void process(Tick& tick, Cpu&) {
    Seen seen{tick.index(), tick.media_time_ns(), {}};
    for (uint32_t i = 0; i < in.count(); ++i) seen.values.push_back(in.ended(tick, i));
    writer.write(*name, seen);
  }
};

struct Late final : Witness {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> after{*this, "after", 8, "firings until an answer", at_least(0)};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails after it was deferred"};
  Param<bool> never{*this, "never", false, "has its answers ready and publishes none"};
  Param<bool> fail_in_drain{*this, "fail_in_drain", false, "publishes nothing when it is drained"};
  struct Owed {
    Tick tick;
    int64_t value, size;
  };
  std::deque<Owed> owed;
  Late() {
    max_pending(8);
    drains_freely();
  }
  void answer() {
    Owed answer = owed.front();
    owed.pop_front();
    write(out, answer.tick, answer.value, answer.size);
    answer.tick.publish();
  }
  void process(Tick& tick, Cpu&) {
    saw(tick, {number(in(tick))});
    if (never) {
      if (tick.index() % 2) write(out, tick, number(in(tick))); // before, or after
      Tick later = tick.defer();
      return write(out, later, number(in(tick)));
    }
    if (static_cast<int64_t>(owed.size()) >= after && !owed.empty()) answer();
    owed.push_back({tick.defer(), number(in(tick)), size_of(in(tick))});
    if (static_cast<int64_t>(tick.index()) != fail_at) return;
    owed.pop_back();
    throw std::runtime_error("told to fail");
  }
  void drain() override {
    if (fail_in_drain) throw std::runtime_error("told to fail in drain");
    while (!owed.empty()) answer();
  }
};

// Answers from a thread of its own, one at a time; the tests' way to be asynchronous.
struct Async final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::pair<Tick, int64_t>> owed;
  bool closing = false;
  std::thread thread;
  Async() {
    max_pending(1);
    drains_freely();
    asynchronous();
  }
  void start() override {
    closing = false;
    thread = std::thread([this] {
      for (;;) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return closing || !owed.empty(); });
        if (owed.empty()) return;
        auto [tick, value] = owed.front();
        owed.pop_front();
        lock.unlock();
        write(out, tick, value);
        tick.publish();
      }
    });
  }
  void process(Tick& tick, Cpu&) {
    const int64_t value = number(in(tick));
    const std::lock_guard lock(mutex);
    owed.emplace_back(tick.defer(), value);
    wake.notify_all();
  }
  void end() {
    {
      const std::lock_guard lock(mutex);
      closing = true;
    }
    wake.notify_all();
    if (thread.joinable()) thread.join();
  }
  void drain() override { end(); }
  void reset() override { start(); }
  void stop() override { end(); }
};

// A source of memory that is not the plan's and must not be written.
struct Foreign final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values"};
  Param<int64_t> size{*this, "size", 1, "elements of a value"};
  static std::atomic<int64_t> adopted, released;
  std::vector<int64_t> constant;
  int64_t next = 0;
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {*size}); }
  void start() override {
    constant.assign(static_cast<size_t>(*size), 7);
    next = adopted = released = 0;
  }
  void process(Tick& tick, Cpu&) {
    if (next++ >= count) return tick.end();
    mr_value& value = out.adopt(
        tick, constant.data(), constant.size() * sizeof(int64_t), [](void*) { ++released; }, nullptr);
    value.as.tensor = {MR_DTYPE_INT, 64, 1, 1, {*size}, {1}};
    ++adopted;
  }
};
std::atomic<int64_t> Foreign::adopted{0};
std::atomic<int64_t> Foreign::released{0};

struct Paint final : Witness {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", in_place(in)};
  Param<int64_t> add{*this, "add", 1, "added in place"};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number(in(tick))});
    if (in(tick).element_count() == 0) return write(out, tick, add, 0); // an empty initial value
    for (int64_t& element : out.modify(tick, in).elements<int64_t>()) element += add;
  }
};

struct MaybePaint final : Handler { // silent where there is nothing to write over
  Input<Tensor> in{*this, "in", optional};
  Output<Tensor> out{*this, "out", in_place(in)};
  void process(Tick& tick, Cpu&) {
    if (!in.present(tick)) return;
    for (int64_t& element : out.modify(tick, in).elements<int64_t>()) ++element;
  }
};

struct Forward final : Witness {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", forward(in)};
  Param<int64_t> silent_every{*this, "silent_every", 0, "every k-th tick gives nothing"};
  void process(Tick& tick, Cpu&) {
    saw(tick, {number(in(tick))});
    if (!every(static_cast<uint64_t>(*silent_every), tick.index())) out.forward(tick, in);
  }
};

struct Repeat final : Handler { // its input's own buffer on every second tick, else one of its own
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", may_repeat};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) {
    if (tick.index() % 2 == 0) return out.forward(tick, in);
    write(out, tick, number(in(tick)));
  }
};

struct Enough final : Handler { // has seen enough at some tick
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> at{*this, "at", 0, "the tick at which it ends the run"};
  void process(Tick& tick, Cpu&) {
    if (static_cast<int64_t>(tick.index()) == at) return tick.end();
    write(out, tick, number(in(tick)));
  }
};

struct Pick final : Handler { // passes on the input that the plan does not share its output's buffer with
  Input<Tensor> first{*this, "first"};
  Input<Tensor> second{*this, "second"};
  Output<Tensor> out{*this, "out", like(first)};
  void process(Tick& tick, Cpu&) { out.forward(tick, second); }
};

struct Keep final : Witness { // the sum of this value and the two before it, read from the kept blocks
  Input<Tensor> in{*this, "in", keeps(2)};
  Output<Tensor> out{*this, "out", like(in)};
  std::deque<std::span<const int64_t>> past;
  void start() override { past.clear(); }
  void process(Tick& tick, Cpu&) {
    past.push_back(in(tick).elements<int64_t>());
    if (past.size() > 3) past.pop_front();
    int64_t total = 0;
    for (const auto& value : past) {
      if (value.empty()) continue; // an empty initial value
      total = sum(total, value[0]);
      if (std::count(value.begin(), value.end(), value[0]) != std::ssize(value))
        throw std::runtime_error("a kept value of unlike elements");
    }
    saw(tick, {total});
    write(out, tick, total, size_of(in(tick)));
  }
};

struct Restarting final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the tick that fails"};
  Param<int64_t> no_start{*this, "no_start", -1, "the start that fails"};
  int64_t starts = 0;
  void start() override {
    if (++starts == no_start) throw std::runtime_error("told not to start");
  }
  void process(Tick& tick, Cpu&) {
    if (static_cast<int64_t>(tick.index()) == fail_at) throw std::runtime_error("told to fail");
    write(out, tick, number(in(tick)) * 100 + starts);
  }
};

const std::vector<const mr_handler_type*>& types() {
  static const mr_handler_type all[] = {
      detail::Type<Count>::table("t.count", "Counts", ""),
      detail::Type<Index>::table("t.index", "Its tick's index, in any order", ""),
      detail::Type<Relay>::table("t.relay", "Passes numbers on", ""),
      detail::Type<Stateless>::table("t.stateless", "Passes numbers on, in any order", ""),
      detail::Type<Window>::table("t.window", "Passes numbers on, but for a while", ""),
      detail::Type<Capturable>::table("t.capturable", "Passes numbers on, recordable", ""),
      detail::Type<Join>::table("t.join", "Mixes what is there", ""),
      detail::Type<Enough>::table("t.enough", "Ends the run", ""),
      detail::Type<Repeat>::table("t.repeat", "Passes numbers on, half of them as they are", ""),
      detail::Type<Pick>::table("t.pick", "Passes its second input on", ""),
      detail::Type<Need>::table("t.need", "Needs both", ""),
      detail::Type<Paced>::table("t.paced", "Needs one, takes the other", ""),
      detail::Type<Sink>::table("t.sink", "Logs", ""),
      detail::Type<Ended>::table("t.ended", "Logs which inputs have ended", ""),
      detail::Type<Late>::table("t.late", "Answers later", ""),
      detail::Type<Async>::table("t.async", "Answers from a thread of its own", ""),
      detail::Type<Foreign>::table("t.foreign", "Adopts a constant", ""),
      detail::Type<Paint>::table("t.paint", "Adds in place", ""),
      detail::Type<MaybePaint>::table("t.maybepaint", "Adds in place where it can", ""),
      detail::Type<CaptureNeed>::table("t.captureneed", "Needs both, recordable", ""),
      detail::Type<Forward>::table("t.forward", "Passes its input's own buffer on", ""),
      detail::Type<Keep>::table("t.keep", "Keeps two values", ""),
      detail::Type<Restarting>::table("t.restarting", "Counts its starts", ""),
  };
  static const std::vector<const mr_handler_type*> pointers = [] {
    std::vector<const mr_handler_type*> list;
    for (const mr_handler_type& type : all) list.push_back(&type);
    return list;
  }();
  return pointers;
}

} // namespace

int64_t foreign_adopted() { return Foreign::adopted; }
int64_t foreign_released() { return Foreign::released; }

int64_t mix(int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a) * 0x9E3779B97F4A7C15ull ^ static_cast<uint64_t>(b);
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  return static_cast<int64_t>((x ^ (x >> 32)) & 0xffffffffffull);
}

int64_t thousands(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * 1000 + static_cast<uint64_t>(b));
}
int64_t sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

const mr_plugin& test_plugin() {
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "test", "1", types().data(), static_cast<uint32_t>(types().size()), 0};
  return plugin;
}

} // namespace millrace::test
