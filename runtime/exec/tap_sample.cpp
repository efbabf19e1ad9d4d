// Picks what a tap shows, and makes it readable; see tap_sample.h.
#include "exec/tap_sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "millrace/payload/half_floats.h"
#include "millrace/sound_value.h"

namespace millrace::exec {

namespace {

constexpr uint64_t kElementBytesMax = 8;

// ---- tensors

// Bytes of an element that number_at() reads; 0 for others.
uint32_t element_bytes(const mr_tensor& tensor) {
  return bit_of(DType{tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes}) ? tensor.dtype_bits / 8u : 0;
}

uint64_t elements_of(const int64_t* shape, uint32_t rank) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < rank; ++d)
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(shape[d]), &count)) return UINT64_MAX;
  return count;
}

bool is_dense(const mr_tensor& tensor) {
  int64_t stride = 1;
  for (uint32_t d = tensor.rank; d-- > 0;) {
    if (tensor.shape[d] > 1 && tensor.strides[d] != stride) return false;
    stride *= tensor.shape[d];
  }
  return true;
}

// Elements from an index on, in the order of the shape, whatever the strides are.
class Elements {
 public:
  Elements(const mr_tensor& tensor, const uint8_t* data, uint32_t bytes)
      : tensor_(tensor), data_(data), bytes_(bytes), dense_(is_dense(tensor)) {}

  uint8_t* copy(uint64_t first, uint64_t count, uint8_t* to) const {
    if (dense_) {
      std::memcpy(to, data_ + first * bytes_, count * bytes_);
      return to + count * bytes_;
    }
    int64_t index[MR_RANK_MAX] = {};
    int64_t offset = 0;
    for (uint32_t d = tensor_.rank; d-- > 0;) {
      const auto extent = static_cast<uint64_t>(tensor_.shape[d]);
      index[d] = static_cast<int64_t>(first % extent);
      first /= extent;
      offset += index[d] * tensor_.strides[d];
    }
    for (; count > 0; --count) {
      to = copy_one(offset, to);
      for (uint32_t d = tensor_.rank; d-- > 0;) { // one further
        offset += tensor_.strides[d];
        if (++index[d] < tensor_.shape[d]) break;
        offset -= index[d] * tensor_.strides[d];
        index[d] = 0;
      }
    }
    return to;
  }
  uint8_t* copy_one(int64_t offset, uint8_t* to) const {
    std::memcpy(to, data_ + offset * static_cast<int64_t>(bytes_), bytes_);
    return to + bytes_;
  }

 private:
  const mr_tensor& tensor_;
  const uint8_t* data_;
  uint32_t bytes_;
  bool dense_;
};

struct HeatSize {
  uint32_t width, height;         // that are shown
  uint32_t all_width, all_height; // the tensor's
};
HeatSize heat_of(const mr_tensor& tensor) {
  const auto extent = [&](uint32_t from_last) {
    const int64_t there = tensor.rank >= from_last ? tensor.shape[tensor.rank - from_last] : 1;
    return static_cast<uint32_t>(std::min<int64_t>(there, UINT32_MAX));
  };
  const uint32_t width = extent(1), height = extent(2);
  return {std::min(width, kTapHeatMax), std::min(height, kTapHeatMax), width, height};
}

template <class T>
T read_at(const uint8_t* at) {
  T number{};
  std::memcpy(&number, at, sizeof number);
  return number;
}

double real_at(const uint8_t* at, DType dtype) {
  return std::visit([](auto number) { return static_cast<double>(number); }, number_at(at, dtype));
}

} // namespace

