// app.source and app.sink: the handlers through which an application puts values into a pipeline and takes them out.
#pragma once

#include <millrace/handler.h>

#include <memory>
#include <string>

#include "embed/value_queue.h"

namespace millrace {
// Hidden, like the classes of handler.h.
namespace embed __attribute__((visibility("hidden"))) {

  // Gives what the application pushed, one value a tick.
  class AppSource final : public Handler {
   public:
    AppSource();
    void probe(Facts& facts) override;
    void configure(const Formats& formats) override;
    void stop() override;
    void interrupt() override; // any thread
    void process(Tick& tick, Cpu& cpu);

    // The format of the values that the application may push; known once the pipeline is compiled. Any thread.
    const mr_format& format() const { return format_; }
    ValueQueue& queue() { return queue_; }

   private:
    Output<Any> out_{*this, "out", help("the values that the application pushes")};
    Param<std::string> payload_{*this, "payload", "image", "what is pushed", choices({"image", "tensor"})};
    Param<std::string> pixel_{*this, "format", "rgb8", "pixel format of the pictures",
                              choices({"gray8", "rgb8", "bgr8", "rgba8", "bgra8", "nv12", "i420", "p010"})};
    Param<int64_t> width_{*this, "width", 640, "of the pictures", range(1, 65536), unit("px")};
    Param<int64_t> height_{*this, "height", 480, "of the pictures", range(1, 65536), unit("px")};
    Param<std::string> dtype_{*this, "dtype", "float32", "of the tensors' elements",
                              choices({"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
                                       "float16", "float32", "float64"})};
    Param<std::string> shape_{*this, "shape", "1", "of the tensors, such as 3x224x224"};
    Param<int64_t> depth_{*this, "depth", 4, "values that wait at most", range(1, 4096)};
    Param<double> rate_{*this, "rate", 0, "values a second; 0: no rate of its own", range(0, 100000), unit("1/s")};
    Param<bool> live_{*this, "live", false, "cannot wait, like a camera"};
    mr_format format_{};
    ValueQueue queue_;
  };

  // Keeps values for the application to pull.
  class AppSink final : public Handler {
   public:
    AppSink();
    void probe(Facts& facts) override;
    void configure(const Formats& formats) override;
    void start() override;
    void drain() override;
    void stop() override;
    void interrupt() override; // any thread
    void process(Tick& tick, Cpu& cpu);

    // Shared with the values that the application holds, which may outlive the run.
    const std::shared_ptr<ValueQueue>& queue() const { return queue_; }

   private:
    Input<Any> in_{*this, "in", help("images, tensors, records or packets")};
    Param<int64_t> depth_{*this, "depth", 4, "values that wait at most", range(1, 4096)};
    Param<std::string> full_{*this, "full", "wait", "what happens to a value that finds the queue full",
                             choices({"wait", "drop_oldest", "drop_newest"})};
    std::shared_ptr<ValueQueue> queue_ = std::make_shared<ValueQueue>();
    WhenFull when_full_ = WhenFull::wait;
  };

  inline constexpr const char* kAppSourceType = "app.source";
  inline constexpr const char* kAppSinkType = "app.sink";

  // The table of both handlers; valid for the life of the process.
  const mr_plugin& app_plugin();

} // namespace )
} // namespace millrace
