// Records pictures into a film: combines encoder, files and sound.
//
//   picture → its time in the film → frame → encoder → packets → the file of the segment, with the sound up to there
//
// A recording begins with its first picture. If neither that picture nor a `rate` tells how long a picture lasts, the
// recording waits for the second picture.
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
#include "plugins/media/segment_ends.h"
#include "plugins/media/segments.h"
#include "plugins/media/sound.h"

namespace millrace::media {

struct RecordingSettings {
  std::string path;
  Container container;
  EncoderWish wish;
  EncoderChoice choice;
  AVRational rate = {0, 1}; // the constant rate; 0: the pictures keep their own times
  std::string sound;
  SegmentLength segment;
  std::string list;
  std::string failed_part; // the part file of the handler's last failed recording: it is not taken for a crash's
  bool may_replace = true, fragments = true;
  double timeout_s = 5; // for an address of the film or the sound: how long a call may wait
};

// One recording, used by one thread. Any thread may set `interrupted`.
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

  // Makes the first file and the list. `expected`: the encoder's parameters for the expected pictures, null if not
  // known. Refuses a container that cannot hold them. Throws.
  void open(const AVCodecParameters* expected);
  // Adds a picture. Times are in nanoseconds and rise; a duration of 0 means not known. Throws std::runtime_error or
  // std::invalid_argument. A picture unlike those before is refused and left out. After any other failure all further
  // pictures are refused in the same words.
  void add(const ImageView& picture, int64_t media_time_ns, int64_t duration_ns);
  // Ends the film and gives it its name. A film without pictures leaves no file. Throws.
  void finish();
  Counts counts() const;
  // The path of the written part if the recording has failed; else "".
  std::string failed_part() const { return failure_.empty() || !muxer_ ? "" : muxer_->part_path(); }

 private:
  struct Waiting {         // a picture in the encoder
    int64_t codec_pts;     // in the encoder's time base
    int64_t pts, duration; // in units
    bool begins_segment;
    SegmentEnds::End end_before; // the end that a segment would have before this picture
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
  void begin_encoder_again();
  void drain_encoder();
  void receive();
  void take(AVPacket& packet);
  void write_held(std::optional<int64_t> file_end);
  void write_sound_until(int64_t time_ns);
  void next_segment(int64_t pts, SegmentEnds::End end_before);
  bool begins_segment(int64_t pts, SegmentEnds::End end_before);
  bool is_due(int64_t pts) const;
  bool is_nearly_full() const;
  void list_segment(const std::string& path, int64_t end);
  Muxer::Options muxer_options();
  void open_file();
  void begin_file();
  int64_t to_ns(int64_t units) const;
  std::string file_path() const;
  void log_kept(const std::string& part_path, const std::string& kept_path) const;
  void log_once(bool& said, const std::string& sentence);

  const RecordingSettings settings_;
  const std::atomic<bool>& interrupted_;
  Log& log_;
  const Say say_;

  std::unique_ptr<Muxer> muxer_, first_muxer_; // the first file's muxer keeps its lock
  Codec codec_;
  std::function<Codec()> open_codec_; // opens the encoder once more, with the same settings
  std::unique_ptr<FrameMaker> frames_;
  Frame waiting_first_; // the first picture while its duration is unknown
  Frame last_;          // for repeating
  Sound sound_;
  SegmentList list_;
  Packet packet_, held_, sound_packet_;
  bool has_held_ = false, asked_key_ = false, wants_segment_ = false, is_last_shown_ = false;
  std::string failure_; // words of the first failure
  std::optional<EvenRate> even_;
  std::optional<FreeTimes> free_;
  std::optional<FreeTimes> codec_times_; // if the encoder's time base is not the file's
  std::optional<Meaning> meaning_;       // meaning of the incoming pictures
  Meaning encoded_meaning_;              // meaning of the written pictures
  Pixel pixel_ = Pixel::none;
  AVPixelFormat format_ = AV_PIX_FMT_NONE;
  int width_ = 0, height_ = 0;
  AVRational rate_ = {25, 1}, time_base_ = {1, 25};
  int64_t first_time_ns_ = 0, last_time_ns_ = 0, last_duration_ns_ = 0;
  int64_t end_ = 0; // end of the last encoded picture, in units
  bool said_meaning_ = false, said_lost_ = false, said_turn_ = false;
  std::deque<Waiting> inside_;
  int64_t segment_begin_ = 0;     // in units
  int64_t segment_reached_ = 0;   // the last picture of this file so far
  int64_t segment_first_dts_ = 0; // first decoding time in this file, as written
  int64_t segment_packets_ = 0;   // written to this file
  uint64_t usual_bytes_ = 0;      // usual size of a packet; of packets that are no key frames if there are any
  bool has_usual_ = false;
  uint64_t segment_bytes_ = 0; // bytes of its packets; the muxer may hold some back from the file
  uint64_t segment_index_ = 0, segments_due_ = 0;
  std::optional<SegmentEnds> segment_ends_;
  int64_t last_pts_ = 0; // the last picture that was given to the encoder
  int late_ = 0;         // pictures in a row that were due to begin a segment and came late
  Counts counts_;
};

} // namespace millrace::media
