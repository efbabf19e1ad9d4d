// millrace inside an application: load a pipeline, run it, push values in and pull values out.
//
//   millrace::Runtime runtime;
//   runtime.load("app.source format=gray8 width=64 height=48 ! image.blur sigma=2 ! app.sink");
//   runtime.start();
//   runtime.push("source", picture);
//   std::optional<millrace::Value> blurred = runtime.pull("sink");
//   runtime.end("source");
//   millrace::Outcome outcome = runtime.wait();
//
// A pipeline takes values from the application through handlers of type app.source and gives values through app.sink.
// Each has a bounded queue (`depth`). Several runtimes in one process are independent of each other.
//
// Threads: load, set before start, compile, start and wait belong to one thread. Any thread may call push, pull, end,
// stop, interrupt, finished, and set during a run, but only one thread at a time for each app.source and app.sink.
//
// Errors: RuntimeError if something that the user gave cannot be used; std::logic_error if the application calls
// functions in the wrong order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/log.h"
#include "millrace/payload.h"

namespace millrace {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // A pipeline, parameter or plugin cannot be used. what() is the text that the command would print, several lines.
  class RuntimeError : public std::exception {
   public:
    RuntimeError(std::string code, std::string text) : code_(std::move(code)), text_(std::move(text)) {}
    const std::string& code() const { return code_; } // "MR0304"
    const char* what() const noexcept override { return text_.c_str(); }

   private:
    std::string code_, text_;
  };

  struct RuntimeOptions {
    // Folders of plugins in addition to the standard ones: `plugins` beside the program, ../lib/millrace/plugins,
    // `installed_plugins`, and the folders of the environment's MILLRACE_PLUGIN_PATH. If several plugins have a type,
    // the first one counts.
    std::vector<std::string> plugin_paths;
#ifdef MILLRACE_PLUGIN_FOLDER // defined by the CMake package of an installed millrace
    std::string installed_plugins = MILLRACE_PLUGIN_FOLDER;
#else
    std::string installed_plugins; // "": there is no such folder
#endif
    std::string devices = "cpu"; // devices that may be used, in order of preference: "sim:0,cpu"
    uint32_t threads = 0;        // number to plan for; 0: one for each core
    std::string clock, rate;     // override those of the pipeline: "free", "30000/1001"
    uint64_t ticks_max = 0;      // 0: the run ends with its sources
    int64_t duration_ns = 0;     // 0: no limit
    // Receives warnings, and messages of handlers from level info upwards, one line each. Each sentence of a handler
    // comes once. Null: the messages are dropped.
    std::function<void(const std::string&)> on_message;
    // Receives the log of handlers and of the runtime, record by record, from `log_level` upwards. Null: the records
    // are dropped. One thread of this runtime calls on_message and on_log, one at a time, and wait() returns once they
    // have received everything, or after 10 s. They may be slow: if records come faster than they take them, some are
    // left out and counted (`log` of the report). Exceptions that they throw are dropped.
    std::function<void(const LogRecord&)> on_log;
    LogLevel log_level = LogLevel::info;
    // Called if a handler does not return from a call although it was interrupted (MR0602), with the text that the
    // command would print. The library cannot end such a call and does not end the process: wait() goes on waiting.
    // Called once for each such call, from a thread of the runtime that watches nothing else meanwhile. Null:
    // on_message receives the text.
    std::function<void(const std::string&)> on_hang;
    // Before the process dies, names on stderr the handler in whose call it crashed (MR0608) or called exit() (MR0609),
    // and also a host's access to a simulated device's memory (MR0702). For this the runtime handles SIGSEGV, SIGBUS,
    // SIGFPE, SIGILL and SIGABRT of the process while it lives. If false, it touches no signal of the program.
    bool explain_crashes = false;
    // Submits bodies and copies to devices one by one and waits for each, so that a fault belongs to the one that is
    // named.
    bool sync_devices = false;
  };

  // How a run ended.
  struct Outcome {
    bool ok = false;
    std::string code, error; // if not ok: those of the first cause
    uint64_t ticks = 0;
    double duration_s = 0;
    std::string report; // JSON, as `millrace run --json` writes it
  };

  // A picture in the application's memory: a pointer and a stride in bytes for each plane of its format.
  struct PictureRef {
    Pixel pixel = Pixel::rgb8;
    uint32_t width = 0, height = 0;
    struct Plane {
      const void* data = nullptr;
      size_t stride = 0; // 0: rows follow one another without a gap
    };
    std::array<Plane, MR_PLANES_MAX> planes;
  };

  // A dense row-major tensor in the application's memory.
  struct TensorRef {
    DType dtype{};
    std::vector<int64_t> shape;
    const void* data = nullptr;
  };

