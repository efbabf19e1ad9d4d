// tensor.to_npy: writes tensors as NumPy reads them.
#include <millrace/handler.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "handlers/file/numbered_path.h"
#include "handlers/file/written_file.h"
#include "handlers/tensor/npy.h"

namespace millrace::handlers {
namespace {

constexpr const char* kToNpyManual = &R"(
Writes tensors to .npy files, for `numpy.load`. A path with a place for a number, `{index}` or
`%06d` (which mean the same), gives a file for every tick that has a value, numbered by the tick.
Any other path gives one file with all values stacked along a new first dimension. They must have
one shape. A value without elements, such as an initial one, is left out, and the file does not say
which ticks had none. The file is complete after the end. After a run that breaks off, it says that
it holds nothing.

Whole and floating-point numbers of 8 to 64 bits are written unchanged, in row-major order whatever
the strides. bfloat16 and vectors as elements have no name in NumPy and are refused. Missing folders
of the path are created, and files of the same name replaced at their first value. A failed write is
a failure.

    test.number count=20 size=3 ! tensor.to_npy path=out/numbers.npy
)"[1];

class ToNpy final : public Handler {
 public:
  ToNpy() { blocking(); }

  void configure(const Formats& formats) override {
    const Format& in = formats.in(in_);
    dtype_ = {in.dtype_code, in.dtype_bits, in.dtype_lanes};
    shape_.assign(in.shape, in.shape + in.rank);
    if (in.dtype_bits > 0) check(dtype_);
    if (*path_ == "-") throw std::invalid_argument("tensor.to_npy writes files, and '-' is standard output");
    target_.emplace(*path_); // reports a mistake in the path before the run
  }

  void start() override {
    count_ = 0;
    closed_ = false;
    if (!target_->numbered()) file_.open(*path_);
  }

  void process(Tick& tick, Cpu&) {
    if (closed_) throw std::logic_error("'" + *path_ + "' is closed");
    const TensorView tensor = in_(tick);
    check(tensor.dtype());
    if (target_->numbered())
      write_one(tensor, target_->of(tick.index()));
    else
      stack(tensor);
  }

  void drain() override {
    closed_ = true;
    if (!file_.is_open()) return;
    if (count_ > 0)
      file_.write_front(bytes_of(header()));
    else
      file_.write(bytes_of(header()));
    file_.close();
  }
  void stop() override {
    file_.break_off();
    closed_ = true;
  }
  void interrupt() override { file_.interrupt(); }

 private:
  static void check(DType dtype) {
    if (!npy_has(dtype)) throw std::invalid_argument("NumPy has no such numbers as these tensors hold");
  }

  static std::span<const uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }

  void write_one(const TensorView& tensor, const std::string& path) {
    file_.open(path);
    file_.write(bytes_of(npy_header(tensor.dtype(), tensor.shape())));
    write_elements(tensor);
    file_.close();
  }

  void stack(const TensorView& tensor) {
    if (tensor.element_count() == 0) return;
    if (count_ == 0) {
      dtype_ = tensor.dtype();
      shape_.assign(tensor.shape().begin(), tensor.shape().end());
      file_.write(bytes_of(header())); // says 0 for now, and reserves the space
    }
    if (tensor.dtype() != dtype_ ||
        !std::equal(shape_.begin(), shape_.end(), tensor.shape().begin(), tensor.shape().end()))
      throw std::invalid_argument(
          "the tensors differ in type or shape, so they cannot be stacked in one file; a path "
          "with {index} gives a file for each");
    write_elements(tensor);
    ++count_;
  }

  // As long as the longest one that may be written over it.
  std::string header() const {
    std::vector<int64_t> stacked = shape_;
    stacked.insert(stacked.begin(), INT64_MAX);
    const DType dtype = dtype_.bits > 0 ? dtype_ : dtype_of<uint8_t>();
    const size_t longest = npy_header(dtype, stacked).size();
    stacked[0] = count_;
    return npy_header(dtype, stacked, longest);
  }

  void write_elements(const TensorView& tensor) {
    const size_t element = tensor.dtype().bits / 8;
    dense_.resize(static_cast<size_t>(tensor.element_count()) * element);
    copy_row_major(tensor.data(), tensor.shape(), tensor.strides(), element, dense_.data());
    file_.write(dense_);
    file_.end_value();
  }

  Input<Tensor> in_{*this, "in", dtypes(MR_DTYPES_ALL & ~uint32_t{MR_DTYPES_BFLOAT16}),
                    help("whole or floating numbers of 8 to 64 bits")};
  Param<std::string> path_{*this, "path", "", "the file, or with {index} the files, to write", required, writes_path};

  std::optional<NumberedPath> target_;
  WrittenFile file_;           // holds a stack, or one value
  DType dtype_{0, 0, 1};       // dtype of a stack's values
  std::vector<int64_t> shape_; // shape of one of them
  int64_t count_ = 0;          // number of them
  bool closed_ = true;
  std::vector<uint8_t> dense_; // one value in row-major order
};

} // namespace

const mr_handler_type& tensor_to_npy_type() {
  static const mr_handler_type type =
      detail::Type<ToNpy>::table("tensor.to_npy", "Writes tensors as NumPy reads them", kToNpyManual);
  return type;
}

} // namespace millrace::handlers
