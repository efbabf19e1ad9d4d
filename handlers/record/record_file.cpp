// Reads a file of record lines; see record_file.h.
#include "handlers/record/record_file.h"

#include <cerrno>
#include <cstring>

#include "handlers/file/named_tick.h"
#include "handlers/record/json_reader.h"

namespace millrace::handlers {

namespace {
constexpr size_t kReadBytes = 64 << 10; // so large that the system call costs little compared with parsing
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF"; // some editors begin a file with it
} // namespace

RecordFile::RecordFile(const std::string& path, Damaged policy)
    : path_(path), policy_(policy), file_(open_to_read(path)) {}

RecordFile::RecordFile(const std::string& path, Damaged policy, InputStream& stream, uint64_t count_max)
    : path_(path), policy_(policy), stream_(&stream), count_max_(count_max) {}

bool RecordFile::next(RecordLine& line) {
  while (next_text()) {
    if (number_ == 1 && text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
    if (text_.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      read_record_line(text_, known_layouts(), line);
      check(line);
      return true;
    } catch (const JsonError& error) {
      const std::string cut = ends_with_break_ ? "" : "; the last line has no end, as if the file were cut off";
      const std::runtime_error refusal =
          cannot_read(path_, "line " + std::to_string(number_) + ", column " + std::to_string(error.column()) + ": " +
                                 error.what() + cut);
      if (policy_ == Damaged::fail) throw refusal;
      if (damaged_++ == 0) first_damage_ = refusal.what();
    }
  }
  return false;
}

void RecordFile::check(RecordLine& line) {
  if (line.count > count_max_)
    throw JsonError(
        1, std::to_string(line.count) + " records are more than the " + std::to_string(count_max_) + " of `count_max`");
  if (layout_ && line.layout != layout_)
    throw JsonError(1, "the records are '" + std::string(line.layout->schema) + "', those before were '" +
                           std::string(layout_->schema) + "'");
  if (line.tick.value_or(next_tick_) < next_tick_)
    throw JsonError(1, "tick " + std::to_string(*line.tick) + " comes after tick " + std::to_string(next_tick_ - 1));
  if (line.tick.value_or(0) > kNamedTickMax)
    throw JsonError(1, "tick " + std::to_string(*line.tick) + " is beyond " + std::to_string(kNamedTickMax));
  layout_ = line.layout;
  line.tick = line.tick.value_or(next_tick_);
  next_tick_ = *line.tick + 1;
}

// Reads the next bytes into buffer_. False at the end, and if it was interrupted.
bool RecordFile::refill() {
  buffer_.resize(kReadBytes);
  used_ = 0;
  if (stream_) {
    size_t count = 0;
    const InputStream::Answer answer = stream_->read(buffer_.data(), kReadBytes, count);
    buffer_.resize(count);
    interrupted_ = answer == InputStream::Answer::interrupted;
    return answer == InputStream::Answer::bytes;
  }
  buffer_.resize(std::fread(buffer_.data(), 1, kReadBytes, file_.get()));
  if (buffer_.empty() && std::ferror(file_.get())) throw cannot_read(path_, std::strerror(errno));
  return !buffer_.empty();
}

// Reads the next line, without its break, into text_. False at the end of the file, and if it was interrupted.
bool RecordFile::next_text() {
  if (!interrupted_) text_.clear();
  interrupted_ = false;
  for (;;) {
    const size_t at = buffer_.find('\n', used_);
    text_.append(buffer_, used_, at == std::string::npos ? at : at - used_);
    if (text_.size() > kLineBytesMax)
      throw cannot_read(path_, "line " + std::to_string(number_ + 1) + " is longer than " +
                                   std::to_string(kLineBytesMax >> 20) + " MiB");
    if (at != std::string::npos) {
      used_ = at + 1;
      ++number_;
      ends_with_break_ = true;
      return true;
    }
    if (refill()) continue;
    if (interrupted_ || text_.empty()) return false;
    ++number_;
    ends_with_break_ = false;
    return true;
  }
}

} // namespace millrace::handlers
