// GStreamer's tcpserversink and tcpclientsrc: buffers over TCP, which has no frames there.
//
// Messages are given to the sink in place, and no more than 8 MiB of them wait: the sink queues without an end. The
// other element makes a buffer of each read, of 4 KiB at most in this version; a message has arrived once as many bytes
// are there. Only the rate of large messages is measured.
#include <gst/check/gstharness.h>

#include <semaphore>

#include "tests/peers/net/meter.h"

namespace {

using namespace peers::net;

using Free = std::counting_semaphore<64>; // blocks that are not under way

struct Arrivals {
  Meter& meter;
  Free& free_blocks;
  uint64_t bytes_of_message, bytes = 0;
};

GstPadProbeReturn arrive(GstPad*, GstPadProbeInfo* info, gpointer data) {
  auto& arrivals = *static_cast<Arrivals*>(data);
  arrivals.bytes += gst_buffer_get_size(GST_PAD_PROBE_INFO_BUFFER(info));
  for (; arrivals.bytes >= arrivals.bytes_of_message; arrivals.bytes -= arrivals.bytes_of_message) {
    arrivals.meter.arrived();
    arrivals.free_blocks.release();
  }
  return GST_PAD_PROBE_OK;
}

// Joined to the port; each buffer that arrives is counted and dropped.
GstElement* receiving_pipeline(int port, Arrivals& arrivals) {
  const std::string line =
      "tcpclientsrc host=127.0.0.1 port=" + std::to_string(port) + " ! fakesink name=sink sync=false";
  GError* error = nullptr;
  GstElement* pipeline = gst_parse_launch(line.c_str(), &error);
  if (error) give_up(std::string("GStreamer: ") + error->message, kMissing);
  GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
  GstPad* pad = gst_element_get_static_pad(sink, "sink");
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, &arrive, &arrivals, nullptr);
  gst_object_unref(pad);
  gst_object_unref(sink);
  if (gst_element_set_state(pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
    give_up("tcpclientsrc does not connect");
  return pipeline;
}

} // namespace

int main(int argc, char** argv) {
  const Job job = job_of(argc, argv);
  if (!job.is_rate) give_up("only the rate is measured of GStreamer", kWrongUsage);
  gst_init(nullptr, nullptr);
  GstElement* sink = gst_element_factory_make("tcpserversink", nullptr);
  if (!sink) give_up("GStreamer has no tcpserversink: install gstreamer1.0-plugins-base", kMissing);
  g_object_set(sink, "host", "127.0.0.1", "port", 0, "sync", FALSE, nullptr);
  GstHarness* harness = gst_harness_new_with_element(sink, "sink", nullptr);
  gst_harness_set_src_caps_str(harness, "application/x-peer");
  int port = 0;
  g_object_get(sink, "current-port", &port, nullptr);

  Meter meter(job);
  Blocks sent(job.bytes);
  Free free_blocks(static_cast<std::ptrdiff_t>(sent.count()));
  Arrivals arrivals{meter, free_blocks, job.bytes};
  GstElement* pipeline = receiving_pipeline(port, arrivals);
  for (guint clients = 0; clients == 0; g_usleep(1000)) g_object_get(sink, "num-handles", &clients, nullptr);

  meter.send([&](bool) {
    free_blocks.acquire(); // the sink keeps buffers for clients to come, so the arrival counts
    gst_harness_push(harness, gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, sent.next(), job.bytes, 0,
                                                          job.bytes, nullptr, nullptr));
  });
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
  gst_harness_teardown(harness);
  gst_object_unref(sink);
}
