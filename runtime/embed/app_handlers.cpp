// The handlers app.source and app.sink; see app_handlers.h.
#include "embed/app_handlers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace millrace::embed {

namespace {

constexpr const char* kSourceManual = &R"(
Gives the values that the application pushes with Runtime::push, in order, one a tick. It waits for
the next one, and ends with Runtime::end. Every picture has the size and format that the parameters
say, every tensor its dtype and shape. At most `depth` values wait; a further push waits for room.

It belongs to applications that embed the runtime (millrace/runtime.h): the command has none to join
it to, and runs no pipeline with it. test.pattern stands in for it there.

    app.source format=gray8 width=64 height=48 ! image.blur sigma=2 ! app.sink
)"[1];

constexpr const char* kSinkManual = &R"(
Keeps values for the application, which pulls them with Runtime::pull. At most `depth` wait. `full`
says what happens when one more comes: the pipeline waits, the oldest is dropped, or the new one is
dropped. The application looks at a value with Value::image, Value::tensor or Value::records.

It belongs to applications that embed the runtime (millrace/runtime.h): the command has none to join
it to, and runs no pipeline with it. null.sink stands in for it there.

    app.source format=gray8 width=64 height=48 ! image.blur sigma=2 ! app.sink full=drop_oldest
)"[1];

// The most elements of a shape; keeps their bytes within 64 bits.
constexpr int64_t kElementsMax = int64_t{1} << 40;

std::vector<int64_t> parse_shape(const std::string& text) {
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    const std::string digits = text.substr(begin, end - begin);
    const bool whole =
        !digits.empty() && digits.size() < 13 && digits.find_first_not_of("0123456789") == std::string::npos;
    if (!whole || shape.size() == MR_RANK_MAX)
      throw std::invalid_argument("'" + text + "' is no shape; one is written 3x224x224, with at most 8 numbers");
    shape.push_back(std::stoll(digits));
    if (shape.back() > 0 && elements > kElementsMax / shape.back())
      throw std::invalid_argument("a tensor of the shape " + text + " has too many elements");
    elements *= shape.back();
    begin = end + 1;
  }
  return shape;
}

DType dtype_named(const std::string& name) {
  const size_t digits = name.find_first_of("0123456789");
  const std::string kind = name.substr(0, digits);
  const uint8_t code = kind == "float" ? MR_DTYPE_FLOAT : kind == "uint" ? MR_DTYPE_UINT : MR_DTYPE_INT;
  return {code, static_cast<uint8_t>(std::stoi(name.substr(digits))), 1};
}

Pixel pixel_named(const std::string& name) {
  const auto at = std::find(kPixelNames.begin(), kPixelNames.end(), name);
  return static_cast<Pixel>(at - kPixelNames.begin());
}

WhenFull when_full(const std::string& word) {
  if (word == "drop_oldest") return WhenFull::drop_oldest;
  return word == "drop_newest" ? WhenFull::drop_newest : WhenFull::wait;
}

} // namespace

AppSource::AppSource() { blocking(); }

void AppSource::probe(Facts& facts) {
  queue_.set_depth(static_cast<size_t>(*depth_));
  // Rounded to a thousandth: an application knows its own rate no better.
  if (rate_ > 0) facts.rate(std::max(std::llround(*rate_ * 1000), 1ll), 1000);
  if (live_) facts.live();
}

void AppSource::configure(const Formats& formats) {
  mr_format& out = formats.out(out_);
  if (*payload_ == "image") {
    formats.image(out_, pixel_named(*pixel_), static_cast<uint32_t>(*width_), static_cast<uint32_t>(*height_));
    out.kind = MR_KIND_IMAGE;
    out.schema = schema_of(Image::kSchema);
  } else {
    const std::vector<int64_t> shape = parse_shape(*shape_);
    formats.tensor(out_, dtype_named(*dtype_), {});
    out.kind = MR_KIND_TENSOR;
    out.schema = schema_of(Tensor::kSchema);
    out.rank = static_cast<uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), out.shape);
    std::fill_n(out.shape_kind, shape.size(), uint32_t{MR_DIM_FIXED});
  }
  format_ = out;
}

void AppSource::stop() { queue_.abandon(); }
void AppSource::interrupt() { queue_.abandon(); }

void AppSource::process(Tick& tick, Cpu&) {
  std::unique_ptr<QueuedValue> parcel = queue_.take();
  if (!parcel) return tick.end();
  mr_tick& raw = tick.raw();
  // The runtime keeps the sentence of a refusal.
  if (raw.host->allocate(&raw, out_.first(), parcel->bytes.size()) != MR_OK) throw std::bad_alloc();
  mr_output& output = out_.raw(tick);
  *output.value = parcel->value;
  if (output.value->header.pts_ns == INT64_MIN) {
    const double beat_ns = rate_ > 0 ? 1e9 / *rate_ : 0;
    output.value->header.pts_ns =
        rate_ > 0 ? std::llround(static_cast<double>(tick.index()) * beat_ns) : tick.media_time_ns();
  }
  std::memcpy(output.data, parcel->bytes.data(), parcel->bytes.size());
  queue_.give_back(std::move(parcel));
}

AppSink::AppSink() { blocking(); }

void AppSink::probe(Facts&) { queue_->set_depth(static_cast<size_t>(*depth_)); }

void AppSink::configure(const Formats& formats) {
  if (formats.in(in_).kind == MR_KIND_OBJECT)
    throw std::invalid_argument("app.sink cannot keep host objects: they have no bytes of their own");
}

void AppSink::start() { when_full_ = when_full(*full_); }

void AppSink::process(Tick& tick, Cpu&) {
  const mr_input& in = in_.raw(tick);
  std::unique_ptr<QueuedValue> parcel = queue_->blank();
  parcel->value = *in.value;
  parcel->bytes.assign(in.data, in.data + in.value->header.extent_bytes);
  parcel->index = tick.index();
  parcel->media_time_ns = tick.media_time_ns();
  queue_->put(std::move(parcel), when_full_);
}

void AppSink::drain() { queue_->close(); }
void AppSink::stop() { queue_->close(); }
void AppSink::interrupt() { queue_->close(); }

const mr_plugin& app_plugin() {
  static const mr_handler_type source =
      detail::Type<AppSource>::table(kAppSourceType, "Gives the values that the application pushes", kSourceManual);
  static const mr_handler_type sink =
      detail::Type<AppSink>::table(kAppSinkType, "Keeps values for the application to pull", kSinkManual);
  static const std::array<const mr_handler_type*, 2> types = {&sink, &source};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "app", "1", types.data(), types.size(), 0};
  return plugin;
}

} // namespace millrace::embed
