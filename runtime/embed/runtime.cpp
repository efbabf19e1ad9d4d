// Implements runtime.h: one composition after another, and the queues of its app handlers.
#include "millrace/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "embed/app_handlers.h"
#include "embed/compose.h"
#include "embed/crash_report.h"
#include "embed/outcome.h"
#include "embed/plugin_folders.h"
#include "embed/streams.h"
#include "embed/translated.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "observe/error_codes.h"
#include "observe/log.h"
#include "observe/plain_numbers.h"
#include "observe/report.h"
#include "plan/machine.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "plugin/registry.h"

namespace millrace {

namespace {

using embed::translated;
using embed::translated_alone;

embed::Choices choices_of(const RuntimeOptions& options) {
  embed::Choices choices;
  choices.domains = embed::parse_domains(options.devices);
  embed::check_threads(options.threads);
  choices.threads = options.threads;
  if (!options.clock.empty()) choices.clock = embed::parse_clock_mode(options.clock);
  if (!options.rate.empty()) choices.rate = embed::parse_rate(options.rate);
  return choices;
}

// Null if the application has neither on_message nor on_log: then there is no thread either.
std::unique_ptr<Log> log_of(const RuntimeOptions& options) {
  if (!options.on_message && !options.on_log) return nullptr;
  LogSettings settings;
  settings.on_line = options.on_message;
  settings.on_record = options.on_log;
  settings.record_level = options.log_level;
  return std::make_unique<Log>(std::move(settings));
}

// Copies the planes of a picture into the layout of lay_out_image().
void fill(embed::QueuedValue& parcel, const PictureRef& picture) {
  parcel.value = {};
  parcel.bytes.resize(lay_out_image(picture.pixel, picture.width, picture.height, parcel.value.as.image));
  const ImageSpan target(&parcel.value, parcel.bytes.data());
  for (uint32_t p = 0; p < target.plane_count(); ++p) {
    // Chroma planes hold pairs (nv12, p010) or single samples at half the width, rounded up.
    const bool chroma = p > 0;
    const size_t samples = chroma ? (size_t{picture.width} + 1) / 2 : picture.width;
    const bool pairs = chroma && target.plane_count() == 2;
    const size_t row_bytes = samples * bytes_per_pixel(picture.pixel) * (pairs ? 2 : 1);
    const auto* from = static_cast<const uint8_t*>(picture.planes[p].data);
    if (!from) throw std::invalid_argument("a plane of the picture has no memory");
    const size_t stride = picture.planes[p].stride ? picture.planes[p].stride : row_bytes;
    for (uint32_t y = 0; y < target.rows(p); ++y) std::memcpy(target.row(y, p), from + y * stride, row_bytes);
  }
}

void fill(embed::QueuedValue& parcel, const TensorRef& tensor) {
  parcel.value = {};
  mr_tensor& to = parcel.value.as.tensor;
  to.dtype_code = tensor.dtype.code;
  to.dtype_bits = tensor.dtype.bits;
  to.dtype_lanes = tensor.dtype.lanes;
  if (tensor.shape.size() > MR_RANK_MAX) throw std::invalid_argument("a tensor has at most 8 dimensions");
  const uint64_t bytes = bytes_of(elements_of(tensor.shape), uint64_t{tensor.dtype.bits} * tensor.dtype.lanes);
  if (bytes > std::numeric_limits<ptrdiff_t>::max()) throw std::invalid_argument("no memory holds such a tensor");
  to.rank = static_cast<uint32_t>(tensor.shape.size());
  int64_t count = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    to.shape[d] = tensor.shape[d];
    to.strides[d] = count;
    count *= tensor.shape[d];
  }
  const auto* from = static_cast<const uint8_t*>(tensor.data);
  if (!from && bytes > 0) throw std::invalid_argument("the tensor has no memory");
  parcel.bytes.assign(from, from + bytes);
}

// Refuses a value of another format: the plan laid out memory for one, so it is the application's mistake.
void check(const std::string& name, const mr_format& format, const PictureRef& picture) {
  if (format.kind == MR_KIND_IMAGE && format.pixel_formats == bit_of(picture.pixel) && format.width == picture.width &&
      format.height == picture.height)
    return;
  throw std::invalid_argument("the picture pushed into " + name +
                              " is not of the format, width and height that it declares");
}

void check(const std::string& name, const mr_format& format, const TensorRef& tensor) {
  const bool same_type = format.kind == MR_KIND_TENSOR && format.dtype_code == tensor.dtype.code &&
                         format.dtype_bits == tensor.dtype.bits && format.dtype_lanes == tensor.dtype.lanes;
  if (same_type && std::equal(tensor.shape.begin(), tensor.shape.end(), format.shape, format.shape + format.rank))
    return;
  throw std::invalid_argument("the tensor pushed into " + name + " is not of the dtype and shape that it declares");
}

} // namespace

