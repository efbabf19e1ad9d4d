// file.raw_writer: writes the bytes of values to a file, one after another and nothing between.
#include <millrace/handler.h>

#include <array>
#include <stdexcept>

#include "handlers/file/written_file.h"
#include "handlers/image/picture.h"

namespace millrace::handlers {
namespace {

constexpr const char* kRawWriterManual = &R"(
Writes the bytes of every value to a file: of pictures all rows of all planes without their padding,
of tensors the elements in row-major order, of records and packets the bytes in use. Equal values
give equal files, whatever memory they were in, so a hash of the file proves what arrived. With
`index: true` each value follows the index of its tick: 8 bytes, lowest first. Missing folders of
the path are created. The file is replaced at the first value and complete after the end.
file.raw_reader reads pictures back.

`-` is standard output; the command's messages go to standard error. A FIFO (`mkfifo`) is opened
once a reader opens it, and a slow reader slows the pipeline. A failed write is a failure with its
path, its reason and the number of bytes that were written before it.

    test.pattern width=320 height=240 count=30 ! file.raw_writer path=frames.rgb
)"[1];

class RawWriter final : public Handler {
 public:
  RawWriter() { blocking(); }

  void configure(const Formats& formats) override {
    if (formats.in(in_).kind == MR_KIND_OBJECT)
      throw std::invalid_argument("file.raw_writer cannot write host objects: they have no bytes of their own");
  }

  void start() override { file_.open(*path_); }

  void process(Tick& tick, Cpu&) {
    if (index_) write_index(tick.index());
    write_value(in_.raw(tick));
    file_.end_value();
  }

  void drain() override { file_.close(); }
  void stop() override { file_.break_off(); }
  void interrupt() override { file_.interrupt(); }

 private:
  void write_value(const mr_input& in) {
    switch (in.value->header.kind) {
      case MR_KIND_IMAGE: return write_image(Image::view(in));
      case MR_KIND_TENSOR: return write_tensor(Tensor::view(in));
      case MR_KIND_RECORDS: return write(in.data, in.value->as.records.count * in.value->as.records.record_size);
      case MR_KIND_OBJECT:
        throw std::invalid_argument("file.raw_writer cannot write host objects: they have no bytes of their own");
      default: return write(in.data, in.value->header.extent_bytes);
    }
  }

  void write(const uint8_t* bytes, size_t count) { file_.write({bytes, count}); }
  void write_index(uint64_t index) {
    std::array<uint8_t, 8> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(index >> (8 * i));
    write(bytes.data(), bytes.size());
  }
  void write_image(const ImageView& picture) {
    for (uint32_t plane = 0; plane < picture.plane_count(); ++plane) {
      // plane_row_bytes() counts the 16-bit samples of p010, so this holds for all formats.
      const size_t bytes = plane_row_bytes(picture.pixel(), picture.width(), plane);
      for (uint32_t y = 0; y < picture.rows(plane); ++y) write(picture.row(y, plane), bytes);
    }
  }
  // Writes row by row along the last dimension, and element by element if that dimension is not dense.
  void write_tensor(const TensorView& tensor) {
    const std::span<const int64_t> shape = tensor.shape(), strides = tensor.strides();
    const size_t rank = shape.size(), element = size_t{tensor.dtype().bits} * tensor.dtype().lanes / 8;
    if (tensor.element_count() == 0) return;
    if (rank == 0) return write(tensor.data(), element);
    const bool dense = strides[rank - 1] == 1;
    const size_t pieces = dense ? 1 : static_cast<size_t>(shape[rank - 1]);
    const size_t piece = dense ? static_cast<size_t>(shape[rank - 1]) * element : element;
    std::array<int64_t, MR_RANK_MAX> place{};
    int64_t offset = 0; // in elements; strides may be negative
    for (;;) {
      for (size_t i = 0; i < pieces; ++i)
        write(tensor.data() + (offset + static_cast<int64_t>(i) * strides[rank - 1]) * static_cast<int64_t>(element),
              piece);
      size_t d = rank - 1;
      while (d-- > 0) {
        offset += strides[d];
        if (++place[d] < shape[d]) break;
        offset -= shape[d] * strides[d];
        place[d] = 0;
      }
      if (d >= rank) return;
    }
  }

  Input<Any> in_{*this, "in", help("images, tensors, records or packets")};
  Param<std::string> path_{*this, "path", "", "the file to write; -: standard output", required, writes_path};
  Param<bool> index_{*this, "index", false, "write the tick's index before each value"};
  WrittenFile file_;
};

} // namespace

const mr_handler_type& file_raw_writer_type() {
  static const mr_handler_type type =
      detail::Type<RawWriter>::table("file.raw_writer", "Writes the bytes of values to a file", kRawWriterManual);
  return type;
}

} // namespace millrace::handlers
