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
default (of a box, only score, label and id may be missing), and unknown keys are skipped. A line is
damaged if it is no JSON, is of another type than the first or goes back in time. With
`damaged: fail` such a line is refused, with line and column, before anything runs, because the file
is read once to know how many records a tick may have. With `skip` it is left out and counted.

    record.from_json path=examples/data/boxes.jsonl ! null.sink
)"[1];

class FromJson final : public Handler {
 public:
  void probe(Facts& facts) override {
    RecordFile file = open();
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
    file_.emplace(open());
    has_line_ = false;
    given_ = 0;
    told_ = false;
  }
  void reset() override { start(); }
  void stop() override { file_.reset(); }

  void process(Tick& tick, Cpu&) {
    if (!has_line_) has_line_ = file_->next(line_);
    if (!has_line_) {
      tell_damage();
      return tick.end();
    }
    if (*line_.tick > given_++) return;
    has_line_ = false;
    give(tick);
  }

 private:
  RecordFile open() const { return RecordFile(*path_, *damaged_ == "skip" ? Damaged::skip : Damaged::fail); }

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

  void tell_damage() {
    if (file_->damaged() > 0 && !told_)
      log(MR_LOG_WARNING,
          std::to_string(file_->damaged()) + " damaged lines were left out; the first: " + file_->first_damage());
    told_ = true;
  }

  Output<Any> out_{*this, "out", of_records, help("records of the type that the file holds")};
  Param<std::string> path_{*this, "path", "", "the file to read", required, reads_path};
  Param<std::string> damaged_{*this, "damaged", "fail", "what happens at a damaged line", choices({"fail", "skip"})};
  const RecordLayout* layout_ = nullptr; // null: not probed
  uint64_t count_max_ = 1;               // records in one line
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
