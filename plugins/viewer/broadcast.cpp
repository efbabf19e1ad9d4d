// Encodes and sends pictures; see broadcast.h.
#include "plugins/viewer/broadcast.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace millrace::viewer {

namespace {

// A page that had credit for so many pictures in a row keeps up.
constexpr uint32_t kInStep = 120;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

} // namespace

void Broadcast::begin(const codec::EncoderSettings& settings, Says says) {
  settings_ = settings;
  says_ = std::move(says);
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
    newest_.came_s = seconds_now();
  }
  changed_.notify_all();
  changed_.wait(lock, [&] { return encoded_memory_ == 0 || encoded_memory_ == newest_.memory; });
}

void Broadcast::forget() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return encoded_memory_ == 0; });
  for (auto& [page, receiver] : receivers_) receiver.has = 0;
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
    const auto acknowledged = std::find(waiting.begin(), waiting.end(), ack.seq);
    if (acknowledged == waiting.end())
      throw Rubbish("the picture " + std::to_string(ack.seq) + " is acknowledged, and does not wait for that");
    waiting.erase(waiting.begin(), acknowledged + 1); // it has read those before, too
    if (ack.fate == Fate::failed) receiver.stream->asks_key = true;
  }
  changed_.notify_all();
}

void Broadcast::answer(uint64_t page, uint32_t event, int64_t media_ns) {
  const std::lock_guard lock(mutex_);
  if (const auto found = receivers_.find(page); found != receivers_.end())
    found->second.answered.push_back({media_ns, event});
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

// Pages that would miss a picture leave the stream.
void Broadcast::leave_those_behind(Stream& stream) {
  for (auto& [page, receiver] : receivers_)
    if (receiver.stream == &stream && !receiver.has_credit())
      enter(receiver, streams_.emplace_back(Stream{stream.codec, false}));
}

// Pages with a stream of their own that keep up with the shared one come back to it.
void Broadcast::join_those_in_step(Stream& shared) {
  for (auto& [page, receiver] : receivers_) {
    if (receiver.stream->is_shared || receiver.stream->codec != shared.codec) continue;
    receiver.in_step = receiver.has_credit() ? receiver.in_step + 1 : 0;
    if (receiver.in_step >= kInStep) enter(receiver, shared);
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

// A stream with pages that have credit and lack the newest picture, and these pages. Null: there is none.
Broadcast::Stream* Broadcast::next_stream(std::vector<uint64_t>& ready) {
  if (newest_.number == 0) return nullptr;
  for (Stream& stream : streams_) {
    ready.clear();
    for (const auto& [page, receiver] : receivers_)
      if (receiver.stream == &stream && receiver.has_credit() && receiver.has != newest_.number) ready.push_back(page);
    if (!ready.empty()) return &stream;
  }
  return nullptr;
}

void Broadcast::run() {
  std::unique_lock lock(mutex_);
  std::vector<uint64_t> ready;
  for (;;) {
    Stream* stream = nullptr;
    changed_.wait(lock, [&] { return ends_ || (stream = next_stream(ready)); });
    if (ends_) return;
    if (stream->codec == Codec::h264 && stream->is_shared) {
      leave_those_behind(*stream);
      join_those_in_step(*stream);
      drop_unused_streams();
      ready = pages_of(*stream); // also those that have this picture: the stream goes on for all or for none
    }
    const Picture picture = newest_;
    const codec::EncoderSettings settings = settings_;
    const bool is_changed = std::exchange(stream->changes, settings_changes_) != settings_changes_;
    const bool asks_key = std::exchange(stream->asks_key, false);
    newest_.is_encoded = true;
    encoded_memory_ = picture.memory;
    lock.unlock();
    auto unit = std::make_shared<std::vector<uint8_t>>();
    bool is_key = false;
    std::string failure;
    try {
      if (!stream->encoder)
        stream->encoder = codec::find_encoder(kCodecNames[static_cast<size_t>(stream->codec)]).make(settings);
      else if (is_changed)
        stream->encoder->change(settings);
      if (asks_key) stream->encoder->ask_key();
      is_key = stream->encoder->encode(picture.shown.picture, *unit);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    lock.lock();
    encoded_memory_ = 0;
    changed_.notify_all();
    if (!failure.empty()) {
      give_up(*stream, failure);
      continue;
    }
    ++(stream->codec == Codec::jpeg ? counts_.encoded_jpeg : counts_.encoded_h264);
    const codec::Picture& sent = picture.shown.picture;
    const auto encoded_us = static_cast<uint32_t>(std::max(0.0, seconds_now() - picture.came_s) * 1e6);
    for (const uint64_t page : ready) {
      const auto found = receivers_.find(page);
      if (found == receivers_.end() || found->second.stream != stream) continue;
      Receiver& receiver = found->second;
      while (!receiver.answered.empty() && receiver.answered.front().media_ns <= picture.shown.media_ns) {
        receiver.answers = receiver.answered.front().event;
        receiver.answered.pop_front();
      }
      receiver.has = picture.number;
      send(receiver,
           {++receiver.last_seq, picture.came_s, sent.width, sent.height, stream->codec, is_key, receiver.answers,
            encoded_us},
           unit);
    }
  }
}

void Broadcast::send(Receiver& receiver, const PictureHead& head,
                     const std::shared_ptr<const std::vector<uint8_t>>& unit) {
  using Held = std::shared_ptr<const std::vector<uint8_t>>;
  receiver.unacknowledged.push_back(head.seq);
  const std::vector<uint8_t> bytes = bytes_of(head);
  mr_message message{};
  message.size = sizeof message;
  message.head = bytes.data();
  message.head_bytes = bytes.size();
  message.body = unit->data();
  message.body_bytes = unit->size();
  message.context = new Held(unit);
  message.release = [](void* held) { delete static_cast<Held*>(held); };
  receiver.peer->send(receiver.peer, &message);
  ++counts_.sent;
  counts_.sent_bytes += bytes.size() + unit->size();
}

// Its pages take the next codec that they know. A page without one sees no more pictures.
void Broadcast::give_up(Stream& stream, const std::string& why) {
  const std::string name(kCodecNames[static_cast<size_t>(stream.codec)]);
  if (says_) says_("the encoder " + name + " failed: " + why);
  for (auto receiver = receivers_.begin(); receiver != receivers_.end();) {
    Receiver& one = receiver->second;
    if (one.stream != &stream) {
      ++receiver;
      continue;
    }
    std::erase(one.codecs, stream.codec);
    if (one.codecs.empty()) {
      one.peer->end(one.peer, 4004, ("no picture can be encoded: " + why).c_str());
      receiver = receivers_.erase(receiver);
      continue;
    }
    enter(one, shared_stream(one.codecs[0]));
    ++receiver;
  }
  streams_.remove_if([&](const Stream& other) { return &other == &stream; });
}

} // namespace millrace::viewer
