// view.remote: shows pictures in browsers.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/handler.h"
#include "plugins/codec/encoder.h"
#include "plugins/viewer/page_files.h"
#include "plugins/viewer/viewer.h"

namespace millrace::viewer {
namespace {

constexpr const char* kViewRemoteManual = &R"(
Shows the newest picture in browsers. The run prints a link to the page; `listen` says at which
address, and with `run --web` the page is a tab of that one. With the first link a person may steer,
with the second one watch.

A picture is encoded only for pages that have credit: each has at most two pictures that it has not
drawn yet, so that nobody sees an old one. Pictures that nobody had credit for are dropped before
they are encoded, and counted: no_viewer, no_credit. A slow page loses pictures and holds up nobody.
A picture that is like the one before is not sent again, but for its still.

A picture that stays for the time `still` is sent once more in high quality, as a JPEG with a
colour for each pixel. So a person can read values off a picture at rest.

Pictures go as H.264 where the browser decodes it, which it does for pages by https or from its own
machine, else as JPEG. view.events of the same `view` gives what the person does.

Handlers that can be steered offer `controls`: the page shows them in a panel, and what is chosen there
comes as `look` and `dims` of view.events. Each list replaces the one before; they are read with
`policy: latest`, so that none is lost with a picture that is dropped. A value that a control does not
allow is refused, and the page is told which one counts.

    test.pattern width=640 height=480 fps=30 ! view.remote
)"[1];

constexpr int64_t kCountEveryNs = 1'000'000'000;

std::vector<mr_site_file> site_files() {
  std::vector<mr_site_file> files;
  for (const PageFile& file : page_files())
    files.push_back({file.name.data(), reinterpret_cast<const uint8_t*>(file.bytes.data()), file.bytes.size()});
  return files;
}

class ViewRemote final : public Handler {
 public:
  ViewRemote() {
    blocking();         // waits until the picture before is encoded
    cost_hint_us(1000); // a comparison with the picture before, of 1080p
  }

  static void offers(Offers& offers) {
    for (const std::string_view name : kCodecNames)
      if (codec::find_encoder(name).why_missing().empty())
        offers.add("codecs", std::string(name), std::string("codec=") + std::string(name));
  }

  void start() override {
    ViewerOptions options;
    options.encoder = settings();
    for (size_t c = 0; c < kCodecNames.size(); ++c) {
      const std::string missing = codec::find_encoder(kCodecNames[c]).why_missing();
      const bool is_asked_for = *codec_ == kCodecNames[c];
      if (is_asked_for && !missing.empty()) throw std::runtime_error(missing);
      if (missing.empty() && (is_asked_for || *codec_ == "auto")) options.codecs.push_back(static_cast<Codec>(c));
      if (!is_asked_for && *codec_ == "auto" && static_cast<Codec>(c) == Codec::h264) options.why_no_h264 = missing;
    }
    if (options.codecs.empty()) throw std::runtime_error(codec::find_encoder("jpeg").why_missing());
    options.rests_after = std::chrono::milliseconds(*still_);
    options.says = [this](const std::string& sentence) { log(MR_LOG_WARNING, sentence); };
    Viewer& viewer = share<Viewer>(*name_);
    viewer.begin(std::move(options));
    told_ = viewer.counts();
    offered_.reset();
    path_ = "view/" + *name_;
    site_ = {};
    site_.size = sizeof site_;
    site_.path = path_.c_str();
    site_.title = name_->c_str();
    site_.listen = listen_->c_str();
    site_.files = files_.data();
    site_.file_count = static_cast<uint32_t>(files_.size());
    site_.context = &viewer;
    site_.open = [](void* of, mr_peer* peer) { static_cast<Viewer*>(of)->open(peer); };
    site_.take = [](void* of, mr_peer* peer, const uint8_t* bytes, uint64_t size, uint32_t is_text) {
      static_cast<Viewer*>(of)->take(peer, {reinterpret_cast<const char*>(bytes), size}, is_text != 0);
    };
    site_.close = [](void* of, mr_peer* peer) { static_cast<Viewer*>(of)->close(peer); };
    try {
      serve(site_);
    } catch (...) {
      viewer.end();
      throw;
    }
    viewer_ = &viewer;
  }

  void process(Tick& tick, Cpu&) {
    viewer_->change(settings());
    if (controls_.present(tick)) offer(controls_(tick));
    viewer_->show({codec::picture_of(picture_(tick)), tick.media_time_ns()});
    if (now_ns() - counted_ns_ < kCountEveryNs) return;
    counted_ns_ = now_ns();
    tell_counts();
  }

