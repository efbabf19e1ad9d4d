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
// A pipeline takes values from the application by handlers of type app.source and gives them by app.sink; each has a
// bounded queue (`depth`). Several runtimes in one process do not know of each other.
//
// Threads: load, set before start, compile, start and wait belong to one thread. push, pull, end, set while it runs,
// stop, interrupt and finished may come from any, each app.source and app.sink from one at a time. What the user gave
// and cannot be used is thrown as RuntimeError; what the application did in the wrong order as std::logic_error.
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

  // A pipeline, parameter or plugin that cannot be used; what() is what the command would print, several lines.
  class RuntimeError : public std::exception {
   public:
    RuntimeError(std::string code, std::string text) : code_(std::move(code)), text_(std::move(text)) {}
    const std::string& code() const { return code_; } // "MR0304"
    const char* what() const noexcept override { return text_.c_str(); }

   private:
    std::string code_, text_;
  };

  struct RuntimeOptions {
    // Folders of plugins beside those where it looks by itself: `plugins` beside the program, ../lib/millrace/plugins,
    // `installed_plugins`, and those of the environment's MILLRACE_PLUGIN_PATH. The first plugin with a type counts.
    std::vector<std::string> plugin_paths;
#ifdef MILLRACE_PLUGIN_FOLDER // the CMake package of an installed millrace says it
    std::string installed_plugins = MILLRACE_PLUGIN_FOLDER;
#else
    std::string installed_plugins; // "": none are looked for
#endif
    std::string devices = "cpu"; // what may be used, in order: "sim:0,cpu"
    uint32_t threads = 0;        // to plan for; 0: as many as cores
    std::string clock, rate;     // override the pipeline's: "free", "30000/1001"
    uint64_t ticks_max = 0;      // 0: until the sources end
    int64_t duration_ns = 0;     // 0: no limit
    // Warnings and what handlers say from info upwards, a line each, each sentence of a handler once; null: dropped.
    std::function<void(const std::string&)> on_message;
    // What handlers say and what the runtime tells of its work, record by record, from this level upwards; null:
    // dropped. Both are called by one thread of this runtime's own, one at a time, and wait() returns when all was
    // given. They may take their time: what comes faster than they take it is left out and counted (`log` of the
    // report). What they throw is dropped.
    std::function<void(const LogRecord&)> on_log;
    LogLevel log_level = LogLevel::info;
    // A handler did not return from its call although it was interrupted (MR0602): what() as the command prints it. The
    // library cannot end such a call, and ends no process: wait() goes on waiting. Told once a call, from a thread of
    // the runtime that watches nothing else meanwhile; null: told to on_message.
    std::function<void(const std::string&)> on_hang;
    // A crash inside a handler is named on stderr before the process dies of it (MR0608, MR0609), and so is a host's
    // access to a simulated device's memory (MR0702). Takes SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT for the process
    // while the runtime lives; without it no signal of the program is touched.
    bool explain_crashes = false;
    // Bodies and copies are submitted to devices one by one and waited for, so that a fault is of the one that is
    // named.
    bool sync_devices = false;
  };

  // How a run ended.
  struct Outcome {
    bool ok = false;
    std::string code, error; // of the first cause, where not ok
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

  // A value that was pulled. It stays as it is for as long as any copy of it lives, also behind the runtime's end.
  class Value {
   public:
    uint64_t index() const;        // of the tick that it belongs to
    int64_t media_time_ns() const; // of that tick
    const mr_header& header() const;
    bool is_image() const { return header().kind == MR_KIND_IMAGE; }
    bool is_tensor() const { return header().kind == MR_KIND_TENSOR; }
    ImageView image() const;                // std::logic_error where it is none
    TensorView tensor() const;              // std::logic_error where it is none
    std::span<const uint8_t> bytes() const; // as they lie in memory, of any kind of value
    // std::logic_error where it holds no records, or those of another type.
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
    // Interrupts what still runs; in a child of fork() that is left to the parent. If a device was lost
    // while work on it was under way (MR0703), the destructor does not wait for that work: the handlers, memory and
    // device of that run stay until the process ends. The driver of a lost GPU may wait in exit(): leave by
    // std::_Exit().
    ~Runtime();
    Runtime(Runtime&&) noexcept;
    Runtime& operator=(Runtime&&) noexcept;

    // A pipeline file, or a one-line pipeline.
    void load(const std::string& pipeline);
    // The text of a pipeline file; `name` stands for it in errors.
    void load_text(const std::string& yaml, const std::string& name = "pipeline");

    // Before start: any key, as --set. While it runs: live parameters; those of one call change on the same tick, and
    // what is pushed afterwards sees them. Where a source's is among them, that may be one tick later.
    void set(const std::string& key, const std::string& value); // "blur.sigma", "2.5"
    void set(const std::vector<std::pair<std::string, std::string>>& values);

    // Opens the sources and plans. start() does it where it was not done.
    void compile();
    // The plan in words and as JSON; compiles where that was not done.
    std::string explain();
    std::string plan_json();

    void start();
    // No more ticks; what is on its way is finished. app.sinks let go of what nobody pulls. Returns at once.
    void stop();
    // Drops what is on its way as well.
    void interrupt();
    bool finished() const;
    // Until the end. An app.sink whose queue is full and waits (`full: wait`) must be pulled from, by another thread.
    // Afterwards the pipeline may be started again.
    Outcome wait();

    // Copies the value into the queue of an app.source. push waits for room; false: the run takes no more values.
    // try_push does not wait; false: no room, or no more values. pts_ns: media time; kNoTime: that of its tick.
    static constexpr int64_t kNoTime = INT64_MIN;
    bool push(const std::string& source, const PictureRef& picture, int64_t pts_ns = kNoTime);
    bool push(const std::string& source, const TensorRef& tensor, int64_t pts_ns = kNoTime);
    bool try_push(const std::string& source, const PictureRef& picture, int64_t pts_ns = kNoTime);
    bool try_push(const std::string& source, const TensorRef& tensor, int64_t pts_ns = kNoTime);
    // The source has no more values; those in its queue are still used.
    void end(const std::string& source);

    // The oldest value that waits in an app.sink. pull waits for one; none: the run gives no more.
    std::optional<Value> pull(const std::string& sink);
    // Does not wait; none: there is none now.
    std::optional<Value> try_pull(const std::string& sink);
    // The newest that waits; older ones are dropped.
    std::optional<Value> try_pull_newest(const std::string& sink);

   private:
    class State;
    State& state() const; // std::logic_error where this was moved from
    std::unique_ptr<State> state_;
  };

} // namespace )
} // namespace millrace
