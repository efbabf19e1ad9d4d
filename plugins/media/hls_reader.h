// Opens files for FFmpeg's HLS demuxer, and records for each segment if it came.
//
// Problem. The demuxer takes a segment that is missing, empty or cut off for nothing to speak of, and goes on with the
// next one. It ends with EOF if a list ends, if the server has gone, and if a live list has no new segment. It does not
// say where the times of a list begin again.
//
// Why this way. The demuxer opens everything by `io_open` of its context: lists, segments, headers and keys. This class
// is that function. It reads the text of each list before the demuxer does, so it knows the number and the duration of
// the segment that is opened, and it counts the bytes that a segment gives. The demuxer remains FFmpeg's, with all that
// it knows of variants, ranges and ciphers (decision 0091).
//
// A server that cannot be reached is asked again, as often as `retry_s` allows. One that answers "404" is not.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugins/media/av.h"
#include "plugins/media/hls_list.h"
#include "plugins/media/interrupt.h"
#include "plugins/media/log.h"

namespace millrace::media {

// A segment whose pictures, or some of them, will not come.
struct MissingSegment {
  std::string words; // its place, the reason and what is missing
  int64_t duration_ns = 0;
};

struct HlsSettings {
  double timeout_s = 0; // how long a server may be silent; 0: for ever, for local files
  double retry_s = 0;   // how long a server that has gone is asked again; 0: not at all
  bool any_names = false;
  std::function<void(const std::string& sentence)> say = {}; // for what a person should know at once
};

// Used by the thread that calls FFmpeg. The context, the Interrupt and the Log must outlive it.
class HlsReader {
 public:
  // `io`: the list's own file, opened at its beginning, which is closed. `address`: its name.
  HlsReader(const std::string& address, AVIOContext* io, const HlsSettings& settings, Interrupt& interrupt, Log& log);
  ~HlsReader();
  HlsReader(const HlsReader&) = delete;
  HlsReader& operator=(const HlsReader&) = delete;

  // Makes this the way by which a context opens its files, until attach() is called for another one. The demuxer needs
  // these options.
  void attach(AVFormatContext& format, AVDictionary** options);
  // From now on a server that has gone is waited for.
  void is_open() { is_open_ = true; }
  // A call of FFmpeg begins, which may wait for a server, and in a live list for the next segment.
  void begin_wait();

  // True until the list has said that it will have no more segments.
  bool is_live() const;
  // The sum of what the list says of its segments; 0 for a live list.
  int64_t duration_ns(const AVStream& stream) const;
  // False if its times begin again somewhere, so that FFmpeg finds no place by its time.
  bool can_seek() const;
  // The reader was sent to another place.
  void moved();
  // The demuxer has come to the end of what it was shown of the list, and the list goes on: it has to be opened again.
  //
  // FFmpeg's demuxer of fragmented MP4 sorts fragments by their times and reads one header. So such a list is shown to
  // it up to the place where times begin again.
  bool next_section(const AVStream& stream);
  // A packet of this stream has come: its times, in this unit, are made to follow on those before.
  void settle(AVPacket& packet, const AVStream& stream, AVRational unit);
  // The live list is so far ahead of the stream that its pictures should not be waited for.
  bool is_far_ahead(const AVStream& stream) const;

  // The stream has ended: what the list has and was not asked for is missing.
  void record_end(const AVStream& stream);
  // The segments that were found missing since the last call.
  std::vector<MissingSegment> take_missing(const AVStream& stream);
  int64_t segment_count(const AVStream& stream) const;
  // The reason why nothing more will come; "" if there is none.
  const std::string& failure() const { return failure_; }
  void fail(const std::string& why) { failure_ = why; }
  // The reason why FFmpeg did not open it; `words` if it is not known.
  std::string words_for_refusal(const std::string& words) const;
  // True if the list counts anew, so that it has to be opened again.
  bool begins_again() const { return begins_again_; }
  // How often a server had to be asked again until it answered; since the last call.
  int take_returns() { return std::exchange(returns_, 0); }

