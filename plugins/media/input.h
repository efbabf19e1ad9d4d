// Reads the packets of one stream of a file, a pipe or an address: the video that video.file plays, or the sound that
// video.writer copies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/byte_stream.h"
#include "plugins/media/catch_up.h"
#include "plugins/media/first_packets.h"
#include "plugins/media/hls_reader.h"
#include "plugins/media/interrupt.h"
#include "plugins/media/log.h"
#include "plugins/media/pace.h"
#include "plugins/media/spooled_file.h"

namespace millrace::media {

enum class InputKind { file, pipe, address };

// Decides by the path and the file that it names: "-" and FIFOs are pipes, "name://…" is an address. Throws
// std::runtime_error in words if there is no such file or it may not be read.
InputKind input_kind_of(const std::string& path);

// The sentence about a live stream that gives packets and no picture yet.
std::string no_key_frame_words(const std::string& path);

struct InputSettings {
  std::string path;
  std::string format;   // FFmpeg's name of a demuxer; "": by the content
  int stream = -1;      // FFmpeg's number of the stream; -1: the best of `media`
  double timeout_s = 5; // for addresses: how long they may be silent; a live one is given more, see Pace
  AVMediaType media = AVMEDIA_TYPE_VIDEO; // or sound
  bool reconnects = true;                 // FFmpeg may ask an HTTP server again in the middle of a file
  std::string transport = "tcp";          // RTSP takes this, or "udp"
  std::function<void(const std::string& sentence)> say = {}; // for what a person should know while it is opened
  double retry_s = 0;     // for a list: how long a server that has gone is asked again
  bool any_names = false; // for a list: its segments and keys may have any names and paths
};

// One opening of one input. Used by one thread, except the Interrupt, which must outlive it.
class Input {
 public:
  // Opens the input, finds the stream, and reads as much as is needed to know its format, bounded in bytes and time.
  // Throws std::runtime_error with the reason, without the path.
  Input(const InputSettings& settings, Interrupt& interrupt, Log& log);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Reads the next packet of the stream. Returns 0, AVERROR_EOF, or another error; after some of those (damage) reading
  // may go on.
  int read(AVPacket* packet);
  // Words for a read() that failed, or gave AVERROR_EOF, and was followed by no other call.
  std::string loss_words(int status) const;
  // Goes to the last key picture at or before this time of the stream, in nanoseconds of its own base; without an index
  // only near it. False if the input cannot do that: then it is opened anew and stands at its beginning, which throws
  // as the constructor does. A pipe and a live stream stay at their position.
  bool seek(int64_t ns);
  bool has_index() const;

  InputKind kind() const { return kind_; }
  const AVStream& stream() const { return *stream_; }
  const AVFormatContext& format() const { return *format_; }
  // True if the source does not wait: pictures that are not read in time are lost.
  bool is_live() const;
  // The list that names the input's files; null: it is none.
  HlsReader* list() const { return list_.get(); }
  // True if the server has said how long the file is, and it ended before that.
  bool is_cut_short() const;
  // True for protocols that do not signal the end of a stream of unknown length: there an end is a lost connection.
  bool ends_are_losses() const;
  // Pictures a second; 0/1: not known.
  AVRational rate() const;
  // The number of pictures; 0: not known. `is_exact`: the container's own count, not computed from its duration.
  int64_t picture_count(bool& is_exact) const;
  // The stream's duration, from its first picture on; 0: not known.
  int64_t duration_ns() const;
  // The time of the stream, on its own base, up to which a picture may come after any pause; INT64_MIN: a long pause
  // means that the stream was joined. A container that can be joined at any byte, and a live stream, say no such time.
  int64_t pauses_until_ns() const;
  int64_t start_ns() const; // on the stream's own base; INT64_MIN: not known
  int64_t nanoseconds(int64_t time) const;
  // The turn (MR_TURN_*) that makes the pictures upright. `is_near`: the file asks for an angle between quarter turns.
  uint32_t turn(bool& is_near) const;
  // The other streams, as in "sound (aac), subtitles"; "" if there are none.
  std::string others() const;

 private:
  void open_stream();
  void open();
  int open_bytes(const std::string& url, AVDictionary** options);
  void allocate();
  bool open_section();
  void add_header(AVPacket& packet);
  void close();
  int search_streams();
  void find_stream();
  bool knows_pictures() const;
  bool says_its_streams() const;
  bool reads_one_address() const;
  void read_first_packets();
  double patience_s() const;
  int next_packet(AVPacket* packet);
  int64_t usual_step_ns() const;
  void check_pictures() const;
  bool has_passed_its_pictures() const;
  void spool();

  const InputSettings settings_;
  const InputKind kind_;
  Interrupt& interrupt_;
  Log& log_;
  std::unique_ptr<ByteStream> bytes_;    // for a pipe
  std::unique_ptr<SpooledFile> spooled_; // a film of a server that cannot jump
  AVIOContext* io_ = nullptr;            // a file that was opened before its kind was known
  std::unique_ptr<HlsReader> list_;
  AVFormatContext* format_ = nullptr;
  AVStream* stream_ = nullptr;
  std::unique_ptr<FirstPackets> first_; // live streams have them
  CatchUp catch_up_;
  Pace pace_;
  bool has_length_ = false;  // a server has said how many bytes there are
  bool is_narrow_ = false;   // opened again after a search that took too long
  AVRational unit_ = {0, 1}; // the unit of packets' times: that of the first section of a list; 0: not known yet
  bool has_new_header_ = false;
};

} // namespace millrace::media
