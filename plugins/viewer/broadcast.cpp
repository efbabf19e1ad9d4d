// Encodes and sends pictures; see broadcast.h.
#include "plugins/viewer/broadcast.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace millrace::viewer {

namespace {

// A page that has not lagged for so many pictures in a row keeps up.
constexpr uint32_t kInStep = 120;

size_t row_bytes(const codec::Picture& picture, size_t plane) {
  if (plane == 0) return size_t{picture.width} * bytes_per_pixel(picture.pixel);
  const size_t half = (size_t{picture.width} + 1) / 2;
  return picture.pixel == Pixel::nv12 ? 2 * half : half;
}

bool are_alike(const codec::Picture& a, const codec::Picture& b) {
  if (a.pixel != b.pixel || a.width != b.width || a.height != b.height || a.color != b.color || a.range != b.range)
    return false;
  for (size_t plane = 0; plane < a.planes.size() && a.planes[plane]; ++plane) {
    const uint32_t rows = plane == 0 ? a.height : (a.height + 1) / 2;
    for (uint32_t y = 0; y < rows; ++y)
      if (std::memcmp(a.row(y, plane), b.row(y, plane), row_bytes(a, plane)) != 0) return false;
  }
  return true;
}

double seconds_of(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

} // namespace

double viewer_seconds() { return seconds_of(std::chrono::steady_clock::now()); }

void Broadcast::begin(const codec::EncoderSettings& settings, Says says, std::chrono::milliseconds rests_after) {
  end(); // in case a view.remote failed before
  settings_ = settings;
  says_ = std::move(says);
  rests_after_ = rests_after;
  ends_ = false;
  thread_ = std::thread([this] { run(); });
}

void Broadcast::change(const codec::EncoderSettings& settings) {
  const std::lock_guard lock(mutex_);
  if (settings == settings_) return;
  settings_ = settings;
  ++settings_changes_;
}

void Broadcast::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  newest_ = {};
  streams_.clear();
  stills_ = new_stills();
  receivers_.clear();
}

void Broadcast::show(const Shown& shown) {
  std::unique_lock lock(mutex_);
  const bool is_new = newest_.number == 0 || !are_alike(newest_.shown.picture, shown.picture);
  if (is_new && newest_.number != 0 && !newest_.is_encoded)
    ++(receivers_.empty() ? counts_.no_viewer : counts_.no_credit);
  newest_.shown = shown;
  newest_.memory = ++shown_;
  if (is_new) {
    ++newest_.number;
    newest_.is_encoded = false;
    newest_.came = Clock::now();
  }
  changed_.notify_all();
  changed_.wait(lock, [&] { return encoded_memory_ == 0 || encoded_memory_ == newest_.memory; });
}

void Broadcast::forget() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return encoded_memory_ == 0; });
  for (auto& [page, receiver] : receivers_) {
    receiver.has = receiver.has_still_of = 0;
    receiver.answered.clear(); // media times may begin again
  }
  for (Stream& stream : streams_) stream.number = 0;
  stills_.number = 0;
  newest_ = {};
}

void Broadcast::add(uint64_t page, mr_peer* peer, const std::vector<Codec>& codecs) {
  {
    const std::lock_guard lock(mutex_);
    Receiver& added = receivers_[page];
    added = {peer, codecs};
    enter(added, shared_stream(codecs[0]));
  }
  changed_.notify_all();
}

void Broadcast::remove(uint64_t page) {
  const std::lock_guard lock(mutex_);
  receivers_.erase(page);
}