struct Value::Held {
  std::unique_ptr<embed::QueuedValue> parcel;
  std::shared_ptr<embed::ValueQueue> home;
  Held(std::unique_ptr<embed::QueuedValue> the_parcel, std::shared_ptr<embed::ValueQueue> the_home)
      : parcel(std::move(the_parcel)), home(std::move(the_home)) {}
  Held(const Held&) = delete;
  ~Held() { home->give_back(std::move(parcel)); }
};

uint64_t Value::index() const { return held_->parcel->index; }
int64_t Value::media_time_ns() const { return held_->parcel->media_time_ns; }
const mr_header& Value::header() const { return held_->parcel->value.header; }
std::span<const uint8_t> Value::bytes() const { return held_->parcel->bytes; }

ImageView Value::image() const {
  if (!is_image()) throw std::logic_error("the value is no image");
  return {&held_->parcel->value, held_->parcel->bytes.data()};
}

TensorView Value::tensor() const {
  if (!is_tensor()) throw std::logic_error("the value is no tensor");
  return {&held_->parcel->value, held_->parcel->bytes.data()};
}

std::span<const uint8_t> Value::records_of(std::string_view schema, uint64_t layout, size_t record_size) const {
  const std::string wanted = "'" + std::string(schema) + "'";
  if (header().kind != MR_KIND_RECORDS)
    throw std::logic_error("the value holds no records, and " + wanted + " is asked");
  if (header().schema != schema_of(schema))
    throw std::logic_error("the value holds records of another type than " + wanted);
  const mr_records& records = held_->parcel->value.as.records;
  if (header().layout != layout || records.record_size != record_size)
    throw std::logic_error("the value's " + wanted + " have " + std::to_string(records.record_size) +
                           " bytes each, and those of the program " + std::to_string(record_size) +
                           ": they are of two versions");
  const uint64_t there = held_->parcel->bytes.size() / record_size;
  return {held_->parcel->bytes.data(), static_cast<size_t>(std::min(records.count, there)) * record_size};
}

// The mutex guards the pointers to the composition and the run, not their work: a push that waits does not hold it.
class Runtime::State {
 public:
  explicit State(RuntimeOptions options)
      : options_(std::move(options)),
        choices_(choices_of(options_)),
        log_(log_of(options_)),
        owned_registry_(std::make_unique<plugin::Registry>()),
        registry_(*owned_registry_) {
    if (options_.explain_crashes) crashes_.emplace();
    registry_.add(embed::app_plugin(), "");
    for (const std::string& folder : embed::standard_plugin_folders()) registry_.scan(folder);
    if (!options_.installed_plugins.empty()) registry_.scan(options_.installed_plugins);
    for (const std::string& folder : options_.plugin_paths) {
      std::error_code ignored;
      if (!std::filesystem::is_directory(folder, ignored))
        throw Failure(code::bad_command_line, "a plugin path is no folder: " + folder);
      registry_.scan(folder);
    }
  }

