// Pictures on their way to pages. A thread encodes the newest picture for those that have credit, once for all that
// read the same stream, and only then.
//
//   view.remote ── show() ──▶ newest picture ──▶ encoder of a stream ──▶ pages with credit ──▶ acknowledged
//                                 │ replaced before anybody had credit: counted, never encoded
//
// A page has at most kCreditsMax pictures that it has not acknowledged. More would pile up in buffers on the way, where
// nobody can drop them; fewer would let the way stand idle.
//
// Streams. JPEG has one: each picture stands alone, and its bytes are kept for pages that come to it later. In H.264 a
// picture needs those before it, so all pages of a stream get the same pictures: the stream waits for an
// acknowledgement that is on its way. A page whose acknowledgement takes longer than kLagMs leaves for a stream of its
// own, and comes back at a key frame once it keeps up again.
//
// Stills. A picture that stays is sent once more, as a JPEG of high quality with a colour for each pixel, to the pages
// that decode JPEG and have acknowledged all that they got. So a person can read values off a picture at rest, and a
// picture that moves costs few bytes.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "millrace/abi.h"
#include "plugins/codec/encoder.h"
#include "plugins/viewer/wire.h"

namespace millrace::viewer {

inline constexpr size_t kCreditsMax = 2;
// A page lags once it has no credit and has not acknowledged its oldest picture for so long.
inline constexpr int64_t kLagMs = 50;
// A page that has failed to decode so many pictures in a row gets the next codec that it knows.
inline constexpr uint32_t kFailuresMax = 4;
// A still is JPEG of this quality, or of that of the settings if it is higher.
inline constexpr int kStillQuality = 97;

// A picture that view.remote shows. Its pixels stay as they are until the next one is shown, or forget().
struct Shown {
  codec::Picture picture;
  int64_t media_ns = 0;
};

struct BroadcastCounts {
  uint64_t no_viewer = 0, no_credit = 0; // pictures that were replaced before they were encoded
  uint64_t encoded_jpeg = 0, encoded_h264 = 0, encoded_stills = 0;
  uint64_t sent = 0, sent_bytes = 0;
};

// The clock of PictureHead::seconds, which only rises.
double viewer_seconds();

class Broadcast {
 public:
  // `says` is told of an encoder that fails. Any thread.
  using Says = std::function<void(const std::string& sentence)>;
  ~Broadcast() { end(); }

  // `rests_after`: a picture that has stayed for so long gets its still; 0: there are none.
  void begin(const codec::EncoderSettings& settings, Says says, std::chrono::milliseconds rests_after);
  void change(const codec::EncoderSettings& settings);
  void end();
  // Returns once the picture before is read no more, which is when its encoding ends.
  void show(const Shown& shown);
  // The picture is gone: nothing is sent until the next one.
  void forget();

  // A page, by its number. `codecs`: what it decodes and this program encodes, best first; not empty.
  void add(uint64_t page, mr_peer* peer, const std::vector<Codec>& codecs);
  void remove(uint64_t page);
  // Throws Rubbish for a picture that the page did not get, or has acknowledged already.
  void acknowledge(uint64_t page, const Ack& ack);
  // The handlers know this event of the page from a tick of this media time on.
  void answer(uint64_t page, uint32_t event, int64_t media_ns);
  // The size of the newest picture; 0 before the first.
  std::pair<uint32_t, uint32_t> size() const;
  BroadcastCounts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Unit = std::shared_ptr<const std::vector<uint8_t>>;
  struct Stream {
    Codec codec;
    bool is_shared; // by all pages of its codec
    bool is_of_stills = false;
    std::unique_ptr<codec::Encoder> encoder{}; // null: made with the next picture
    bool asks_key = false;
    uint64_t changes = 0; // those of the settings that it has
    Unit unit{};          // the picture that was encoded last
    uint64_t number = 0;  // that picture's
    bool is_key = false;
  };
  struct Sent {
    uint32_t seq;
    Clock::time_point at;
    bool is_still;
  };
  struct Answered {
    int64_t media_ns;
    uint32_t event;
  };
  struct Receiver {
    mr_peer* peer;
    std::vector<Codec> codecs;
    Stream* stream = nullptr;
    std::deque<Sent> unacknowledged{};
    uint32_t failures = 0; // pictures in a row that it could not decode
    uint32_t last_seq = 0;
    uint64_t has = 0; // the newest picture that it got
    uint64_t has_still_of = 0;
    uint32_t in_step = 0; // pictures of the shared stream in a row with which it kept up, while it has its own
    std::deque<Answered> answered{};
    uint32_t answers = 0;
    void got(const Stream& of, uint64_t number) {
      if (!of.is_of_stills) has = number;
      has_still_of = of.is_of_stills ? number : 0; // a picture that comes again takes the place of its still
    }
    bool may_have_still() const {
      return unacknowledged.empty() && std::find(codecs.begin(), codecs.end(), Codec::jpeg) != codecs.end();
    }
    bool has_credit() const { return unacknowledged.size() < kCreditsMax; }
    bool lags(Clock::time_point now) const { // a still may take longer
      const auto oldest =
          std::find_if(unacknowledged.begin(), unacknowledged.end(), [](const Sent& sent) { return !sent.is_still; });
      return !has_credit() && oldest != unacknowledged.end() && now - oldest->at > std::chrono::milliseconds(kLagMs);
    }
  };
  struct Picture { // the newest one
    Shown shown;
    uint64_t number = 0; // 0: there is none. Two pictures that are alike have one number
    uint64_t memory = 0; // the number of the call of show() that brought it
    bool is_encoded = false;
    Clock::time_point came{};
  };

  void run();
  // All are called under the mutex.
  Stream* next_stream(std::vector<uint64_t>& ready);
  std::vector<uint64_t> pages_without_still() const;
  void wait(std::unique_lock<std::mutex>& lock);
  codec::EncoderSettings settings_of(const Stream& stream) const;
  bool waits_for_a_page(const Stream& stream) const;
  void encode(std::unique_lock<std::mutex>& lock, Stream& stream, const std::vector<uint64_t>& ready);
  void say_once(const std::string& sentence);
  void give_laggards_own_streams(Stream& stream);
  void join_those_in_step(Stream& shared);
  std::vector<uint64_t> pages_of(const Stream& stream) const;
  Stream& shared_stream(Codec codec);
  static Stream new_stills() { return {Codec::jpeg, true, true}; }
  void enter(Receiver& receiver, Stream& stream);
  void drop_unused_streams();
  void send_to(const std::vector<uint64_t>& pages, const Stream& stream, const Picture& picture);
  void send(Receiver& receiver, const PictureHead& head, const Unit& unit);
  void give_up(Stream& stream, const std::string& why);

  mutable std::mutex mutex_; // guards all that follows
  std::condition_variable changed_;
  codec::EncoderSettings settings_;
  uint64_t settings_changes_ = 0;
  Says says_;
  std::chrono::milliseconds rests_after_{0};
  Picture newest_;
  uint64_t shown_ = 0;          // calls of show()
  uint64_t encoded_memory_ = 0; // the one that the thread reads; 0: none
  std::list<Stream> streams_;
  Stream stills_ = new_stills();
  std::map<uint64_t, Receiver> receivers_;
  BroadcastCounts counts_;
  std::set<std::string> said_;
  bool ends_ = false;
  std::thread thread_; // last: it uses all of the above
};

} // namespace millrace::viewer
