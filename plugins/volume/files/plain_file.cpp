// Reads and maps raw numbers and NPY; see plain_file.h.
#include "plugins/volume/files/plain_file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "handlers/tensor/npy.h"
#include "plugins/volume/files/fault.h"
#include "plugins/volume/files/input_file.h"

namespace millrace::volume {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers of little-endian files are mapped as they are");

constexpr size_t kPartBytes = 4 << 20; // one read; a multiple of an element's size

class PlainFile final : public VolumeFile {
 public:
  PlainFile(const VolumeDescription& description, std::unique_ptr<InputFile> file, uint64_t offset, bool is_big_endian)
      : VolumeFile(description), file_(std::move(file)), offset_(offset), is_big_endian_(is_big_endian) {}

  std::optional<MappedVoxels> mapped() const override {
    if (is_big_endian_ || offset_ % (description().dtype.bits / 8) != 0) return std::nullopt;
    const std::shared_ptr<const uint8_t> all = file_->map();
    return MappedVoxels{{all, all.get() + offset_}, static_cast<size_t>(description().bytes())};
  }
  void read_into(std::span<uint8_t> target, Crew& crew) const override {
    crew.each(target.size(), kPartBytes, [&](size_t begin, size_t end) {
      const std::span<uint8_t> part = target.subspan(begin, end - begin);
      file_->read_at(offset_ + begin, part);
      if (is_big_endian_) handlers::swap_bytes(part, description().dtype.bits / 8);
    });
  }

 private:
  std::unique_ptr<InputFile> file_;
  uint64_t offset_;
  bool is_big_endian_;
};

void check_length(const InputFile& file, const VolumeDescription& description, uint64_t offset) {
  const uint64_t there = file.size() > offset ? file.size() - offset : 0;
  if (there < description.bytes())
    throw cannot_read(file.path(), "it breaks off: the shape " + shown(description.shape) + " of " +
                                       name_of(description.dtype) + " takes " + std::to_string(description.bytes()) +
                                       " bytes from byte " + std::to_string(offset) + " on, and there are " +
                                       std::to_string(there));
}

std::array<int64_t, 3> shape_of(const std::string& path, const std::string& text) {
  std::array<int64_t, 3> shape{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto [next, problem] = std::from_chars(at, end, shape[axis]);
    const bool is_last = axis == 2;
    if (problem != std::errc() || (is_last ? next != end : next == end || *next != 'x'))
      throw cannot_read(path, "shape is '" + text + "', and should be DEPTHxHEIGHTxWIDTH, such as 100x512x512");
    at = next + (is_last ? 0 : 1);
  }
  check_shape(path, "shape", shape);
  return shape;
}

DType type_of(std::string_view name) {
  return name == "uint8" ? dtype_of<uint8_t>() : name == "uint16" ? dtype_of<uint16_t>() : dtype_of<float>();
}

std::string sides(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t side : shape) text += (text.empty() ? "" : "x") + std::to_string(side);
  return text.empty() ? "()" : text;
}

} // namespace

std::unique_ptr<VolumeFile> open_raw(const std::string& path, const Wishes& wishes) {
  const VolumeDescription description = {"raw", type_of(wishes.dtype), shape_of(path, wishes.shape)};
  auto file = std::make_unique<InputFile>(path);
  check_length(*file, description, wishes.offset);
  return std::make_unique<PlainFile>(description, std::move(file), wishes.offset,
                                     wishes.is_big_endian && description.dtype.bits > 8);
}

std::unique_ptr<VolumeFile> open_npy(const std::string& path) {
  auto file = std::make_unique<InputFile>(path);
  handlers::NpyHeader header;
  uint64_t position = 0;
  try {
    header = handlers::read_npy_header([&](void* target, size_t bytes) {
      if (bytes > file->size() - position) return false;
      file->read_at(position, {static_cast<uint8_t*>(target), bytes});
      position += bytes;
      return true;
    });
  } catch (const VolumeFileError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw cannot_read(path, error.what());
  }
  if (!is_voxel_type(header.dtype)) throw cannot_read(path, "descr: " + wrong_type(name_of(header.dtype)));
  // A stack of one volume, as tensor.to_npy writes it, is a volume.
  while (header.shape.size() > 3 && header.shape.front() == 1) header.shape.erase(header.shape.begin());
  if (header.shape.size() != 3)
    throw cannot_read(path, "shape: it has " + std::to_string(header.shape.size()) + " axes (" + sides(header.shape) +
                                "), and a volume has three: depth, height, width");
  if (header.fortran_order)
    throw cannot_read(path, "fortran_order: its first axis runs fastest; save it with numpy.ascontiguousarray");
  const VolumeDescription description = {"NPY", header.dtype, {header.shape[0], header.shape[1], header.shape[2]}};
  check_shape(path, "shape", description.shape);
  check_length(*file, description, header.data_offset);
  return std::make_unique<PlainFile>(description, std::move(file), header.data_offset, header.big_endian);
}

} // namespace millrace::volume
