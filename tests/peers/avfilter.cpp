// libavfilter: a chain of null filters, and the picture chain as the ffmpeg command would build it.
//
// Scaling and change of format are one filter there, `scale`, in slices on as many threads as there are cores.
// PEER_FORM chooses the source: `testsrc`, which draws every picture, or `smptebars`, which draws one and hands out
// references to it: that one costs nothing at all. The better one counts.
extern "C" {
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/frame.h>
}

#include "tests/peers/peer.h"

namespace {

[[noreturn]] void fail(const char* what, int code) {
  std::fprintf(stderr, "avfilter: %s\n", what);
  std::exit(code);
}

double chain_ns(unsigned handlers, unsigned messages) {
  AVFilterGraph* graph = avfilter_graph_alloc();
  AVFilterContext *source = nullptr, *sink = nullptr, *last = nullptr, *filter = nullptr;
  avfilter_graph_create_filter(&source, avfilter_get_by_name("buffer"), "in",
                               "video_size=16x16:pix_fmt=0:time_base=1/1000", nullptr, graph);
  avfilter_graph_create_filter(&sink, avfilter_get_by_name("buffersink"), "out", nullptr, nullptr, graph);
  last = source;
  for (unsigned i = 0; i < handlers; ++i) {
    avfilter_graph_create_filter(&filter, avfilter_get_by_name("null"), nullptr, nullptr, nullptr, graph);
    avfilter_link(last, 0, filter, 0);
    last = filter;
  }
  avfilter_link(last, 0, sink, 0);
  if (avfilter_graph_config(graph, nullptr) < 0) fail("the chain cannot be configured", 1);
  AVFrame *in = av_frame_alloc(), *out = av_frame_alloc();
  in->width = in->height = 16;
  in->format = 0;
  av_frame_get_buffer(in, 0);
  const auto push = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      in->pts = i;
      if (av_buffersrc_add_frame_flags(source, in, AV_BUFFERSRC_FLAG_KEEP_REF | AV_BUFFERSRC_FLAG_PUSH) < 0 ||
          av_buffersink_get_frame(sink, out) < 0)
        fail("a frame was lost", 1);
      av_frame_unref(out);
    }
  };
  push(peers::kWarmMessages);
  const peers::Stopwatch watch;
  push(messages);
  const double ns = watch.seconds() * 1e9 / messages;
  av_frame_free(&in);
  av_frame_free(&out);
  avfilter_graph_free(&graph);
  return ns;
}

const char* format_name(const std::string& format) {
  if (format == "rgb8") return "rgb24";
  if (format == "bgra8") return "bgra";
  return format == "i420" ? "yuv420p" : "";
}

std::string picture_line(const peers::Job& job) {
  const char* form = std::getenv("PEER_FORM");
  const std::string size = std::to_string(peers::kWidth) + "x" + std::to_string(peers::kHeight);
  return std::string(form ? form : "testsrc") + "=s=" + size + ":r=30,format=" + format_name(job.format) +
         ",scale=" + std::to_string(peers::kTargetWidth) + ":" + std::to_string(peers::kTargetHeight) +
         ":flags=bilinear,format=" + format_name(job.to) + ",drawtext=text=" + peers::kText +
         ":fontsize=24:fontcolor=white:x=16:y=16:fontfile=/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf,buffersink";
}

double pictures_per_second(const peers::Job& job) {
  AVFilterGraph* graph = avfilter_graph_alloc();
  AVFilterInOut *inputs = nullptr, *outputs = nullptr;
  if (avfilter_graph_parse2(graph, picture_line(job).c_str(), &inputs, &outputs) < 0 ||
      avfilter_graph_config(graph, nullptr) < 0)
    fail("the picture chain cannot be built; are drawtext and DejaVuSans there?", peers::kMissing);
  AVFilterContext* sink = nullptr;
  for (unsigned i = 0; i < graph->nb_filters; ++i)
    if (std::strcmp(graph->filters[i]->filter->name, "buffersink") == 0) sink = graph->filters[i];
  AVFrame* frame = av_frame_alloc();
  const auto pull = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (av_buffersink_get_frame(sink, frame) < 0) fail("a picture was lost", 1);
      av_frame_unref(frame);
    }
  };
  pull(peers::kWarmFrames);
  const peers::Stopwatch watch;
  pull(job.count);
  const double rate = job.count / watch.seconds();
  av_frame_free(&frame);
  avfilter_graph_free(&graph);
  return rate;
}

} // namespace

int main(int argc, char** argv) {
  const peers::Job job = peers::job_of(argc, argv);
  av_log_set_level(AV_LOG_ERROR);
  std::printf("%.3f\n", job.chain ? chain_ns(job.handlers, job.count) : pictures_per_second(job));
}