  ~State() {
    end_streams();
    run_ = nullptr;
    forget();
    if (registry_in_use_) (void)owned_registry_.release(); // its handlers are still called
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void declare(graph::Graph graph) {
    refuse_while_running("load");
    graph_ = std::move(graph);
    forget();
  }

  void set(const std::vector<std::pair<std::string, std::string>>& values) {
    if (const auto run = running()) {
      std::vector<exec::ParamChange> changes;
      for (const auto& [key, value] : values) {
        const size_t dot = key.find('.');
        if (dot == std::string::npos)
          throw Failure(code::unreadable_assignment, "'" + key + "' is not of the form handler.key");
        changes.push_back({key.substr(0, dot), key.substr(dot + 1), value});
      }
      return run->set(changes);
    }
    graph::Graph changed = declared();
    for (const auto& [key, value] : values) graph::apply_set(changed, key + "=" + value);
    declare(std::move(changed));
  }

  void add_stream(const std::string& set, const std::string& name,
                  const std::vector<std::pair<std::string, std::string>>& fields) {
    graph::Stream stream;
    stream.name = name;
    for (const auto& [field, text] : fields) stream.fields.push_back({field, text, {}, {}});
    await_stream([&](const exec::StreamDone& done) { steered()->add(set, stream, done); });
  }
  void remove_stream(const std::string& set, const std::string& name) {
    await_stream([&](const exec::StreamDone& done) { steered()->remove(set, name, done); });
  }

  const plan::Plan& compile() {
    if (!composition_) {
      embed::Choices choices = choices_;
      choices.watch =
          std::make_shared<plugin::CallWatch>(plugin::CallWatch::Options{.on_message = options_.on_message});
      auto made = std::make_shared<embed::Composition>(declared(), registry_, exec::host_table(), choices);
      const std::lock_guard lock(mutex_);
      composition_ = std::move(made);
    }
    return composition_->plan();
  }

  void start() {
    refuse_while_running("start");
    compile();
    exec::RunOptions options;
    options.ticks_max = options_.ticks_max;
    options.duration_ns = options_.duration_ns;
    options.log = log_.get();
    if (options_.on_hang) options.on_hang = [this](const Error& error) { options_.on_hang(format_error(error)); };
    options.explain_crashes = options_.explain_crashes;
    options.sync_devices = options_.sync_devices;
    over_ = true; // also if starting fails: a composition runs once
    std::shared_ptr<exec::Run> run = composition_->make_run(options);
    run->start();
    const std::lock_guard lock(mutex_);
    process_ = ::getpid();
    streams_ = std::make_shared<embed::Streams>(*composition_, *run);
    run_ = std::move(run);
  }

  void stop() {
    const auto run = running();
    if (!run) return;
    for (const auto& sink : sinks()) sink->relax();
    run->stop();
  }

  void interrupt() {
    if (const auto run = running()) run->interrupt();
  }

  bool finished() const {
    const auto run = running();
    return !run || run->finished();
  }

  Outcome wait() {
    const auto run = running();
    if (!run) throw std::logic_error(over_ ? "wait() after the run was waited for" : "wait() before start()");
    const Result result = run->wait();
    if (log_) log_->flush(embed::kLogWrittenWithinNs);
    Outcome outcome = embed::outcome_of(result, to_json(result));
    end_streams();
    const std::lock_guard lock(mutex_);
    run_ = nullptr; // the composition stays: values that wait in an app.sink may still be pulled
    return outcome;
  }

  template <class Ref>
  bool push(const std::string& name, const Ref& ref, int64_t pts_ns, bool wait) {
    const Held<embed::AppSource> source = find<embed::AppSource>(name, embed::kAppSourceType);
    check(name, source.handler->format(), ref);
    embed::ValueQueue& queue = source.handler->queue();
    if (!wait && !queue.has_room()) return false;
    std::unique_ptr<embed::QueuedValue> parcel = queue.blank();
    fill(*parcel, ref);
    mr_header& header = parcel->value.header;
    header.schema = source.handler->format().schema;
    header.kind = source.handler->format().kind;
    header.pts_ns = pts_ns;
    header.present = 1;
    header.extent_bytes = parcel->bytes.size();
    return queue.put(std::move(parcel), embed::WhenFull::wait);
  }

  void end(const std::string& name) { find<embed::AppSource>(name, embed::kAppSourceType).handler->queue().close(); }

  // True in a child of fork(): it has a copy of the run and none of its threads, so it cannot end the run.
  bool is_a_copy() const { return run_ && process_ != ::getpid(); }

  std::shared_ptr<embed::ValueQueue> sink_queue(const std::string& name) {
    return find<embed::AppSink>(name, embed::kAppSinkType).handler->queue();
  }

 private:
  std::shared_ptr<embed::Streams> steered() const {
    const std::lock_guard lock(mutex_);
    if (!streams_) throw std::logic_error("streams are added and removed while it runs");
    return streams_;
  }

  // Waits for the answer to what `ask` asks, and throws if it is an error.
  template <class Ask>
  void await_stream(Ask&& ask) {
    std::promise<std::optional<Error>> answered;
    ask([&](const Error* error) { answered.set_value(error ? std::optional<Error>(*error) : std::nullopt); });
    if (const std::optional<Error> error = answered.get_future().get()) throw Failure(*error);
  }

  void end_streams() {
    std::shared_ptr<embed::Streams> streams;
    {
      const std::lock_guard lock(mutex_);
      streams = std::move(streams_);
    }
  }

  // A handler, with what keeps it alive.
  template <class H>
  struct Held {
    std::shared_ptr<embed::Composition> composition;
    H* handler;
  };

  template <class H>
  Held<H> find(const std::string& name, const char* type) const {
    const std::lock_guard lock(mutex_);
    if (!composition_) throw std::logic_error("the pipeline is not compiled: call start() or compile() before");
    plugin::Instance* instance = composition_->find(name);
    if (!instance || instance->info().type != type)
      throw Failure(code::unknown_handler, "there is no " + std::string(type) + " named \"" + name + "\"");
    return {composition_, static_cast<H*>(instance->self())};
  }

  std::vector<std::shared_ptr<embed::ValueQueue>> sinks() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<embed::ValueQueue>> queues;
    for (const plan::HandlerPlan& handler : composition_->plan().handlers)
      if (handler.type == embed::kAppSinkType)
        queues.push_back(static_cast<embed::AppSink*>(composition_->find(handler.name)->self())->queue());
    return queues;
  }

