// GStreamer: a chain of identity elements in its own test harness, and the picture chain as gst-launch would run it.
//
// The picture chain is measured in the form given by PEER_FORM: `plain`, one thread; or `threads`, with queues between
// the elements and two threads each for conversion and scaling. The better one counts.
#include <gst/check/gstharness.h>

#include <atomic>

#include "tests/peers/peer.h"

namespace {

double chain_ns(unsigned handlers, unsigned messages) {
  std::string line = "identity silent=true";
  for (unsigned i = 1; i < handlers; ++i) line += " ! identity silent=true";
  GstHarness* harness = gst_harness_new_parse(line.c_str());
  gst_harness_set_src_caps_str(harness, "application/x-peer");
  gst_harness_set_drop_buffers(harness, TRUE);
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 64, nullptr);
  const auto push = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) gst_harness_push(harness, gst_buffer_ref(buffer));
  };
  push(peers::kWarmMessages);
  const peers::Stopwatch watch;
  push(messages);
  const double ns = watch.seconds() * 1e9 / messages;
  gst_harness_teardown(harness);
  gst_buffer_unref(buffer);
  return ns;
}

const char* format_name(const std::string& format) {
  if (format == "rgb8") return "RGB";
  if (format == "bgra8") return "BGRA";
  return format == "i420" ? "I420" : "";
}

// Pictures that have reached the sink, and since when the warm ones are counted.
struct Arrivals {
  unsigned count = 0;
  std::chrono::steady_clock::time_point warm, last;
};

GstPadProbeReturn arrive(GstPad*, GstPadProbeInfo*, gpointer data) {
  auto& arrivals = *static_cast<Arrivals*>(data);
  arrivals.last = std::chrono::steady_clock::now();
  if (++arrivals.count == peers::kWarmFrames) arrivals.warm = arrivals.last;
  return GST_PAD_PROBE_OK;
}

std::string picture_line(const peers::Job& job) {
  const char* form = std::getenv("PEER_FORM");
  const bool threads = form && std::strcmp(form, "threads") == 0;
  const std::string queue = threads ? "queue max-size-buffers=3 ! " : "";
  const std::string both = threads ? " n-threads=2" : "";
  const auto caps = [](const std::string& rest) { return "video/x-raw," + rest + " ! "; };
  return "videotestsrc pattern=smpte75 num-buffers=" + std::to_string(job.count + peers::kWarmFrames) + " ! " +
         caps("format=" + std::string(format_name(job.format)) + ",width=" + std::to_string(peers::kWidth) +
              ",height=" + std::to_string(peers::kHeight) + ",framerate=30/1") +
         queue + "videoconvert" + both + " ! " + caps("format=" + std::string(format_name(job.to))) + queue +
         "videoscale" + both + " ! " +
         caps("width=" + std::to_string(peers::kTargetWidth) + ",height=" + std::to_string(peers::kTargetHeight)) +
         queue + "textoverlay text=" + peers::kText + " ! fakesink name=sink sync=false";
}

double pictures_per_second(const peers::Job& job) {
  GError* error = nullptr;
  GstElement* pipeline = gst_parse_launch(picture_line(job).c_str(), &error);
  if (error) {
    std::fprintf(stderr, "gstreamer: %s\n", error->message);
    std::exit(peers::kMissing);
  }
  GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
  GstPad* pad = gst_element_get_static_pad(sink, "sink");
  Arrivals arrivals;
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, &arrive, &arrivals, nullptr);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* end = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE,
                                               static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  const bool failed = GST_MESSAGE_TYPE(end) == GST_MESSAGE_ERROR || arrivals.count != job.count + peers::kWarmFrames;
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_message_unref(end);
  gst_object_unref(bus);
  gst_object_unref(pad);
  gst_object_unref(sink);
  gst_object_unref(pipeline);
  if (failed) {
    std::fprintf(stderr, "gstreamer: the pipeline failed\n");
    std::exit(1);
  }
  return job.count / std::chrono::duration<double>(arrivals.last - arrivals.warm).count();
}

} // namespace

int main(int argc, char** argv) {
  const peers::Job job = peers::job_of(argc, argv);
  gst_init(nullptr, nullptr);
  std::printf("%.3f\n", job.chain ? chain_ns(job.handlers, job.count) : pictures_per_second(job));
}
