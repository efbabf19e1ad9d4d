// One stream of a file, a pipe or an address, opened by FFmpeg and cut into packets: what video.file plays, and the
// sound that video.writer copies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plugins/media/av.h"
#include "plugins/media/byte_stream.h"
#include "plugins/media/interrupt.h"
#include "plugins/media/log.h"

namespace millrace::media {

enum class InputKind { file, pipe, address };

// By the path alone, and what is there: "-" and FIFOs are pipes, "name://…" an address. Throws std::runtime_error in
// words where nothing is there or it may not be read.
InputKind input_kind_of(const std::string& path);

struct InputSettings {
  std::string path;
  std::string format;                     // FFmpeg's name of a demuxer; "": by the content
  int stream = -1;                        // as FFmpeg counts; -1: the best of `media`
  double timeout_s = 5;                   // addresses: what a call may wait
  AVMediaType media = AVMEDIA_TYPE_VIDEO; // or sound
};

// One opening of one input. One thread, but for the Interrupt, which must outlive it.
class Input {
 public:
  // Opens, finds the stream and reads as much as its format takes to be known, bounded in bytes and time. Throws
  // std::runtime_error: why not, without the path.
  Input(const InputSettings& settings, Interrupt& interrupt, Log& log);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // The next packet of the stream: 0, AVERROR_EOF, or another error, of which reading may go on (damage) or not.
  int read(AVPacket* packet);
  // To the last key picture at or before this time of the stream, in nanoseconds of its own base; without an index only
  // near it. False where the input cannot do that: it is at its beginning then, opened anew, which throws as the
  // constructor does. A pipe and a live stream stay where they are.
  bool seek(int64_t ns);
  bool has_index() const;

  InputKind kind() const { return kind_; }
  const AVStream& stream() const { return *stream_; }
  const AVFormatContext& format() const { return *format_; }
  // Cannot wait: what nobody takes is lost.
  bool is_live() const;
  // Nobody says there that a stream of unknown length is over: an end is a lost connection.
  bool ends_are_losses() const;
  // Pictures a second; 0/1: not said.
  AVRational rate() const;
  // How many pictures there are; 0: not said. `is_exact`: counted by the container, not made from its duration.
  int64_t picture_count(bool& is_exact) const;
  // Of the stream, from its first picture on; 0: not said.
  int64_t duration_ns() const;
  int64_t start_ns() const; // of the stream's own base; INT64_MIN: not said
  int64_t nanoseconds(int64_t time) const;
  // MR_TURN_*: what makes the pictures upright. `is_near`: the file asks for an angle between quarters.
  uint32_t turn(bool& is_near) const;
  // "sound (aac), subtitles"; "": the stream is alone.
  std::string others() const;

 private:
  void open_stream();
  void open();
  void find_stream();
  void check_pictures() const;

  const InputSettings settings_;
  const InputKind kind_;
  Interrupt& interrupt_;
  Log& log_;
  std::unique_ptr<ByteStream> bytes_; // of a pipe
  AVFormatContext* format_ = nullptr;
  const AVStream* stream_ = nullptr;
};

} // namespace millrace::media
