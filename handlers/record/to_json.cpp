// record.to_json: writes records as lines of JSON.
#include <millrace/handler.h>

#include <optional>
#include <stdexcept>

#include "handlers/file/written_file.h"
#include "handlers/record/any_records.h"
#include "handlers/record/json_line.h"

namespace millrace::handlers {
namespace {

constexpr const char* kToJsonManual = &R"(
Writes a line of JSON for every tick that has records, however few:

    {"tick":7,"time_ns":280000000,"schema":"millrace.Box","records":[{"x":1.5,"y":2,…},…]}

`tick` is the index on the handler's clock. `time_ns` is the media time of the records: the
tick's, unless the handler that made them set another. Ticks without a value leave no line, ticks
with no record in the list leave an empty list. Numbers read back as the same bits. NaN is written
as null, infinity as 1e999, and a field of several numbers as a list, unless it holds bytes and is
called name, mode, map, key or label: that is a text. Known records are: millrace.Box (x, y,
width, height, score, label, id), millrace.Rate (per_second, span_ns, interval_count) of
stats.fps, millrace.Latency (p50_us, p99_us, max_us, count) of stats.latency, millrace.Class
(score, label, name) of tensor.top_k, millrace.PatchTransform (scale_x, scale_y, offset_x,
offset_y, width, height) of image.letterbox, millrace.Point (x, y, radius, score, label, age, id)
of points.from_boxes, millrace.Link (a, b, id_a, id_b, length, life) of points.links,
millrace.Mark (kind, at, width, roundness, color, fill, stroke) of marks.boxes,
millrace.ViewEvent, millrace.ViewCamera, millrace.ViewLook and millrace.ViewDims of view.events,
and every type of a plugin that declares its fields, which `inspect` shows at the port.

Missing folders of `path` are created. The file is replaced at the first value and complete after
the end. With `flush` a line can be read as soon as its tick is done. `-` is standard output, and a
FIFO is opened once a reader opens it. A failed write is a failure.

    record.from_json path=examples/data/boxes.jsonl ! record.to_json path=out/boxes.jsonl
)"[1];

class ToJson final : public Handler {
 public:
  ToJson() { blocking(); }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(in_);
    own_.reset();
    if (!in.schema || find_layout(known_layouts(), in.schema)) return check_known(in);
    own_ = layout_of_format(in);
    own_schema_ = in.schema;
    if (!own_)
      throw std::invalid_argument(
          "these records are of a type that is not known and does not say its fields; known are " +
          list_layouts(known_layouts()) + ", and types that have a function fields()");
  }

  void start() override { file_.open(*path_); }

  void process(Tick& tick, Cpu&) {
    const mr_input& in = in_.raw(tick);
    const mr_header& header = in.value->header;
    const RecordLayout& layout = layout_of(header.schema, header.layout);
    text_.clear();
    append_record_line(text_, tick.index(), header.pts_ns, layout, in.data, in.value->as.records.count);
    file_.write({reinterpret_cast<const uint8_t*>(text_.data()), text_.size()});
    file_.end_value();
    if (flush_) file_.flush();
  }

  void drain() override { file_.close(); }
  void stop() override { file_.break_off(); }
  void interrupt() override { file_.interrupt(); }

 private:
  static void check_known(const Format& in) {
    if (in.schema) known_layout(in.schema, in.layout);
  }
  const RecordLayout& layout_of(uint64_t schema, uint64_t layout) const {
    return own_ && schema == own_schema_ && layout == own_->layout ? *own_ : known_layout(schema, layout);
  }
  static const RecordLayout& known_layout(uint64_t schema, uint64_t layout) {
    const RecordLayout* known = find_layout(known_layouts(), schema);
    if (!known)
      throw std::invalid_argument("these records are of a type that is not known; known are " +
                                  list_layouts(known_layouts()));
    if (known->layout != layout)
      throw std::invalid_argument("the records are '" + std::string(known->schema) + "' of another version");
    return *known;
  }

  Input<Any> in_{*this, "in", of_records, help("records of a type that says its fields")};
  Param<std::string> path_{*this, "path", "", "the file to write; -: standard output", required, writes_path};
  Param<bool> flush_{*this, "flush", false, "a line is in the file when its tick is done"};
  WrittenFile file_;
  std::string text_;                // the line being written
  std::optional<RecordLayout> own_; // the layout of a plugin's type
  uint64_t own_schema_ = 0;
};

} // namespace

const mr_handler_type& record_to_json_type() {
  static const mr_handler_type type =
      detail::Type<ToJson>::table("record.to_json", "Writes records as lines of JSON", kToJsonManual);
  return type;
}

} // namespace millrace::handlers
