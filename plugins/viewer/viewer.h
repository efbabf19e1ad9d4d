// A viewer is the object that view.remote and view.events of one name share. Pages come and go, pictures go out to
// them, and what a person does comes back.
//
// The server's thread brings pages and their messages, view.remote pictures, view.events asks what has happened.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/abi.h"
#include "plugins/viewer/broadcast.h"
#include "plugins/viewer/controls.h"
#include "plugins/viewer/lease.h"
#include "plugins/viewer/view_state.h"

namespace millrace::viewer {

// A page may send so many messages a second, twice what a mouse of 1,000 Hz makes, and those of ten seconds at once,
// for what has piled up on a line that stood still. One that sends more is cut off.
inline constexpr int64_t kMessagesPerSecond = 2000, kMessagesAtOnce = 10 * kMessagesPerSecond;

struct ViewerOptions {
  codec::EncoderSettings encoder{};
  std::vector<Codec> codecs{}; // that this program may send
  std::string why_no_h264{};   // a sentence for pages that could decode it; "": it is among the codecs
  Broadcast::Says says{};
  std::chrono::milliseconds rests_after{0}; // Broadcast::begin
  std::function<int64_t()> now_ns{};        // null: the machine's clock
};

// All that has happened since the last call. The states are there if they have changed.
struct Happened {
  std::vector<ViewEvent> events;
  std::vector<ViewCamera> camera; // one, or none
  std::vector<ViewLook> look;
  std::vector<ViewDims> dims;
  bool pointer_changed = false, has_pointer = false;
  float pointer[2] = {};
  bool is_anything() const {
    return !events.empty() || !camera.empty() || !look.empty() || !dims.empty() || pointer_changed;
  }
};

struct ViewerCounts {
  BroadcastCounts pictures;
  uint64_t pages = 0;         // that came
  uint64_t cut_off = 0;       // that sent rubbish
  uint64_t refused_input = 0; // messages of pages without control, and values that a control does not allow
  uint64_t events_lost = 0;   // more than view.events asked for
};

class Viewer {
 public:
  // Called by view.remote, first and last.
  void begin(ViewerOptions options);
  void end();
  void change(const codec::EncoderSettings& settings) { broadcast_.change(settings); }
  void show(const Shown& shown) { broadcast_.show(shown); }
  void forget() { broadcast_.forget(); }
  // The controls that pages show from now on. Those that make no sense are left out, and the sentences say why.
  std::vector<std::string> offer(std::span<const ViewControl> controls);
  ViewerCounts counts() const;

  // Called by view.events. `media_ns`: that of the tick on which the handlers get to know it. `from_the_start`: all
  // states count as changed.
  Happened take(int64_t media_ns, bool from_the_start);

  // The functions of mr_site.
  void open(mr_peer* peer);
  void take(mr_peer* peer, std::string_view message, bool is_text);
  void close(mr_peer* peer);

 private:
  struct Page {
    mr_peer* peer;
    bool has_started = false;
    uint32_t newest_event = 0, told_event = 0; // received; given to view.events
    ViewEvent pointer{};                       // its newest event of the pointer
    bool has_pointer = false;                  // over the picture
    std::set<std::string> keys{};              // that are down
    int64_t messages_left = kMessagesAtOnce, counted_ns = 0;
  };

  int64_t now_ns() const;
  void read(Page& page, std::string_view message, bool is_text);
  void start(Page& page, const Start& start);
  // `wish`: the number of a camera, look or dims that the page wants answered; 0: none.
  bool may_steer(Page& page, uint32_t wish = 0);
  void acknowledge(const Page& page, uint32_t wish);
  void refuse(const Page& page, uint32_t wish, const std::string& why);
  void choose(Page& page, const ViewChoice& choice, uint32_t wish);
  std::string controls_text() const;
  void count_message(Page& page);
  void take_event(Page& page, const ViewEvent& event);
  void forget(std::map<uint64_t, Page>::iterator page);
  // Tells all pages who has control, if that has changed.
  void tell_control();
  static void say(const Page& page, const std::string& text);

  mutable std::mutex mutex_; // guards what follows but the broadcast
  ViewerOptions options_;
  std::map<uint64_t, Page> pages_;
  Lease lease_;
  uint64_t told_holder_ = 0;
  ViewState state_;
  Controls controls_;
  ViewerCounts counts_;
  Broadcast broadcast_;
};

} // namespace millrace::viewer
