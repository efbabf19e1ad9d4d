// Reads a file of record lines from front to back, and skips or refuses damaged lines.
#pragma once

#include <string>

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

  // Reads the next line with records and sets its tick: larger than the one before, and one more than it if the line
  // names none. All lines must have the same layout. False at the end. Any other line is damaged: it is skipped, or
  // thrown as std::runtime_error with path, line and column.
  bool next(RecordLine& line);

  uint64_t damaged() const { return damaged_; }
  // The error message of the first damaged line; "" if there is none.
  const std::string& first_damage() const { return first_damage_; }

 private:
  bool next_text();
  void check(RecordLine& line);

  std::string path_;
  Damaged policy_;
  File file_;
  std::string text_, buffer_;
  size_t used_ = 0;             // bytes of buffer_ that have been used
  bool ends_with_break_ = true; // true if the line in text_ ends with a break; only the last may not
  uint64_t number_ = 0;         // number of the line in text_, from 1
  const RecordLayout* layout_ = nullptr;
  uint64_t next_tick_ = 0; // the smallest tick that may follow
  uint64_t damaged_ = 0;
  std::string first_damage_;
};

} // namespace millrace::handlers
