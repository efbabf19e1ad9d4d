// Reads a file or a stream of record lines from front to back, and skips or refuses damaged lines.
#pragma once

#include <cstdint>
#include <string>

#include "handlers/file/input_stream.h"
#include "handlers/file/open.h"
#include "handlers/record/json_line.h"

namespace millrace::handlers {

// A longer line cannot be a line of records: a million boxes take half of this.
inline constexpr size_t kLineBytesMax = size_t{256} << 20;

enum class Damaged { fail, skip };

class RecordFile {
 public:
  // Throws std::runtime_error if the file cannot be opened.
  RecordFile(const std::string& path, Damaged policy);
  // The lines of a stream that is open; `path` is what messages call it. A line of more than `count_max` records, or
  // than kLineBytesMax, is damaged.
  RecordFile(const std::string& path, Damaged policy, InputStream& stream, uint64_t count_max);

  // Reads the next line with records and sets its tick: larger than the one before, and one more than it if the line
  // names none. All lines must have the same layout. False at the end. Any other line is damaged: it is skipped, or
  // thrown as std::runtime_error with path, line and column. An interrupt of the stream also gives false: the next call
  // goes on within the same line.
  bool next(RecordLine& line);
  bool was_interrupted() const { return interrupted_; }

  uint64_t damaged() const { return damaged_; }
  // The error message of the first damaged line; "" if there is none.
  const std::string& first_damage() const { return first_damage_; }

 private:
  bool next_text();
  bool refill();
  void check(RecordLine& line);

  std::string path_;
  Damaged policy_;
  File file_;                     // null: a stream
  InputStream* stream_ = nullptr; // null: a file
  uint64_t count_max_ = UINT64_MAX;
  std::string text_, buffer_;
  size_t used_ = 0;             // bytes of buffer_ that have been used
  bool interrupted_ = false;    // text_ is the beginning of a line
  bool ends_with_break_ = true; // true if the line in text_ ends with a break; only the last may not
  uint64_t number_ = 0;         // number of the line in text_, from 1
  const RecordLayout* layout_ = nullptr;
  uint64_t next_tick_ = 0; // the smallest tick that may follow
  uint64_t damaged_ = 0;
  std::string first_damage_;
};

} // namespace millrace::handlers