void Broadcast::acknowledge(uint64_t page, const Ack& ack) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = receivers_.find(page);
    if (found == receivers_.end()) throw Rubbish("a picture is acknowledged before start");
    Receiver& receiver = found->second;
    auto& waiting = receiver.unacknowledged;
    const auto acknowledged =
        std::find_if(waiting.begin(), waiting.end(), [&](const Sent& sent) { return sent.seq == ack.seq; });
    if (acknowledged == waiting.end())
      throw Rubbish("the picture " + std::to_string(ack.seq) + " is acknowledged, and does not wait for that");
    // A still that fails is no failure: the page has the picture that it repeats.
    const Fate fate = acknowledged->is_still ? Fate::passed_over : ack.fate;
    waiting.erase(waiting.begin(), acknowledged + 1); // it has read those before, too
    if (fate == Fate::drawn) receiver.failures = 0;
    if (fate == Fate::failed) {
      receiver.stream->asks_key = true;
      if (++receiver.failures < kFailuresMax) {
        receiver.has = 0; // it gets this picture again
      } else if (receiver.codecs.size() > 1) {
        std::erase(receiver.codecs, receiver.stream->codec);
        enter(receiver, shared_stream(receiver.codecs[0]));
        receiver.failures = 0;
      }
    }
  }
  changed_.notify_all();
}

void Broadcast::answer(uint64_t page, uint32_t event, int64_t media_ns) {
  constexpr size_t kAnswersMax = 64; // for a page that gets no pictures; the newest ones count
  const std::lock_guard lock(mutex_);
  const auto found = receivers_.find(page);
  if (found == receivers_.end()) return;
  auto& answered = found->second.answered;
  if (answered.size() == kAnswersMax) answered.pop_front();
  answered.push_back({media_ns, event});
}

std::pair<uint32_t, uint32_t> Broadcast::size() const {
  const std::lock_guard lock(mutex_);
  return {newest_.shown.picture.width, newest_.shown.picture.height};
}

BroadcastCounts Broadcast::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Broadcast::Stream& Broadcast::shared_stream(Codec codec) {
  for (Stream& stream : streams_)
    if (stream.is_shared && stream.codec == codec) return stream;
  return streams_.emplace_back(Stream{codec, true});
}

// The stream goes on with a key frame, by which the page begins.
void Broadcast::enter(Receiver& receiver, Stream& stream) {
  receiver.stream = &stream;
  receiver.has = 0;
  receiver.in_step = 0;
  stream.asks_key = true;
}

// Pages without credit would miss a picture of the stream: each gets a stream of its own.
void Broadcast::give_laggards_own_streams(Stream& stream) {
  for (auto& [page, receiver] : receivers_)
    if (receiver.stream == &stream && !receiver.has_credit())
      enter(receiver, streams_.emplace_back(Stream{stream.codec, false}));
}

// Pages with a stream of their own that keep up with the shared one come back to it.
void Broadcast::join_those_in_step(Stream& shared) {
  const Clock::time_point now = Clock::now();
  for (auto& [page, receiver] : receivers_) {
    if (receiver.stream->is_shared || receiver.stream->codec != shared.codec) continue;
    receiver.in_step = receiver.lags(now) ? 0 : receiver.in_step + 1;
    if (receiver.in_step >= kInStep && receiver.has_credit()) enter(receiver, shared);
  }
}

std::vector<uint64_t> Broadcast::pages_of(const Stream& stream) const {
  std::vector<uint64_t> pages;
  for (const auto& [page, receiver] : receivers_)
    if (receiver.stream == &stream) pages.push_back(page);
  return pages;
}

void Broadcast::drop_unused_streams() {
  streams_.remove_if([&](const Stream& stream) {
    return !stream.is_shared && std::none_of(receivers_.begin(), receivers_.end(),
                                             [&](const auto& one) { return one.second.stream == &stream; });
  });
}

// True if the stream goes on for all its pages or for none, and one of them is about to acknowledge.
bool Broadcast::waits_for_a_page(const Stream& stream) const {
  if (stream.codec != Codec::h264) return false;
  const Clock::time_point now = Clock::now();
  return std::any_of(receivers_.begin(), receivers_.end(), [&](const auto& one) {
    return one.second.stream == &stream && !one.second.has_credit() && !one.second.lags(now);
  });
}

