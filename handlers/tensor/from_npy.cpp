// tensor.from_npy: gives the arrays of NumPy's files as tensors.
#include <millrace/handler.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "handlers/file/numbered_path.h"
#include "handlers/file/open.h"
#include "handlers/file/raw_stream.h"
#include "handlers/tensor/npy.h"

namespace millrace::handlers {
namespace {

constexpr const char* kFromNpyManual = &R"(
Gives the arrays that `numpy.save` or tensor.to_npy wrote. A path with a place for a number,
`{index}` or `%06d` (which mean the same), stands for all files that match it. Each file is given at
the tick of its number, ticks whose number is missing are empty, and the stream ends with the last
file. All must have the type and shape of the first. Any other path is one file, whose first
dimension is the ticks; with `stacked: false` it is one value at one tick. It has no rate of its
own.

Whole and floating-point numbers of 8 to 64 bits and booleans (as uint8) can be read. Arrays in
Fortran's order and big-endian ones are converted while they are read. Only a stack in Fortran's
order is refused, because each tick would have to read the whole file. A file that is missing,
damaged or shorter than its shape says, or that holds objects, structures, complex numbers or text,
is refused before anything runs; of numbered files only the first is checked by then.

`-` is standard input, and a path may be a FIFO (`mkfifo`) or a device. Such a stream is read once.
Its header is waited for before anything runs, because it says type and shape.

    tensor.from_npy path=examples/data/waves.npy ! null.sink
)"[1];

// An open file, its header and the size of one tick's value.
struct __attribute__((visibility("hidden"))) NpySource {
  File file;
  NpyHeader header;
  uint64_t bytes = 0; // size of one tick's value
};

// The end of a stream does not show before it comes, so its header is believed up to here.
constexpr uint64_t kStreamedBytesMax = uint64_t{4} << 30;

class FromNpy final : public Handler {
 public:
  void probe(Facts& facts) override {
    find_files();
    if (is_a_stream()) {
      await_header();
      if (stacked_) facts.tick_count(stream_header_.shape[0]);
      return facts.waits();
    }
    const NpySource first = open(pattern_->of(numbers_.empty() ? 0 : numbers_.front()));
    take_format(first.header);
    facts.tick_count(tick_count(first));
  }

  void configure(const Formats& formats) override {
    if (!probed_) return;
    Format& out = formats.tensor(out_, dtype_, {});
    out.rank = static_cast<uint32_t>(shape_.size());
    std::copy(shape_.begin(), shape_.end(), out.shape);
    std::fill_n(out.shape_kind, out.rank, uint32_t{MR_DIM_FIXED});
  }

  void start() override {
    find_files();
    given_ = next_file_ = 0;
    stack_.reset();
    if (is_a_stream()) return await_header();
    if (!stacked()) return;
    stack_.emplace(open(*path_));
    refuse_turned_stack(stack_->header);
  }
  // A stream cannot go back, so it continues with the next value.
  void reset() override {
    if (!stream_.is_open()) start();
  }
  void stop() override {
    stack_.reset();
    stream_.close();
  }
  void interrupt() override { stream_.interrupt(); }

  void process(Tick& tick, Cpu&) {
    if (stream_.is_open()) return give_from_stream(tick);
    if (stack_) return give_from_stack(tick);
    if (next_file_ >= file_count()) return tick.end();
    const uint64_t number = numbers_.empty() ? 0 : numbers_[next_file_];
    if (number > given_++) return;
    ++next_file_;
    NpySource source = open(pattern_->of(number));
    if (source.header.dtype != dtype_ || source.header.shape != shape_)
      throw cannot_read(pattern_->of(number), "its type or shape is not the first file's");
    read_value(source, out_.allocate(tick, dtype_, shape_).data());
  }

 private:
  bool stacked() const { return stacked_ && !pattern_->numbered(); }
  size_t file_count() const { return pattern_->numbered() ? numbers_.size() : 1; }

  void find_files() {
    pattern_.emplace(*path_);
    if (!pattern_->numbered()) return;
    numbers_ = pattern_->existing();
    if (numbers_.empty()) throw cannot_read(*path_, "there is no file of this name with a number in it");
  }

  bool is_a_stream() const { return !pattern_->numbered() && is_stream(*path_); }

  void take_format(const NpyHeader& header) {
    const bool is_stack = stacked();
    if (is_stack && header.shape.empty())
      throw cannot_read(*path_, "it holds a single number, so there is nothing stacked; stacked=false gives it");
    dtype_ = header.dtype;
    shape_.assign(header.shape.begin() + (is_stack ? 1 : 0), header.shape.end());
    if (shape_.size() > MR_RANK_MAX)
      throw cannot_read(*path_, "its values have " + std::to_string(shape_.size()) +
                                    " dimensions, and tensors at most " + std::to_string(MR_RANK_MAX));
    probed_ = true;
  }

  void refuse_turned_stack(const NpyHeader& header) const {
    if (header.fortran_order && header.shape.size() > 1)
      throw cannot_read(*path_, "a stack in Fortran's order cannot be read tick by tick; save it with order='C'");
  }

