// Drives one handler through its C table, as the runtime does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/testing/formats.h"
#include "millrace/testing/result.h"
#include "millrace/testing/zeroed_memory.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

// Drives the handler of a C table. HandlerTest<H> in testing.h drives a class.
class TableTest {
 public:
  // Constructs the handler and sets its parameters. Throws std::runtime_error with its sentence if it refuses.
  explicit TableTest(const mr_handler_type& type, std::initializer_list<Setting> settings = {}) : type_(type) {
    host_ = {sizeof(mr_host), MR_ABI_VERSION, &allocate, &modify, &adopt,         &defer,     &publish,
             &fail,           &log,           &now,      &borrow, &give_borrowed, &give_back, &count,
             &allocate_items, &fail_item,     &fail_as,  nullptr, &share,         &serve};
    const bool created = type_.create(&host_, this, &self_, &declaration_) == MR_OK;
    if (!created) throw std::runtime_error(error().empty() ? "the constructor failed" : error());
    entries_.resize(declaration_->port_count);
    for (const Setting& setting : settings) {
      try {
        set(setting.name, setting.text);
      } catch (...) {
        type_.destroy(self_);
        throw;
      }
    }
  }
  TableTest(const TableTest&) = delete;
  TableTest& operator=(const TableTest&) = delete;
  ~TableTest() {
    if (started_) type_.stop(self_);
    type_.destroy(self_);
  }

  // Sets a parameter from text. After the first tick it must be declared live.
  void set(const std::string& name, const std::string& text);

  // Lets pictures and tensors be smaller than those of the first tick: their sizes are planned as bounds. Call it
  // before the first tick.
  void bounded() { dims_ = MR_DIM_BOUNDED; }

  // Sets the value that an input has from now on; an empty Value makes it empty. Before the first tick this also
  // connects the port and sets its format. `index`: the edge of an input that takes a list.
  void input(std::string_view port, const Value& value, uint32_t index = 0) {
    const uint32_t p = find_port(port, MR_INPUT);
    std::vector<Value>& values = entries_[p].values;
    if (index >= values.size()) {
      if (bound_) throw std::logic_error("edges are made before the first tick");
      if (index > 0 && !(declaration_->ports[p].flags & MR_PORT_MANY))
        throw std::logic_error("input '" + std::string(port) + "' takes one edge");
      values.resize(index + 1);
    }
    values[index] = value;
  }
  // Empties the edge for good and tells the handler that it has ended. Works for the first 64 edges of a handler.
  void end_input(std::string_view port, uint32_t index = 0) {
    input(port, Value{}, index);
    entries_[find_port(port, MR_INPUT)].ended |= uint64_t{1} << index;
  }
  // Leaves an output without readers. Call it before the first tick.
  void unconnected(std::string_view output) { entries_[find_port(output, MR_OUTPUT)].reader = false; }
  // Lets modify() write over the input's own block, as a plan may. By default modify() works on a copy.
  void allow_in_place(bool allow = true) { in_place_ = allow; }
  // Sets the media time between two ticks; 40 ms by default, which is 25 beats a second.
  void period_ns(int64_t period) { period_ns_ = period; }
  // Sets the handler's clock, which stands still otherwise.
  void set_now_ns(int64_t now) { now_ns_ = now; }
  // The deadline of the following ticks.
  void set_deadline_ns(int64_t deadline) { deadline_ns_ = deadline; }
  // The index of the next tick; those after it follow.
  void set_index(uint64_t index) { index_ = index; }
  // From now on the handler shares objects with that of the other test, as two handlers of one run do. The objects are
  // there as long as one of the tests is.
  void join(TableTest& other) { shared_ = other.shared_; }
  // The page that the handler serves; null: none. A test calls its functions as a server would.
  const mr_site* site() const { return site_; }
  // The device that the handler is told when it starts; the host by default. `name` outlives the test. The CPU body
  // runs in any case.
  void start_on(const DeviceInfo& device);
  // Makes the handler an instance for that stream, from the next tick on.
  void set_stream(uint32_t stream) { stream_ = stream; }

  // The formats that an input takes with the current parameters. If the handler refuses them, this is the declared
  // format, and start() reports the refusal.
  mr_format accepts(uint32_t port) {
    mr_format format = declaration_->ports[port].accepts;
    if (type_.narrow && type_.narrow(self_, port, &format) != MR_OK) return declaration_->ports[port].accepts;
    return format;
  }