 private:
  using Clock = std::chrono::steady_clock;
  // A place in the demuxer's bytes from which on times begin again.
  struct Section {
    int64_t begin = 0;
    int64_t gap_ns = 0; // the segments before it that are missing
  };
  struct List {
    std::string address, location; // as it was asked for, and after redirections
    HlsList said;
    int64_t opened = -1;                         // the number of the last segment that was opened; -1: none
    int64_t begin = 0, count = 0;                // the demuxer's bytes before that segment, and those of it
    int64_t header_count = 0;                    // bytes of a header that was read since
    std::set<int64_t> gone;                      // the numbers of missing segments
    std::vector<MissingSegment> missing;         // those that were not taken
    std::deque<Section> sections;                // no packet has reached them yet
    bool is_new_section = false;                 // its first packet has not come
    int64_t gap_ns = 0;                          // before it
    int64_t shift = 0, reached = AV_NOPTS_VALUE; // in the stream's time base
    Clock::time_point grown;                     // when it last had a new segment
    bool is_told = false;                        // that it has none
    bool was_live = false;                       // at some time
    int64_t shown = -1;                          // the demuxer's first segment; -1: the list's first
  };
  struct File;

  static int open(AVFormatContext* format, AVIOContext** io, const char* url, int flags, AVDictionary** options);
  static int close(AVFormatContext* format, AVIOContext* io);
  static int read_file(void* file, uint8_t* buffer, int size);
  static int64_t seek_file(void* file, int64_t offset, int whence);

  int open(AVIOContext** io, const std::string& url, AVDictionary* options);
  int open_list(AVIOContext** io, const std::string& url, AVDictionary* options);
  int open_file(AVIOContext** io, std::unique_ptr<File> file);
  int open_segment(AVIOContext** io, List& list, int64_t number, const std::string& url, AVDictionary* options);
  int open_bytes(AVIOContext** io, const std::string& url, AVDictionary* options, const std::string& name);
  int open_once(AVIOContext** io, const std::string& url, AVDictionary* options);
  int read(File& file, uint8_t* buffer, int size);
  bool resume(File& file, int status);

  bool waits_again(int status, const std::string& why, const std::string& name);
  void answered();
  int load(List& list, AVIOContext* from, std::string& text);
  void free_first();
  AVIOContext* view_of(const List& list, const std::string& text) const;
  int look_at(List& list, HlsList said);
  void record_opened(List& list, int64_t number);
  void lose(List& list, int64_t number, const std::string& why, const std::string& what);
  std::string place_of(const List& list, int64_t number) const;
  const ListSegment* segment(const List& list, int64_t number) const;
  int64_t number_of(const List& list, const std::string& url, int64_t offset) const;
  const List* list_of(const AVStream& stream) const;
  List* list_of(const AVStream& stream);

  AVFormatContext* format_ = nullptr;
  const HlsSettings settings_;
  Interrupt& interrupt_;
  Log& log_;
  decltype(AVFormatContext::io_open) open_ = nullptr;
  decltype(AVFormatContext::io_close2) close_ = nullptr;
  std::string whitelist_, cookies_;
  std::string master_, root_;             // the text of the first list, and its address
  AVIOContext* first_ = nullptr;          // the demuxer's view of the first list
  std::deque<List> lists_;                // in FFmpeg's order; without the list of lists
  std::set<std::string> keys_;            // that were read
  std::set<AVIOContext*> bodies_, files_; // contexts that this object made: texts of lists, and all others
  std::string failure_;
  bool is_open_ = false, begins_again_ = false, is_master_ = false;
  std::optional<Clock::time_point> away_since_; // the server does not answer since then
  Clock::duration pause_{};
  int returns_ = 0;
};

} // namespace millrace::media