Number number_at(const uint8_t* at, DType dtype) {
  switch (bit_of(dtype)) {
    case MR_DTYPES_INT8: return int64_t{read_at<int8_t>(at)};
    case MR_DTYPES_INT16: return int64_t{read_at<int16_t>(at)};
    case MR_DTYPES_INT32: return int64_t{read_at<int32_t>(at)};
    case MR_DTYPES_INT64: return read_at<int64_t>(at);
    case MR_DTYPES_UINT8: return uint64_t{*at};
    case MR_DTYPES_UINT16: return uint64_t{read_at<uint16_t>(at)};
    case MR_DTYPES_UINT32: return uint64_t{read_at<uint32_t>(at)};
    case MR_DTYPES_UINT64: return read_at<uint64_t>(at);
    case MR_DTYPES_FLOAT16: return double{read_at<Float16>(at)};
    case MR_DTYPES_FLOAT32: return double{read_at<float>(at)};
    case MR_DTYPES_FLOAT64: return read_at<double>(at);
    case MR_DTYPES_BFLOAT16: return double{read_at<BFloat16>(at)};
    default: return 0.0;
  }
}

ValuePick::ValuePick(const mr_format& format, uint32_t longest) : longest_(longest), format_(format) {
  format_.records = nullptr; // may go with the run
  size_t bytes = 0;
  if (format.kind == MR_KIND_IMAGE) {
    const auto most = [&](uint32_t side) { return side ? std::min(side, longest) : longest; };
    columns_.resize(most(format.width));
    bytes = size_t{most(format.width)} * most(format.height) * kRgbaBytes;
  } else if (format.kind == MR_KIND_TENSOR) {
    const uint64_t count = format.dtype_bits ? elements_of(format.shape, format.rank) : UINT64_MAX;
    bytes = (std::min(count, kTapElementsMax) + uint64_t{kTapHeatMax} * kTapHeatMax) * kElementBytesMax;
  } else if (format.kind == MR_KIND_RECORDS && format.records) {
    bytes = std::min(kTapRecordsMax * format.record_size, kTapRecordBytesMax);
    record_name_ = format.records->name;
    for (uint32_t f = 0; f < format.records->field_count; ++f) {
      const mr_field& field = format.records->fields[f];
      const uint64_t end = field.offset + uint64_t{field.count} * (field.dtype_bits / 8u);
      if (end > format.record_size) continue;
      field_names_.push_back({field.name, field.count});
      fields_.push_back(field);
      fields_.back().name = nullptr;
    }
  }
  room_.resize(bytes); // written here, so that the settling thread finds its pages
}

bool ValuePick::pick(const mr_value& value, const uint8_t* data) {
  if (format_.kind != value.header.kind || find_fault(format_, value, UINT64_MAX) != ValueFault::none) return false;
  value_ = value;
  if (value.header.kind == MR_KIND_IMAGE) {
    if (value.as.image.width == 0 || value.as.image.height == 0) return false;
    pick_picture(value.as.image, data, longest_, columns_, room_);
  } else if (value.header.kind == MR_KIND_TENSOR) {
    pick_tensor(data);
  } else if (value.header.kind == MR_KIND_RECORDS && value.as.records.record_size > 0) {
    const uint64_t count = std::min(value.as.records.count, room_.size() / value.as.records.record_size);
    const uint64_t bytes = std::min(count, kTapRecordsMax) * value.as.records.record_size;
    if (bytes > 0) std::memcpy(room_.data(), data, bytes);
  }
  return true;
}

namespace {

struct LookedAt {
  uint64_t pieces, piece; // so many of so many elements each
  uint64_t count() const { return pieces * piece; }
};
LookedAt looked_at(uint64_t elements) {
  if (elements <= kTapElementsMax) return {1, elements};
  return {kTapElementsMax / kTapPiece, kTapPiece};
}

} // namespace

