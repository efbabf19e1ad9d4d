// A file of record lines, read from front to back, and what is to be done where a line is damaged.
#pragma once

#include <string>

#include "handlers/file/open.h"
#include "handlers/record/json_line.h"

namespace millrace::handlers {

// A line longer than this is no line of records: a million boxes take half of it.
inline constexpr size_t kLineBytesMax = size_t{256} << 20;

enum class Damaged { fail, skip };

class RecordFile {
 public:
  // Throws std::runtime_error where the file cannot be opened.
  RecordFile(const std::string& path, Damaged policy);

  // The next line with records, whose tick is set: it is larger than the one before, and where the line says none it is
  // one more. All lines have one layout. False at the end. A line that is otherwise is damaged: skipped, or thrown as
  // std::runtime_error with path, line and column.
  bool next(RecordLine& line);

  uint64_t damaged() const { return damaged_; }
  // The sentence about the first damaged line; "" where there is none.
  const std::string& first_damage() const { return first_damage_; }

 private:
  bool next_text();
  void check(RecordLine& line);

  std::string path_;
  Damaged policy_;
  File file_;
  std::string text_, buffer_;
  size_t used_ = 0;             // bytes of buffer_ that were given
  bool ends_with_break_ = true; // the line in text_; only the last may not
  uint64_t number_ = 0;         // of the line in text_, from 1
  const RecordLayout* layout_ = nullptr;
  uint64_t next_tick_ = 0; // the smallest that may follow
  uint64_t damaged_ = 0;
  std::string first_damage_;
};

} // namespace millrace::handlers