  void reset() override {
    if (viewer_) viewer_->forget();
  }
  void stop() override {
    if (!viewer_) return;
    tell_counts();
    viewer_->end();
    viewer_ = nullptr;
  }

 private:
  codec::EncoderSettings settings() const {
    codec::EncoderSettings settings;
    settings.quality = static_cast<int>(*quality_);
    settings.bit_rate = *bit_rate_;
    settings.fps = *fps_;
    settings.threads = std::max<int64_t>(1, *threads_);
    return settings;
  }

  void offer(std::span<const ViewControl> controls) {
    const bool is_known = offered_ && offered_->size() == controls.size() &&
                          std::memcmp(offered_->data(), controls.data(), controls.size_bytes()) == 0;
    if (is_known) return;
    offered_.emplace(controls.begin(), controls.end());
    for (const std::string& sentence : viewer_->offer(controls)) log(MR_LOG_WARNING, sentence);
  }

  // Adds what has happened since the last time to the report.
  void tell_counts() {
    const ViewerCounts now = viewer_->counts();
    const auto tell = [&](const char* name, uint64_t count, uint64_t told) {
      if (count != told) this->count(name, static_cast<int64_t>(count - told));
    };
    tell("no_viewer", now.pictures.no_viewer, told_.pictures.no_viewer);
    tell("no_credit", now.pictures.no_credit, told_.pictures.no_credit);
    tell("encoded_jpeg", now.pictures.encoded_jpeg, told_.pictures.encoded_jpeg);
    tell("encoded_h264", now.pictures.encoded_h264, told_.pictures.encoded_h264);
    tell("encoded_stills", now.pictures.encoded_stills, told_.pictures.encoded_stills);
    tell("sent", now.pictures.sent, told_.pictures.sent);
    tell("sent_bytes", now.pictures.sent_bytes, told_.pictures.sent_bytes);
    tell("pages", now.pages, told_.pages);
    tell("cut_off", now.cut_off, told_.cut_off);
    tell("refused_input", now.refused_input, told_.refused_input);
    tell("events_lost", now.events_lost, told_.events_lost);
    told_ = now;
  }

  Input<Image> picture_{
      *this,
      "picture",
      pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8, Pixel::rgba8, Pixel::bgra8, Pixel::nv12, Pixel::i420}),
      on_cpu,
      newest,
      keeps(1),
      square_pixels,
      help("what is shown")};
  Input<Records<ViewControl>> controls_{
      *this, "controls", optional, on_cpu, count_max(kControlsMax), help("for the page's panel")};
  Param<std::string> name_{*this, "view", "main", "the viewer's name: its page is /view/NAME/", owns("viewer")};
  Param<std::string> listen_{*this, "listen", "",
                             "HOST:PORT of the page; empty: a free port of this machine's loopback, or that of --web"};
  Param<std::string> codec_{*this, "codec", "auto", "how pictures are sent; auto: h264 where the browser decodes it",
                            choices({"auto", "h264", "jpeg"})};
  Param<int64_t> quality_{*this, "quality", 80, "of JPEG", live, range(codec::kQualityMin, codec::kQualityMax)};
  Param<int64_t> bit_rate_{*this,
                           "bit_rate",
                           8'000'000,
                           "of H.264",
                           live,
                           unit("bit/s"),
                           range(static_cast<double>(codec::kBitRateMin), static_cast<double>(codec::kBitRateMax))};
  Param<int64_t> still_{
      *this,     "still", 200, "rest after which a picture is sent in high quality; 0: never", range(0, 60'000),
      unit("ms")};
  Param<double> fps_{*this,       "fps",
                     30.0,        "pictures a second, over which H.264 shares its bits out",
                     unit("1/s"), range(codec::kFpsMin, codec::kFpsMax)};
  Param<int64_t> threads_{*this, "threads", 0, "of H.264's encoder", counts_threads};

  const std::vector<mr_site_file> files_ = site_files();
  std::string path_;
  mr_site site_{};
  Viewer* viewer_ = nullptr; // from start to stop
  std::optional<std::vector<ViewControl>> offered_;
  ViewerCounts told_;
  int64_t counted_ns_ = 0;
};

MILLRACE_HANDLER(ViewRemote, "view.remote", "Shows pictures in browsers", kViewRemoteManual)

} // namespace
} // namespace millrace::viewer
