// Looks into the first packets of a live stream for what its description does not say, and keeps them to be played.
//
// FFmpeg's own search (avformat_find_stream_info) reads twenty pictures, which takes a slow camera many seconds, and a
// search that is interrupted leaves RTSP in the middle of a packet. This one decodes what comes, ends at the first
// packet that tells enough, and never has to be interrupted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "plugins/media/av.h"
#include "plugins/media/log.h"

namespace millrace::media {

// Used by one thread. The stream and the log outlive it.
class FirstPackets {
 public:
  FirstPackets(AVStream& stream, Log& log);

  // False if there is no decoder: take() would learn nothing.
  bool can_decode() const { return codec_ != nullptr; }
  // Takes the stream's next packet. It is kept unless it comes before everything that can be decoded. Writes the
  // pictures' format to the stream once it is known.
  void take(Packet packet);
  bool know_pictures() const { return knows_pictures_; }
  // True if more packets would not make the rate more certain, or would take too much memory.
  bool are_enough() const;
  // No more are taken. A first packet without a time gets one.
  void end();

  // Pictures a second: measured, else what the pictures say of themselves; 0/1: not known.
  AVRational rate() const;
  // The time of the first kept packet in the stream's units; AV_NOPTS_VALUE: not known.
  int64_t first_time() const { return first_time_; }
  // The time between two packets, in nanoseconds; 0: not known.
  int64_t step_ns() const;

  bool is_empty() const { return kept_.empty(); }
  Packet next();

 private:
  AVStream& stream_;
  Codec codec_; // null once the pictures are known
  Frame frame_;
  std::deque<Packet> kept_;
  std::vector<int64_t> times_; // the kept packets have them, in the order of decoding
  size_t bytes_ = 0;
  bool knows_pictures_ = false, begins_with_first_ = false, has_taken_ = false;
  AVRational coded_rate_ = {0, 1};
  int64_t first_time_ = AV_NOPTS_VALUE;
};

} // namespace millrace::media
