// Pages of a viewer and what they say; see viewer.h.
#include "plugins/viewer/viewer.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

namespace millrace::viewer {

using nlohmann::ordered_json;

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr size_t kKeysMax = 64; // more than hands hold

// It may quote what is no text.
std::string text_of(const ordered_json& message) {
  return message.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// The number of a wish that the page wants answered; 0: none.
uint32_t wish_of(const Message& message) {
  if (const auto* const camera = std::get_if<CameraChange>(&message)) return camera->seq;
  if (const auto* const look = std::get_if<LookChange>(&message)) return look->seq;
  if (const auto* const dims = std::get_if<DimsChange>(&message)) return dims->seq;
  return 0;
}

} // namespace

void Viewer::begin(ViewerOptions options) {
  const std::lock_guard lock(mutex_);
  options_ = std::move(options);
  broadcast_.begin(options_.encoder, options_.says, options_.rests_after);
}

void Viewer::end() {
  broadcast_.end();
  const std::lock_guard lock(mutex_);
  pages_.clear();
  controls_.clear();
}

std::vector<std::string> Viewer::offer(std::span<const ViewControl> controls) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> left_out = controls_.offer(controls);
  const std::string text = controls_text();
  for (const auto& [number, page] : pages_) say(page, text);
  return left_out;
}

std::string Viewer::controls_text() const {
  return text_of({{"type", "controls"}, {"controls", controls_.description(state_.chosen)}});
}