  // A value that was pulled. It stays unchanged for as long as any copy of it lives, also after the runtime was
  // destroyed.
  class Value {
   public:
    uint64_t index() const;        // index of the value's tick
    int64_t media_time_ns() const; // media time of that tick
    const mr_header& header() const;
    bool is_image() const { return header().kind == MR_KIND_IMAGE; }
    bool is_tensor() const { return header().kind == MR_KIND_TENSOR; }
    ImageView image() const;                // throws std::logic_error if it is no image
    TensorView tensor() const;              // throws std::logic_error if it is no tensor
    std::span<const uint8_t> bytes() const; // as they lie in memory; for any kind of value
    // Throws std::logic_error if the value holds no records, or records of another type.
    template <Record T>
    std::span<const T> records() const {
      static_assert(alignof(T) <= alignof(std::max_align_t), "values are aligned for plain types");
      const std::span<const uint8_t> bytes = records_of(T::kSchema, layout_of<T>(), sizeof(T));
      return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

   private:
    friend class Runtime;
    struct Held;
    std::span<const uint8_t> records_of(std::string_view schema, uint64_t layout, size_t record_size) const;
    explicit Value(std::shared_ptr<const Held> held) : held_(std::move(held)) {}
    std::shared_ptr<const Held> held_;
  };

  class Runtime {
   public:
    explicit Runtime(RuntimeOptions options = {});
    // Interrupts a run that is not over; in a child of fork() it leaves that to the parent. If a device was lost
    // while work on it was under way (MR0703), the destructor does not wait for that work: the handlers, memory and
    // device of that run stay until the process ends. The driver of a lost GPU may wait in exit(): leave by
    // std::_Exit().
    ~Runtime();
    Runtime(Runtime&&) noexcept;
    Runtime& operator=(Runtime&&) noexcept;

    // Loads a pipeline file, or a one-line pipeline.
    void load(const std::string& pipeline);
    // Loads the text of a pipeline file; errors call it `name`.
    void load_text(const std::string& yaml, const std::string& name = "pipeline");

    // Before start: sets any key, like --set. During a run: sets live parameters. Those of one call change on the same
    // tick, and values that are pushed afterwards see them. If a parameter of a source is among them, that may be one
    // tick later.
    void set(const std::string& key, const std::string& value); // "blur.sigma", "2.5"
    void set(const std::vector<std::pair<std::string, std::string>>& values);

    // While it runs: adds a stream to a set that has room for it (`max`), with the fields of its item, and removes one.
    // They wait until the stream has begun or is gone. `set` "": the only one that has room; or any.
    void add_stream(const std::string& name, const std::vector<std::pair<std::string, std::string>>& fields,
                    const std::string& set = "");
    void remove_stream(const std::string& name, const std::string& set = "");

    // Opens the sources and makes the plan. start() does it if it was not done.
    void compile();
    // The plan in words and as JSON; compiles if that was not done.
    std::string explain();
    std::string plan_json();

    void start();
    // Admits no more ticks; those in flight are finished. From now on an app.sink that would wait for room drops its
    // oldest value instead. Returns at once.
    void stop();
    // Like stop(), but drops the ticks in flight.
    void interrupt();
    bool finished() const;
    // Waits for the end of the run. Meanwhile another thread must pull from every app.sink that waits if its queue is
    // full (`full: wait`). Afterwards the pipeline may be started again.
    Outcome wait();

    // Copies the value into the queue of an app.source. push waits for room and returns false if the run takes no more
    // values. try_push does not wait and returns false also if there is no room. pts_ns: the value's media time;
    // kNoTime: the media time of its tick.
    static constexpr int64_t kNoTime = INT64_MIN;
    bool push(const std::string& source, const PictureRef& picture, int64_t pts_ns = kNoTime);
    bool push(const std::string& source, const TensorRef& tensor, int64_t pts_ns = kNoTime);
    bool try_push(const std::string& source, const PictureRef& picture, int64_t pts_ns = kNoTime);
    bool try_push(const std::string& source, const TensorRef& tensor, int64_t pts_ns = kNoTime);
    // Ends the source: it takes no more values. Those in its queue are still used.
    void end(const std::string& source);

    // Takes the oldest value that waits in an app.sink. Waits for one; none: the run gives no more values.
    std::optional<Value> pull(const std::string& sink);
    // The same without waiting; none: there is no value now.
    std::optional<Value> try_pull(const std::string& sink);
    // Takes the newest value and drops the older ones, without waiting; none: there is no value now.
    std::optional<Value> try_pull_newest(const std::string& sink);

   private:
    class State;
    State& state() const; // throws std::logic_error if this was moved from
    std::unique_ptr<State> state_;
  };

} // namespace )
} // namespace millrace