void ValuePick::pick_tensor(const uint8_t* data) {
  const mr_tensor& tensor = value_.as.tensor;
  const uint32_t bytes = element_bytes(tensor);
  const uint64_t count = elements_of(tensor.shape, tensor.rank);
  if (bytes == 0 || count == 0) return;
  const Elements elements(tensor, data, bytes);
  const LookedAt look = looked_at(count);
  uint8_t* out = room_.data();
  // Each piece begins where an even share of what is between the first and the last begins.
  const uint64_t gaps = std::max<uint64_t>(look.pieces - 1, 1), way = count - look.piece;
  for (uint64_t p = 0; p < look.pieces; ++p)
    out = elements.copy(way / gaps * p + way % gaps * p / gaps, look.piece, out);
  const HeatSize heat = heat_of(tensor);
  const int64_t across = tensor.rank > 0 ? tensor.strides[tensor.rank - 1] : 0;
  const int64_t down = tensor.rank > 1 ? tensor.strides[tensor.rank - 2] : 0;
  for (uint32_t y = 0; y < heat.height; ++y)
    for (uint32_t x = 0; x < heat.width; ++x)
      out = elements.copy_one(int64_t{middle_of(y, heat.height, heat.all_height)} * down +
                                  int64_t{middle_of(x, heat.width, heat.all_width)} * across,
                              out);
}

void ValuePick::show(TapSample& sample) const {
  switch (value_.header.kind) {
    case MR_KIND_IMAGE: sample.shown = show_picture(value_.as.image, longest_, room_); break;
    case MR_KIND_TENSOR: sample.shown = show_tensor(); break;
    case MR_KIND_RECORDS: sample.shown = show_records(); break;
    default: {
      const mr_header& header = value_.header;
      sample.shown = ShownPacket{header.extent_bytes, (header.flags & MR_FLAG_KEYFRAME) != 0, header.pts_ns,
                                 header.duration_ns, value_.as.packet.dts_ns};
    }
  }
}

ShownTensor ValuePick::show_tensor() const {
  const mr_tensor& tensor = value_.as.tensor;
  const DType dtype{tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes};
  const uint32_t bytes = element_bytes(tensor);
  ShownTensor shown;
  shown.dtype = name_of(dtype);
  shown.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  shown.count = elements_of(tensor.shape, tensor.rank);
  shown.looked_at = bytes == 0 || shown.count == 0 ? 0 : looked_at(shown.count).count();
  shown.min = shown.max = shown.mean = std::numeric_limits<double>::quiet_NaN();
  uint64_t finite = 0;
  double sum = 0;
  const uint8_t* at = room_.data();
  for (uint64_t i = 0; i < shown.looked_at; ++i, at += bytes) {
    const double number = real_at(at, dtype);
    if (!std::isfinite(number)) continue;
    shown.min = finite == 0 ? number : std::min(shown.min, number);
    shown.max = finite == 0 ? number : std::max(shown.max, number);
    sum += number;
    ++finite;
  }
  shown.not_finite = shown.looked_at - finite;
  if (finite > 0) shown.mean = sum / static_cast<double>(finite);
  if (shown.looked_at == 0) return shown;
  const HeatSize heat = heat_of(tensor);
  shown.heat_width = heat.width;
  shown.heat_height = heat.height;
  const double spread = shown.max - shown.min;
  for (uint32_t i = 0; i < heat.width * heat.height; ++i, at += bytes) {
    const double part = spread > 0 ? (real_at(at, dtype) - shown.min) / spread : 0;
    shown.heat.push_back(static_cast<uint8_t>(std::isfinite(part) ? std::lround(std::clamp(part, 0.0, 1.0) * 255) : 0));
  }
  return shown;
}

ShownRecords ValuePick::show_records() const {
  ShownRecords shown{record_name_, value_.as.records.count, field_names_, {}};
  const uint64_t size = value_.as.records.record_size;
  if (size == 0 || fields_.empty()) return shown;
  const uint64_t rows = std::min({shown.count, kTapRecordsMax, room_.size() / size});
  for (uint64_t r = 0; r < rows; ++r) {
    std::vector<Number>& row = shown.rows.emplace_back();
    for (const mr_field& field : fields_)
      for (uint32_t n = 0; n < field.count; ++n)
        row.push_back(number_at(&room_[r * size + field.offset + size_t{n} * (field.dtype_bits / 8u)],
                                DType{field.dtype_code, field.dtype_bits}));
  }
  return shown;
}

} // namespace millrace::exec