// Those that have the newest picture, and may have its still once it has rested.
std::vector<uint64_t> Broadcast::pages_without_still() const {
  std::vector<uint64_t> pages;
  if (rests_after_.count() == 0 || newest_.number == 0) return pages;
  for (const auto& [page, receiver] : receivers_)
    if (receiver.has == newest_.number && receiver.has_still_of != newest_.number && receiver.may_have_still())
      pages.push_back(page);
  return pages;
}

// A stream with pages that have credit and lack the newest picture or its still, and these pages. Null: there is none.
Broadcast::Stream* Broadcast::next_stream(std::vector<uint64_t>& ready) {
  if (newest_.number == 0) return nullptr;
  for (Stream& stream : streams_) {
    ready.clear();
    for (const auto& [page, receiver] : receivers_)
      if (receiver.stream == &stream && receiver.has_credit() && receiver.has != newest_.number) ready.push_back(page);
    if (!ready.empty() && !waits_for_a_page(stream)) return &stream;
  }
  if (Clock::now() - newest_.came < rests_after_) return nullptr;
  ready = pages_without_still();
  return ready.empty() ? nullptr : &stills_;
}

// Until something changes, a page lags, or the newest picture has rested.
void Broadcast::wait(std::unique_lock<std::mutex>& lock) {
  const auto waits = [&](const Stream& one) { return waits_for_a_page(one); };
  auto until = Clock::time_point::max();
  if (std::any_of(streams_.begin(), streams_.end(), waits)) until = Clock::now() + std::chrono::milliseconds(kLagMs);
  if (!pages_without_still().empty()) until = std::min(until, newest_.came + rests_after_);
  if (until == Clock::time_point::max())
    changed_.wait(lock);
  else
    changed_.wait_until(lock, until);
}

void Broadcast::run() {
  std::unique_lock lock(mutex_);
  std::vector<uint64_t> ready;
  for (;;) {
    if (ends_) return;
    Stream* const stream = next_stream(ready);
    if (!stream) {
      wait(lock);
      continue;
    }
    if (stream->codec == Codec::h264 && stream->is_shared) {
      give_laggards_own_streams(*stream);
      join_those_in_step(*stream);
      drop_unused_streams();
      ready = pages_of(*stream); // also those that have this picture
    }
    const bool has_unit =
        stream->codec == Codec::jpeg && stream->number == newest_.number && stream->changes == settings_changes_;
    if (has_unit)
      send_to(ready, *stream, newest_);
    else
      encode(lock, *stream, ready);
  }
}

codec::EncoderSettings Broadcast::settings_of(const Stream& stream) const {
  codec::EncoderSettings settings = settings_;
  if (stream.is_of_stills) {
    settings.quality = std::max(settings.quality, kStillQuality);
    settings.subsampling = codec::Subsampling::none_444;
  }
  return settings;
}