  // Calls bind, probe, narrow, configure and start. The first tick() does it too; call it to look at facts and formats.
  mr_status start();

  // One firing with the inputs as they are now.
  Result tick() {
    if (const mr_status status = start(); status != MR_OK) return refused(status);
    auto firing = std::make_shared<Firing>();
    prepare(*firing);
    const bool fires = required_inputs_present();
    ++index_;
    if (!fires) {
      Result silent = settle(*firing, MR_OK);
      silent.fired = false;
      return silent;
    }
    return fire(firing);
  }

  // Puts the inputs as they are now aside, as an item of the call that fire_items() makes. set_stream() says whose.
  void put();
  // One call with the items that were put, in their order; each has a result of its own. An item without a required
  // input is in no call. A handler without process(Items&, …) is called item by item, as it is in a pipeline.
  std::vector<Result> fire_items();

  // Ends the stream. Afterwards published() has the deferred firings.
  mr_status drain() { return call(type_.drain); }
  mr_status reset();
  mr_status stop() {
    if (!started_) return MR_OK;
    started_ = false;
    const mr_status status = call(type_.stop);
    site_ = nullptr;
    return status;
  }
  // Stops, resets and starts the handler, as the runtime does after a failure under `on_error: restart`. The handler is
  // neither probed nor configured again.
  mr_status restart();
  void interrupt() { type_.interrupt(self_); }

  // Deferred firings that were settled since the last call, in order.
  std::vector<Result> published() {
    const std::lock_guard lock(mutex_);
    return std::exchange(published_, {});
  }
  size_t pending() const {
    const std::lock_guard lock(mutex_);
    return pending_.size();
  }
  // The last sentence of a failure.
  std::string error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  std::vector<LogLine> logs() const {
    const std::lock_guard lock(mutex_);
    return logs_;
  }
  // The handler's counts for the report, by name.
  std::map<std::string, int64_t> counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  const mr_facts& facts() const { return facts_; }
  // An output's format as configure() left it. Call start() first.
  const mr_format& format(std::string_view output) const {
    return output_formats_.at(entries_[find_port(output, MR_OUTPUT)].first);
  }
  const mr_declaration& declaration() const { return *declaration_; }
  void* self() const { return self_; }

 private:
  // The state of one port in the test.
  struct Entry {
    std::vector<Value> values; // input: one an edge
    bool reader = true;        // output: it is connected
    uint32_t first = 0;        // in the flat arrays
    uint64_t ended = 0;        // input: a bit for each edge that has ended
  };
  // One tick as the handler sees it; a deferred one lives until it is published.
  struct Firing {
    mr_tick tick{};
    mr_tick_info info{};
    std::vector<mr_input> inputs;
    std::vector<Value> input_values;
    std::vector<uint64_t> input_hashes;
    std::vector<mr_output> outputs;
    std::vector<std::shared_ptr<Block>> blocks; // the outputs' blocks
    std::vector<std::shared_ptr<Block>> pieces; // by output: what it shares with other items; empty: it is no item
    bool deferred = false, published = false;
    bool fires = true;
    std::optional<std::string> failed; // Tick::fail()
  };

  uint32_t find_port(std::string_view name, uint32_t direction) const {
    for (uint32_t p = 0; p < declaration_->port_count; ++p)
      if (declaration_->ports[p].direction == direction && name == declaration_->ports[p].name) return p;
    const char* kind = direction == MR_INPUT ? "input" : "output";
    throw std::logic_error(std::string("there is no ") + kind + " '" + std::string(name) + "'");
  }
  const mr_port& port_of_output(uint32_t flat) const {
    for (uint32_t p = 0; p < declaration_->port_count; ++p)
      if (declaration_->ports[p].direction == MR_OUTPUT && entries_[p].first == flat) return declaration_->ports[p];
    throw std::logic_error("the handler named an output that it has not");
  }
  std::string output_name(uint32_t flat) const { return "output '" + std::string(port_of_output(flat).name) + "'"; }

