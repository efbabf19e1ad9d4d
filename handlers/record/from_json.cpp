// record.from_json: gives the records that a file of JSON lines holds.
#include <millrace/handler.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "handlers/record/any_records.h"
#include "handlers/record/record_file.h"

namespace millrace::handlers {
namespace {

constexpr const char* kFromJsonManual = &R"(
Gives the records that record.to_json wrote, each at the tick that its line names. Ticks that no
line names are empty, and the stream ends with the last line. A line without "tick" belongs to the
tick after the line before. "time_ns", if it is there, is the records' time. It has no rate of its
own, so that records of a video stay beside its pictures.

The first line's "schema" is the type of the records. Fields that a line leaves out keep their
default (of a box, only score, label and id may be missing; of a point all but x and y; of a mark
all but kind and at), and unknown keys are skipped. A line is damaged if it is no JSON, is of
another type than the first or goes back in time. With `damaged: fail` such a line is refused,
with line and column, before anything runs, because the file is read once to know how many records
a tick may have. With `skip` it is left out and counted.

`-` is standard input, and a path may be a FIFO (`mkfifo`) or a device. Such a stream is read once,
line by line. Its first line is waited for before anything runs, because it says the type; a line of
more than `count_max` records is damaged, and the number of ticks is known only at the end.

    record.from_json path=examples/data/boxes.jsonl ! null.sink
)"[1];

class FromJson final : public Handler {
 public:
  void probe(Facts& facts) override {
    if (is_stream(*path_)) {
      await_first_line();
      return facts.waits();
    }
    RecordFile file(*path_, policy());
    RecordLine line;
    layout_ = nullptr;
    count_max_ = 1;
    uint64_t ticks = 0;
    while (file.next(line)) {
      layout_ = line.layout;
      count_max_ = std::max(count_max_, line.count);
      ticks = *line.tick + 1;
    }
    if (!layout_)
      throw file.damaged() ? std::runtime_error(file.first_damage()) : cannot_read(*path_, "there is no line in it");
    facts.tick_count(static_cast<int64_t>(ticks));
  }

  void configure(const Formats& formats) override {
    if (!layout_) return; // not probed: nothing is known yet
    Format& out = formats.out(out_);
    out.schema = schema_of(layout_->schema);
    out.layout = layout_->layout;
    out.record_size = layout_->record_size;
    out.record_count_max = count_max_;
  }

  void start() override {
    given_ = 0;
    told_ = false;
    if (is_stream(*path_)) return await_first_line();
    file_.emplace(*path_, policy());
    has_line_ = false;
  }
  // A stream cannot go back, so it continues with the next line.
  void reset() override {
    if (!stream_.is_open()) start();
  }
  void stop() override {
    file_.reset();
    stream_.close();
    has_line_ = false;
  }
  void interrupt() override { stream_.interrupt(); }

  void process(Tick& tick, Cpu&) {
    if (!has_line_) has_line_ = file_->next(line_);
    if (!has_line_) {
      if (!file_->was_interrupted()) log_damage();
      return tick.end();
    }
    if (*line_.tick > given_++) return;
    has_line_ = false;
    give(tick);
  }

 private:
  Damaged policy() const { return *damaged_ == "skip" ? Damaged::skip : Damaged::fail; }

  // The first line of a stream is read once, by probe() or else by start(), and given later.
  void await_first_line() {
    if (stream_.is_open()) return;
    stream_.open(*path_);
    file_.emplace(*path_, policy(), stream_, static_cast<uint64_t>(*count_max_param_));
    has_line_ = file_->next(line_);
    if (has_line_) {
      layout_ = line_.layout;
      count_max_ = static_cast<uint64_t>(*count_max_param_);
      return;
    }
    stream_.close();
    if (file_->was_interrupted()) throw cannot_read(*path_, "interrupted while it waited for the first line");
    throw file_->damaged() ? std::runtime_error(file_->first_damage()) : cannot_read(*path_, "there is no line in it");
  }

  void give(Tick& tick) const {
    if (line_.layout != layout_ || line_.count > count_max_) throw cannot_read(*path_, "it changed while it was read");
    if (tick.raw().host->allocate(&tick.raw(), out_.first(), line_.bytes.size()) != MR_OK) throw std::bad_alloc();
    const mr_output& output = out_.raw(tick);
    mr_header& header = output.value->header;
    header = {};
    header.schema = schema_of(layout_->schema);
    header.layout = layout_->layout;
    header.kind = MR_KIND_RECORDS;
    header.pts_ns = line_.time_ns.value_or(tick.media_time_ns());
    header.present = 1;
    header.extent_bytes = line_.bytes.size();
    output.value->as.records = {line_.count, layout_->record_size};
    if (!line_.bytes.empty()) std::memcpy(output.data, line_.bytes.data(), line_.bytes.size());
  }

  void log_damage() {
    if (file_->damaged() > 0 && !told_)
      log(MR_LOG_WARNING,
          std::to_string(file_->damaged()) + " damaged lines were left out; the first: " + file_->first_damage());
    told_ = true;
  }

  Output<Any> out_{*this, "out", of_records, help("records of the type that the file holds")};
  Param<std::string> path_{*this, "path", "", "the file to read; -: standard input", required, reads_path};
  Param<std::string> damaged_{*this, "damaged", "fail", "what happens at a damaged line", choices({"fail", "skip"})};
  Param<int64_t> count_max_param_{*this, "count_max", 1024,
                                  "the most records in a line of a stream; a file says its own", range(1, 1 << 20)};
  const RecordLayout* layout_ = nullptr; // null: not probed
  uint64_t count_max_ = 1;               // most records in one line
  InputStream stream_;                   // open for all that is no regular file
  std::optional<RecordFile> file_;
  RecordLine line_; // the next line to give, if has_line_
  bool has_line_ = false, told_ = false;
  uint64_t given_ = 0; // ticks since the stream began
};

} // namespace

const mr_handler_type& record_from_json_type() {
  static const mr_handler_type type =
      detail::Type<FromJson>::table("record.from_json", "Gives the records of a file of JSON lines", kFromJsonManual);
  return type;
}

} // namespace millrace::handlers