  std::shared_ptr<exec::Run> running() const {
    const std::lock_guard lock(mutex_);
    return run_;
  }

  void refuse_while_running(const char* what) {
    if (running()) throw std::logic_error(std::string(what) + "() while it runs");
    if (over_) forget();
  }

  const graph::Graph& declared() const {
    if (!graph_) throw std::logic_error("no pipeline was loaded");
    return *graph_;
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    registry_in_use_ = registry_in_use_ || (composition_ && composition_->is_stuck());
    composition_ = nullptr;
    over_ = false;
  }

  const RuntimeOptions options_;
  const embed::Choices choices_;
  const std::unique_ptr<Log> log_; // may be null (log_of()); outlives handlers, which may log until they are destroyed
  std::unique_ptr<plugin::Registry> owned_registry_;
  plugin::Registry& registry_;
  std::optional<embed::CrashReport> crashes_;
  bool registry_in_use_ = false; // true if handlers of the registry are still called, see Composition::is_stuck
  std::optional<graph::Graph> graph_;
  bool over_ = false;  // the composition has run
  pid_t process_ = -1; // the process that started the run
  mutable std::mutex mutex_;
  std::shared_ptr<embed::Composition> composition_;
  std::shared_ptr<exec::Run> run_;          // last but for what uses it: it is destroyed first
  std::shared_ptr<embed::Streams> streams_; // null: it does not run
};