int64_t Viewer::now_ns() const {
  if (options_.now_ns) return options_.now_ns();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ViewerCounts Viewer::counts() const {
  const std::lock_guard lock(mutex_);
  ViewerCounts counts = counts_;
  counts.pictures = broadcast_.counts();
  counts.events_lost = state_.events_lost;
  return counts;
}

void Viewer::say(const Page& page, const std::string& text) {
  mr_message message{};
  message.size = sizeof message;
  message.is_text = 1;
  message.head = reinterpret_cast<const uint8_t*>(text.data());
  message.head_bytes = text.size();
  page.peer->send(page.peer, &message);
}

void Viewer::open(mr_peer* peer) {
  const std::lock_guard lock(mutex_);
  ++counts_.pages;
  const Page& page = pages_.emplace(peer->number, Page{peer}).first->second;
  ordered_json codecs = ordered_json::array();
  for (const Codec codec : options_.codecs) codecs.push_back(kCodecNames[static_cast<size_t>(codec)]);
  const auto [width, height] = broadcast_.size();
  say(page, ordered_json{{"type", "welcome"},
                         {"viewer", peer->number},
                         {"steers", peer->steers != 0},
                         {"control", lease_.holder(now_ns())},
                         {"codecs", codecs},
                         {"why_no_h264", options_.why_no_h264},
                         {"width", width},
                         {"height", height}}
                .dump());
  say(page, controls_text());
}

void Viewer::close(mr_peer* peer) {
  const std::lock_guard lock(mutex_);
  if (const auto found = pages_.find(peer->number); found != pages_.end()) forget(found);
}

// The page is gone: it holds no button and no key any more, and its pointer is nowhere.
void Viewer::forget(std::map<uint64_t, Page>::iterator page) {
  const uint64_t number = page->first;
  Page gone = std::move(page->second);
  broadcast_.remove(number);
  pages_.erase(page);
  lease_.leave(number);
  ViewEvent event = gone.pointer;
  event.viewer = static_cast<uint32_t>(number);
  event.seq = gone.newest_event;
  event.dx = event.dy = 0;
  if (std::exchange(event.buttons, 0) != 0) {
    event.kind = static_cast<int32_t>(ViewEventKind::up);
    state_.add(event);
  }
  for (const std::string& key : gone.keys) {
    ViewEvent up;
    up.kind = static_cast<int32_t>(ViewEventKind::key_up);
    up.viewer = event.viewer;
    up.seq = event.seq;
    std::copy(key.begin(), key.end(), up.name);
    state_.add(up);
  }
  if (gone.has_pointer) {
    event.kind = static_cast<int32_t>(ViewEventKind::leave);
    state_.add(event);
  }
  tell_control();
}

void Viewer::take(mr_peer* peer, std::string_view message, bool is_text) {
  const std::lock_guard lock(mutex_);
  const auto found = pages_.find(peer->number);
  if (found == pages_.end()) return; // it was cut off, and its last words come
  try {
    count_message(found->second);
    read(found->second, message, is_text);
  } catch (const Rubbish& rubbish) {
    ++counts_.cut_off;
    say(found->second, text_of({{"type", "error"}, {"message", rubbish.what()}}));
    peer->end(peer, kCloseRubbish, rubbish.what());
    forget(found);
  }
}

void Viewer::count_message(Page& page) {
  const int64_t now = now_ns(), earned = (now - page.counted_ns) / (kSecondNs / kMessagesPerSecond);
  if (earned > 0) {
    page.messages_left =
        earned < kMessagesAtOnce ? std::min(page.messages_left + earned, kMessagesAtOnce) : kMessagesAtOnce;
    page.counted_ns = now;
  }
  if (page.messages_left-- <= 0)
    throw Rubbish("more than " + std::to_string(kMessagesPerSecond) +
                  " messages a second are more than a person makes");
}

void Viewer::read(Page& page, std::string_view message, bool is_text) {
  if (!is_text) return broadcast_.acknowledge(page.peer->number, read_ack(message));
  const Message read = read_message(message);
  if (const Start* const asks = std::get_if<Start>(&read)) return start(page, *asks);
  if (const Ping* const ping = std::get_if<Ping>(&read)) {
    tell_control(); // the lease may have run out
    return say(page, ordered_json{{"type", "pong"}, {"at", ping->at}, {"seconds", viewer_seconds()}}.dump());
  }
  if (std::holds_alternative<Take>(read)) {
    if (page.peer->steers) lease_.take(page.peer->number, now_ns());
    return page.peer->steers ? tell_control() : void(may_steer(page));
  }
  const uint32_t wish = wish_of(read);
  if (!may_steer(page, wish)) return;
  ViewChoice choice = state_.chosen;
  if (const ViewEvent* const event = std::get_if<ViewEvent>(&read)) {
    take_event(page, *event);
  } else if (const CameraChange* const camera = std::get_if<CameraChange>(&read)) {
    state_.apply(*camera);
    acknowledge(page, wish);
  } else if (const LookChange* const look = std::get_if<LookChange>(&read)) {
    choice.apply(*look);
    choose(page, choice, wish);
  } else {
    choice.apply(std::get<DimsChange>(read), controls_.axis(state_.chosen));
    choose(page, choice, wish);
  }
}

void Viewer::choose(Page& page, const ViewChoice& choice, uint32_t wish) {
  if (const std::string why = controls_.why_refused(state_.chosen, choice); !why.empty()) {
    ++counts_.refused_input;
    return refuse(page, wish, why);
  }
  state_.choose(choice);
  acknowledge(page, wish);
  if (controls_.empty()) return;
  const std::string text = text_of({{"type", "values"}, {"values", controls_.values(choice)}});
  for (const auto& [number, other] : pages_)
    if (&other != &page) say(other, text);
}

void Viewer::acknowledge(const Page& page, uint32_t wish) {
  if (wish) say(page, text_of({{"type", "ack"}, {"seq", wish}, {"values", controls_.values(state_.chosen)}}));
}

void Viewer::refuse(const Page& page, uint32_t wish, const std::string& why) {
  ordered_json refused = {{"type", "refused"}, {"control", lease_.holder(now_ns())}, {"message", why}};
  if (wish) {
    refused["seq"] = wish;
    refused["values"] = controls_.values(state_.chosen);
  }
  say(page, text_of(refused));
}

void Viewer::take_event(Page& page, const ViewEvent& event) {
  if (event.seq <= page.newest_event)
    throw Rubbish("event: seq is " + std::to_string(event.seq) + " after " + std::to_string(page.newest_event));
  page.newest_event = event.seq;
  ViewEvent named = event;
  named.viewer = static_cast<uint32_t>(page.peer->number);
  state_.add(named);
  const auto kind = static_cast<ViewEventKind>(event.kind);
  const std::string key(reinterpret_cast<const char*>(event.name));
  if (kind == ViewEventKind::key_up) {
    page.keys.erase(key);
  } else if (kind == ViewEventKind::key_down) {
    if (page.keys.size() < kKeysMax) page.keys.insert(key);
  } else {
    page.pointer = named;
    page.has_pointer = kind != ViewEventKind::leave;
  }
}

void Viewer::start(Page& page, const Start& start) {
  if (std::exchange(page.has_started, true)) throw Rubbish("start comes once");
  std::vector<Codec> codecs;
  for (const Codec codec : start.codecs)
    if (std::find(options_.codecs.begin(), options_.codecs.end(), codec) != options_.codecs.end())
      codecs.push_back(codec);
  if (codecs.empty()) {
    page.peer->end(page.peer, kCloseNoCodec, "the page decodes none of the codecs that this program encodes");
    return;
  }
  broadcast_.add(page.peer->number, page.peer, codecs);
}

// Input counts if the page has control, or can take it because nobody has.
bool Viewer::may_steer(Page& page, uint32_t wish) {
  const int64_t now = now_ns();
  if (page.peer->steers && lease_.renew(page.peer->number, now)) {
    tell_control();
    return true;
  }
  ++counts_.refused_input;
  refuse(page, wish,
         page.peer->steers ? "page " + std::to_string(lease_.holder(now)) + " has control"
                           : "this link lets a page watch, and not steer");
  return false;
}

void Viewer::tell_control() {
  const uint64_t holder = lease_.holder(now_ns());
  if (std::exchange(told_holder_, holder) == holder) return;
  const std::string text = ordered_json{{"type", "control"}, {"control", holder}}.dump();
  for (const auto& [number, page] : pages_) say(page, text);
}

Happened Viewer::take(int64_t media_ns, bool from_the_start) {
  const std::lock_guard lock(mutex_);
  tell_control(); // the lease may have run out
  Happened happened;
  happened.events.assign(state_.events.begin(), state_.events.end());
  state_.events.clear();
  const auto changed = [&](bool& flag) { return std::exchange(flag, false) || from_the_start; };
  if (changed(state_.camera_changed)) happened.camera.push_back(state_.camera);
  if (changed(state_.look_changed)) happened.look.push_back(state_.chosen.look);
  if (changed(state_.dims_changed)) happened.dims.push_back(state_.chosen.dims);
  happened.pointer_changed = changed(state_.pointer_changed);
  happened.has_pointer = state_.has_pointer;
  std::copy(std::begin(state_.pointer), std::end(state_.pointer), happened.pointer);
  for (auto& [number, page] : pages_)
    if (std::exchange(page.told_event, page.newest_event) != page.newest_event)
      broadcast_.answer(number, page.newest_event, media_ns);
  return happened;
}

} // namespace millrace::viewer