  // The header of a stream is read once, by probe() or else by start().
  void await_header() {
    if (stream_.is_open()) return;
    stream_.open(*path_, 0);
    try {
      stream_header_ = read_npy_header([this](void* target, size_t bytes) {
        stream_.expect(bytes);
        const RawStream::Answer answer = stream_.next();
        if (answer == RawStream::Answer::interrupted)
          throw std::runtime_error("interrupted while it waited for its header");
        if (answer == RawStream::Answer::frame) std::memcpy(target, stream_.frame().data(), bytes);
        return answer == RawStream::Answer::frame;
      });
    } catch (const std::runtime_error& error) {
      stream_.close();
      throw cannot_read(*path_, error.what());
    }
    take_format(stream_header_);
    if (stacked_) refuse_turned_stack(stream_header_);
    const uint64_t count = stacked_ ? static_cast<uint64_t>(stream_header_.shape[0]) : 1;
    const uint64_t bytes =
        stream_header_.element_count() * stream_header_.element_bytes() / std::max<uint64_t>(count, 1);
    if (bytes > kStreamedBytesMax)
      throw cannot_read(*path_, "its header says values of " + std::to_string(bytes) +
                                    " bytes, and those of a stream have at most 4 GiB");
    stream_.expect(bytes);
  }

  void give_from_stream(Tick& tick) {
    const uint64_t all = stacked_ ? static_cast<uint64_t>(stream_header_.shape[0]) : 1;
    if (given_ >= all) return tick.end();
    const RawStream::Answer answer = stream_.next();
    if (answer == RawStream::Answer::interrupted) return tick.end();
    if (answer == RawStream::Answer::end)
      throw cannot_read(*path_, "it breaks off: its shape says " + std::to_string(all) + " values, and " +
                                    std::to_string(given_) + " were there and " + std::to_string(stream_.rest()) +
                                    " bytes of the next");
    ++given_;
    scratch_ = stream_.frame();
    const size_t element = stream_header_.element_bytes();
    if (stream_header_.big_endian) swap_bytes(scratch_, element);
    uint8_t* const target = out_.allocate(tick, dtype_, shape_).data();
    if (stream_header_.fortran_order && shape_.size() > 1)
      copy_row_major(scratch_.data(), shape_, fortran_strides(shape_), element, target);
    else if (!scratch_.empty())
      std::memcpy(target, scratch_.data(), scratch_.size());
  }

  int64_t tick_count(const NpySource& first) const {
    if (pattern_->numbered()) return static_cast<int64_t>(numbers_.back()) + 1;
    return stacked_ ? first.header.shape[0] : 1;
  }

  // Opens a file and positions it at its first element.
  NpySource open(const std::string& path) const {
    NpySource source{open_to_read(path), {}, 0};
    try {
      source.header = read_npy_header(source.file.get());
    } catch (const std::runtime_error& error) {
      throw cannot_read(path, error.what());
    }
    const uint64_t total = source.header.element_count() * source.header.element_bytes();
    const uint64_t there = size_of(source.file.get()) - source.header.data_offset;
    if (there < total)
      throw cannot_read(path, "it breaks off: its shape says " + std::to_string(total) + " bytes, and there are " +
                                  std::to_string(there));
    source.bytes = total;
    if (stacked() && !source.header.shape.empty() && source.header.shape[0] > 0)
      source.bytes /= static_cast<uint64_t>(source.header.shape[0]);
    return source;
  }

  void give_from_stack(Tick& tick) {
    if (stack_->header.dtype != dtype_ ||
        !std::equal(stack_->header.shape.begin() + 1, stack_->header.shape.end(), shape_.begin(), shape_.end()))
      throw cannot_read(*path_, "it changed while it was read");
    if (given_ >= static_cast<uint64_t>(stack_->header.shape[0])) return tick.end();
    ++given_;
    read_value(*stack_, out_.allocate(tick, dtype_, shape_).data());
  }

  // Reads the next value, in dense row-major order and this machine's byte order.
  void read_value(NpySource& source, uint8_t* target) {
    const bool turned = source.header.fortran_order && shape_.size() > 1;
    const size_t element = source.header.element_bytes(), bytes = static_cast<size_t>(source.bytes);
    if (turned) scratch_.resize(bytes);
    uint8_t* const read_to = turned ? scratch_.data() : target;
    if (bytes > 0 && std::fread(read_to, 1, bytes, source.file.get()) != bytes)
      throw cannot_read(*path_,
                        std::ferror(source.file.get()) ? std::strerror(errno) : "it became shorter while it was read");
    if (source.header.big_endian) swap_bytes({read_to, bytes}, element);
    if (turned) copy_row_major(scratch_.data(), shape_, fortran_strides(shape_), element, target);
  }

  Output<Tensor> out_{*this, "out", dtypes(MR_DTYPES_ALL & ~uint32_t{MR_DTYPES_BFLOAT16}),
                      help("of the type and shape that the file says")};
  Param<std::string> path_{*this,    "path",    "", "the file, or with {index} the files, to read; -: standard input",
                           required, reads_path};
  Param<bool> stacked_{*this, "stacked", true, "the first dimension of one file is the ticks"};

  bool probed_ = false;
  std::optional<NumberedPath> pattern_;
  std::vector<uint64_t> numbers_; // numbers of the existing files
  DType dtype_{0, 0, 1};          // dtype of a value
  std::vector<int64_t> shape_;
  std::optional<NpySource> stack_;
  RawStream stream_; // open for all that is no regular file
  NpyHeader stream_header_;
  uint64_t given_ = 0;           // ticks since the stream began
  size_t next_file_ = 0;         // index into numbers_
  std::vector<uint8_t> scratch_; // a value before its bytes are reordered
};

} // namespace

const mr_handler_type& tensor_from_npy_type() {
  static const mr_handler_type type =
      detail::Type<FromNpy>::table("tensor.from_npy", "Gives the arrays of NumPy's files", kFromNpyManual);
  return type;
}

} // namespace millrace::handlers
