// A sample of a value: what is picked on the thread that settles it, and what a client gets.
//
// The settling thread copies bytes and calculates nothing, so colours, statistics and fields are work of the client's
// thread. What it looks at is bounded: one sample for each pixel that is shown, kTapElementsMax elements of a tensor in
// pieces of kTapPiece, kTapRecordsMax records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "exec/tap_picture.h"
#include "millrace/payload.h"

namespace millrace::exec {

inline constexpr uint32_t kTapWidthMin = 16, kTapWidthMax = 960;
// A larger tensor is looked at in a thousand pieces of a few cache lines each: some 0.2 ms, wherever they lie.
inline constexpr uint64_t kTapElementsMax = uint64_t{64} << 10, kTapPiece = 64;
inline constexpr uint32_t kTapHeatMax = 64; // columns and rows
inline constexpr uint64_t kTapRecordsMax = 64, kTapRecordBytesMax = uint64_t{256} << 10;

struct ShownTensor {
  std::string dtype; // "float32"
  std::vector<int64_t> shape;
  uint64_t count = 0, looked_at = 0; // elements
  // All four are about those elements; min, max and mean about the finite ones, and NaN if there are none.
  uint64_t not_finite = 0;
  double min = 0, max = 0, mean = 0;
  // The last two dimensions, at the first index of the others: 0 for `min`, 255 for `max`.
  uint32_t heat_width = 0, heat_height = 0;
  std::vector<uint8_t> heat;
};

using Number = std::variant<int64_t, uint64_t, double>;
// The number at this address; 0.0 for an element type that C++ has no numbers for.
Number number_at(const uint8_t* at, DType dtype);

struct ShownRecords {
  struct Field {
    std::string name;
    uint32_t count = 1; // how many numbers
  };
  std::string type; // "millrace.Box"; "" if its fields are not declared
  uint64_t count = 0;
  std::vector<Field> fields;
  std::vector<std::vector<Number>> rows; // the first records: the numbers of all fields, one after another
};

struct ShownPacket {
  uint64_t bytes = 0;
  bool is_key = false;
  int64_t pts_ns = 0, duration_ns = 0, dts_ns = 0;
};

struct TapSample {
  uint64_t tick = 0;
  int64_t media_ns = 0;
  std::variant<std::monostate, ShownPicture, ShownTensor, ShownRecords, ShownPacket> shown{}; // none: there is no value
};

// Room for what is picked from the values of one output.
class ValuePick {
 public:
  // `format`: the output's, as planned. `longest`: as shown_size().
  ValuePick(const mr_format& format, uint32_t longest);

  // The settling thread. Allocates nothing. False for a value without contents, as an empty initial one is, and for one
  // that is not as it was planned.
  bool pick(const mr_value& value, const uint8_t* data);
  // The client's thread: what was picked last.
  void show(TapSample& sample) const;

 private:
  void pick_tensor(const uint8_t* data);
  ShownTensor show_tensor() const;
  ShownRecords show_records() const;

  const uint32_t longest_;
  mr_format format_;
  mr_value value_{};
  std::vector<uint8_t> room_;     // pixels of 4 bytes; elements, and then those of the heat map; records
  std::vector<uint32_t> columns_; // the picture's, by column that is shown
  std::string record_name_;
  std::vector<ShownRecords::Field> field_names_;
  std::vector<mr_field> fields_; // without names
};

} // namespace millrace::exec