  mr_status bind();
  mr_status configure();
  mr_status refuse(const std::string& sentence);
  bool required_inputs_present() const;
  void prepare(Firing& firing);
  uint64_t ended_inputs() const;
  // Keeps the values alive that the handler declared with keeps().
  void keep_past(const Entry& entry, uint32_t keeps);
  Result fire(const std::shared_ptr<Firing>& firing);
  void call_items(const std::vector<std::shared_ptr<Firing>>& items);
  // Lays the items' tensors of a dense input into one piece.
  std::shared_ptr<Block> lay_together(const std::vector<std::shared_ptr<Firing>>& items, uint32_t input) const;
  void take_apart(Firing& item); // moves what it has in a piece with others into blocks of its own
  Result empty_result(const Firing& firing) const;
  Result refused(mr_status status) const;
  // Collects what a firing published and checks it. mutex_ is held where other threads may publish.
  Result settle(Firing& firing, mr_status status);
  // The handler's fault on this output; "" if it has none.
  std::string broken_contract(const Firing& firing, uint32_t i) const;
  mr_status call(mr_status (*function)(void*));
  mr_status call_start();
  void set_error(const char* sentence);

  // The functions of mr_host.
  static TableTest& of(mr_tick* tick) { return *static_cast<TableTest*>(tick->context); }
  static Firing& firing_of(mr_tick* tick);
  static mr_status give(mr_tick* tick, uint32_t output, std::shared_ptr<Block> block, uint32_t state);
  static mr_status allocate(mr_tick* tick, uint32_t output, uint64_t bytes);
  static mr_status modify(mr_tick* tick, uint32_t output, uint32_t input);
  static mr_status adopt(mr_tick* tick, uint32_t output, const void* data, uint64_t bytes, void (*release)(void*),
                         void* context);
  static mr_tick* defer(mr_tick* tick);
  static mr_status publish(mr_tick* tick);
  static mr_status allocate_items(mr_tick* const* items, uint32_t count, uint32_t output, const uint64_t* bytes);
  static void fail_item(mr_tick* item, const char* sentence);
  static void fail(void* instance, const char* sentence) { static_cast<TableTest*>(instance)->set_error(sentence); }
  static void fail_as(void* instance, uint32_t, const char* sentence) { fail(instance, sentence); }
  static void log(void* instance, uint32_t level, const char* sentence);
  static int64_t now(void* instance) { return static_cast<TableTest*>(instance)->now_ns_; }
  static mr_status borrow(void* instance, uint32_t output, mr_block* block);
  static mr_status give_borrowed(mr_tick* tick, uint32_t output, uint64_t token);
  static void give_back(void* instance, uint32_t, uint64_t token);
  static void count(void* instance, const char* name, int64_t add);
  static void* share(void* instance, const char* name, void* (*make)(void*), void (*drop)(void*), void* context);
  static mr_status serve(void* instance, const mr_site* site);

  mr_handler_type type_;
  mr_host host_{};
  void* self_ = nullptr;
  const mr_declaration* declaration_ = nullptr;
  const mr_site* site_ = nullptr;
  using Shared = std::map<std::string, std::shared_ptr<void>>;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::vector<Entry> entries_; // by port
  uint32_t input_count_ = 0, output_count_ = 0, dims_ = MR_DIM_FIXED;
  std::vector<mr_format> output_formats_;
  mr_facts facts_ = no_facts();
  mr_device_info device_{sizeof(mr_device_info), MR_DEVICE_CPU, 0, 0, 0, 0, 0, 0, "cpu"};
  bool bound_ = false, started_ = false, in_place_ = false;
  uint64_t index_ = 0;
  ZeroedMemory state_;
  int64_t period_ns_ = 40'000'000, now_ns_ = 0, deadline_ns_ = 0;
  std::optional<uint32_t> stream_; // nothing: outside streams
  std::vector<std::shared_ptr<Firing>> put_;
  std::deque<Value> kept_;
  size_t kept_bound_ = 0;

  mutable std::mutex mutex_; // guards the members below: publish(), fail() and log() may come from any thread
  std::string error_;
  std::vector<LogLine> logs_;
  std::map<std::string, int64_t> counts_;
  std::vector<std::shared_ptr<Block>> borrowed_;
  std::shared_ptr<Firing> current_;
  std::deque<std::shared_ptr<Firing>> pending_;
  std::vector<Result> published_;
};

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
