// Pictures into a film: encoder, files and sound put together.
//
//   picture → its time in the film → frame → encoder → packets → the file of the segment, with the sound up to there
//
// A recording begins with its first picture. Where neither that picture nor a `rate` says how long a picture lasts, it
// waits for the second.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "millrace/handler.h"
#include "plugins/media/av.h"
#include "plugins/media/encoders.h"
#include "plugins/media/frames.h"
#include "plugins/media/log.h"
#include "plugins/media/muxer.h"
#include "plugins/media/picture_times.h"
#include "plugins/media/segments.h"
#include "plugins/media/sound.h"

namespace millrace::media {

struct RecordingSettings {
  std::string path;
  Container container;
  EncoderWish wish;
  EncoderChoice choice;
  AVRational rate = {0, 1}; // constant; 0: the pictures' own times
  std::string sound;
  SegmentLength segment;
  std::string list;
  std::string failed_part; // of a recording of the same handler that failed before: what it left is no crash's
  bool may_replace = true, fragments = true;
  double timeout_s = 5; // of an address, for the film or its sound: what a call may wait
};

// One life, used by one thread; `interrupted` may be set by any.
class Recording {
 public:
  struct Counts {
    int64_t repeated = 0, dropped = 0, off_grid = 0, nudged = 0, converted = 0;
  };

  using Say = std::function<void(const std::string& sentence)>;

  Recording(const RecordingSettings& settings, const std::atomic<bool>& interrupted, Log& log, Say say);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Makes the first file and the list. `expected`: of the encoder for the pictures that will come, where that is known;
  // a container that cannot hold them is refused now. Throws.
  void open(const AVCodecParameters* expected);
  // Times in nanoseconds; they rise. A duration of 0 is not known. Throws std::runtime_error or std::invalid_argument.
  // A picture that is unlike those before is left out; after any other failure no more pictures are taken, and each is
  // refused in the same words.
  void add(const ImageView& picture, int64_t media_time_ns, int64_t duration_ns);
  // Ends the film and gives it its name. Without a picture nothing is left behind. Throws.
  void finish();
  Counts counts() const;
  // Of a recording that has failed: where what was written is; else "".
  std::string failed_part() const { return failure_.empty() || !muxer_ ? "" : muxer_->part_path(); }

 private:
  struct Waiting {         // a picture in the encoder
    int64_t codec_pts;     // in the encoder's time base
    int64_t pts, duration; // in units
    bool begins_segment;
  };

  void put(const ImageView& picture, int64_t media_time_ns, int64_t duration_ns);
  void end();
  void prepare(const ImageView& picture);
  void check_alike(const ImageView& picture);
  void begin(int64_t period_ns);
  void add_frame(AVFrame& frame, int64_t time_ns, int64_t duration_ns);
  void add_evenly(AVFrame& frame, int64_t time_ns, int64_t duration_ns);
  void encode(AVFrame& frame, int64_t codec_pts, int64_t pts, int64_t duration);
  void repeat_last(int64_t first, int64_t count);
  void receive();
  void take(AVPacket& packet);
  void write_held(std::optional<int64_t> file_end);
  void write_sound_until(int64_t time_ns);
  void next_segment(int64_t pts);
  bool is_due(int64_t pts);
  bool is_nearly_full();
  Muxer::Options muxer_options();
  void open_file();
  void begin_file();
  int64_t to_ns(int64_t units) const;
  std::string file_path() const;
  void say_kept(const std::string& part_path, const std::string& kept_path) const;
  void say_once(bool& said, const std::string& sentence);

  const RecordingSettings settings_;
  const std::atomic<bool>& interrupted_;
  Log& log_;
  const Say say_;

  std::unique_ptr<Muxer> muxer_, first_muxer_; // the first file's goes on holding its lock
  Codec codec_;
  std::unique_ptr<FrameMaker> frames_;
  Frame waiting_first_; // of unknown duration
  Frame last_;          // for repeating
  Sound sound_;
  SegmentList list_;
  Packet packet_, held_, sound_packet_;
  bool has_held_ = false, asked_key_ = false, wants_segment_ = false, is_last_shown_ = false;
  std::string failure_; // the first one's words
  std::optional<EvenRate> even_;
  std::optional<FreeTimes> free_;
  std::optional<FreeTimes> codec_times_; // where the encoder's time base is not the file's
  std::optional<Meaning> meaning_;       // of the pictures as they come
  Meaning encoded_meaning_;              // as they are written
  Pixel pixel_ = Pixel::none;
  AVPixelFormat format_ = AV_PIX_FMT_NONE;
  int width_ = 0, height_ = 0;
  AVRational rate_ = {25, 1}, time_base_ = {1, 25};
  int64_t first_time_ns_ = 0, last_time_ns_ = 0, last_duration_ns_ = 0;
  int64_t end_ = 0; // of what was encoded, in units
  bool said_meaning_ = false;
  std::deque<Waiting> inside_;
  int64_t segment_begin_ = 0;     // in units
  int64_t segment_first_dts_ = 0; // of the packets in this file, as written
  bool segment_has_packets_ = false;
  uint64_t usual_bytes_ = 0; // of a packet; of one that is no key frame where there are others
  bool has_usual_ = false;
  uint64_t segment_bytes_ = 0; // of its packets: what the muxer keeps back is not in the file yet
  uint64_t segment_index_ = 0, segments_due_ = 0;
  Counts counts_;
};

} // namespace millrace::media