// Encodes the newest picture, without the lock, and sends it to these pages of the stream.
void Broadcast::encode(std::unique_lock<std::mutex>& lock, Stream& stream, const std::vector<uint64_t>& ready) {
  const Picture picture = newest_;
  const codec::EncoderSettings settings = settings_of(stream);
  const bool is_changed = std::exchange(stream.changes, settings_changes_) != settings_changes_;
  const bool asks_key = std::exchange(stream.asks_key, false);
  newest_.is_encoded = true;
  encoded_memory_ = picture.memory;
  lock.unlock();
  auto unit = std::make_shared<std::vector<uint8_t>>();
  bool is_key = false, is_refused = false;
  std::string failure;
  try {
    if (!stream.encoder)
      stream.encoder = codec::find_encoder(kCodecNames[static_cast<size_t>(stream.codec)]).make(settings);
    else if (is_changed)
      stream.encoder->change(settings);
    if (asks_key) stream.encoder->ask_key();
    is_key = stream.encoder->encode(picture.shown.picture, *unit);
  } catch (const std::invalid_argument& error) { // a picture that it does not take; others go on
    failure = error.what();
    is_refused = true;
  } catch (const std::exception& error) {
    failure = error.what();
  }
  lock.lock();
  encoded_memory_ = 0;
  changed_.notify_all();
  if (is_refused || (stream.is_of_stills && !failure.empty())) { // nothing is lost by a still but its quality
    say_once((stream.is_of_stills ? "a still is not shown: " : "a picture is not shown: ") + failure);
    stream.asks_key = stream.asks_key || asks_key;
    for (const uint64_t page : ready)
      if (const auto found = receivers_.find(page); found != receivers_.end())
        found->second.got(stream, picture.number);
    return;
  }
  if (!failure.empty()) return give_up(stream, failure);
  ++(stream.is_of_stills           ? counts_.encoded_stills
     : stream.codec == Codec::jpeg ? counts_.encoded_jpeg
                                   : counts_.encoded_h264);
  stream.unit = std::move(unit);
  stream.number = picture.number;
  stream.is_key = is_key;
  if (stream.is_of_stills && picture.number != newest_.number) return; // it has gone on meanwhile
  send_to(ready, stream, picture);
}

void Broadcast::send_to(const std::vector<uint64_t>& pages, const Stream& stream, const Picture& picture) {
  const codec::Picture& sent = picture.shown.picture;
  const auto came_s = seconds_of(picture.came);
  const double encoded_us = std::clamp((viewer_seconds() - came_s) * 1e6, 0.0, double{UINT32_MAX});
  for (const uint64_t page : pages) {
    const auto found = receivers_.find(page);
    if (found == receivers_.end() || (found->second.stream != &stream && !stream.is_of_stills)) continue;
    Receiver& receiver = found->second;
    while (!receiver.answered.empty() && receiver.answered.front().media_ns <= picture.shown.media_ns) {
      receiver.answers = receiver.answered.front().event;
      receiver.answered.pop_front();
    }
    receiver.got(stream, picture.number);
    send(receiver,
         {++receiver.last_seq, came_s, sent.width, sent.height, stream.codec, stream.is_key, stream.is_of_stills,
          receiver.answers, static_cast<uint32_t>(encoded_us)},
         stream.unit);
  }
}

void Broadcast::send(Receiver& receiver, const PictureHead& head, const Unit& unit) {
  receiver.unacknowledged.push_back({head.seq, Clock::now(), head.is_still});
  const std::vector<uint8_t> bytes = bytes_of(head);
  mr_message message{};
  message.size = sizeof message;
  message.head = bytes.data();
  message.head_bytes = bytes.size();
  message.body = unit->data();
  message.body_bytes = unit->size();
  message.context = new Unit(unit);
  message.release = [](void* held) { delete static_cast<Unit*>(held); };
  receiver.peer->send(receiver.peer, &message);
  ++counts_.sent;
  counts_.sent_bytes += bytes.size() + unit->size();
}

void Broadcast::say_once(const std::string& sentence) {
  if (says_ && said_.insert(sentence).second) says_(sentence);
}

// Its pages take the next codec that they know. A page without one sees no more pictures.
void Broadcast::give_up(Stream& stream, const std::string& why) {
  const std::string name(kCodecNames[static_cast<size_t>(stream.codec)]);
  say_once("the encoder " + name + " failed: " + why);
  for (auto receiver = receivers_.begin(); receiver != receivers_.end();) {
    Receiver& one = receiver->second;
    if (one.stream != &stream) {
      ++receiver;
      continue;
    }
    std::erase(one.codecs, stream.codec);
    if (one.codecs.empty()) {
      one.peer->end(one.peer, kCloseNoCodec, ("no picture can be encoded: " + why).c_str());
      receiver = receivers_.erase(receiver);
      continue;
    }
    enter(one, shared_stream(one.codecs[0]));
    ++receiver;
  }
  streams_.remove_if([&](const Stream& other) { return &other == &stream; });
}

} // namespace millrace::viewer