Runtime::Runtime(RuntimeOptions options)
    : state_(translated([&] { return std::make_unique<State>(std::move(options)); })) {}
Runtime::~Runtime() {
  if (state_ && state_->is_a_copy()) static_cast<void>(state_.release()); // the parent ends it
  if (!state_) return;
  const PlainNumbers numbers; // handlers are stopped
  state_ = nullptr;
}
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&& other) noexcept {
  if (this == &other) return *this;
  std::swap(state_, other.state_);
  const Runtime gone(std::move(other)); // ends the run that this object had
  return *this;
}

Runtime::State& Runtime::state() const {
  if (!state_) throw std::logic_error("the Runtime was moved from");
  return *state_;
}

void Runtime::load(const std::string& pipeline) {
  translated([&] { state().declare(graph::load(pipeline)); });
}
void Runtime::load_text(const std::string& yaml, const std::string& name) {
  translated([&] { state().declare(graph::parse_yaml(yaml, name)); });
}
void Runtime::set(const std::string& key, const std::string& value) { set({{key, value}}); }
void Runtime::set(const std::vector<std::pair<std::string, std::string>>& values) {
  translated([&] { state().set(values); });
}
void Runtime::add_stream(const std::string& name, const std::vector<std::pair<std::string, std::string>>& fields,
                         const std::string& set) {
  translated([&] { state().add_stream(set, name, fields); });
}
void Runtime::remove_stream(const std::string& name, const std::string& set) {
  translated([&] { state().remove_stream(set, name); });
}
void Runtime::compile() {
  translated([&] { state().compile(); });
}
std::string Runtime::explain() {
  return translated([&] { return plan::print_text(state().compile()); });
}
std::string Runtime::plan_json() {
  return translated([&] { return plan::print_json(state().compile()); });
}
void Runtime::start() {
  translated([&] { state().start(); });
}
void Runtime::stop() { state().stop(); }
void Runtime::interrupt() { state().interrupt(); }
bool Runtime::finished() const { return state().finished(); }
Outcome Runtime::wait() {
  return translated([&] { return state().wait(); });
}

bool Runtime::push(const std::string& source, const PictureRef& picture, int64_t pts_ns) {
  return translated_alone([&] { return state().push(source, picture, pts_ns, true); });
}
bool Runtime::push(const std::string& source, const TensorRef& tensor, int64_t pts_ns) {
  return translated_alone([&] { return state().push(source, tensor, pts_ns, true); });
}
bool Runtime::try_push(const std::string& source, const PictureRef& picture, int64_t pts_ns) {
  return translated_alone([&] { return state().push(source, picture, pts_ns, false); });
}
bool Runtime::try_push(const std::string& source, const TensorRef& tensor, int64_t pts_ns) {
  return translated_alone([&] { return state().push(source, tensor, pts_ns, false); });
}
void Runtime::end(const std::string& source) {
  translated_alone([&] { state().end(source); });
}

std::optional<Value> Runtime::pull(const std::string& sink) {
  const auto queue = translated_alone([&] { return state().sink_queue(sink); });
  std::unique_ptr<embed::QueuedValue> parcel = queue->take();
  if (!parcel) return std::nullopt;
  return Value(std::make_shared<const Value::Held>(std::move(parcel), queue));
}
std::optional<Value> Runtime::try_pull(const std::string& sink) {
  const auto queue = translated_alone([&] { return state().sink_queue(sink); });
  std::unique_ptr<embed::QueuedValue> parcel = queue->try_take();
  if (!parcel) return std::nullopt;
  return Value(std::make_shared<const Value::Held>(std::move(parcel), queue));
}
std::optional<Value> Runtime::try_pull_newest(const std::string& sink) {
  const auto queue = translated_alone([&] { return state().sink_queue(sink); });
  std::unique_ptr<embed::QueuedValue> parcel = queue->try_take_newest();
  if (!parcel) return std::nullopt;
  return Value(std::make_shared<const Value::Held>(std::move(parcel), queue));
}

} // namespace millrace
