// Checks and decodes the chunks of a Zarr; see zarr_file.h.
#include "plugins/volume/files/zarr_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "handlers/tensor/npy.h"
#include "plugins/volume/files/chunk_codec.h"
#include "plugins/volume/files/fault.h"
#include "plugins/volume/files/input_file.h"
#include "plugins/volume/files/zarr_array.h"
#include "plugins/volume/files/zarr_axes.h"
#include "plugins/volume/files/zarr_group.h"

namespace millrace::volume {

namespace {

// Each is a file that is looked at while the plan is made, some 10 µs.
constexpr uint64_t kChunksMax = uint64_t{1} << 20;
// A thread takes so many at a time, and keeps the memory that they are decoded in.
constexpr size_t kChunksPerPart = 4;

using Triple = std::array<int64_t, 3>; // depth, height, width

// A chunk's part of the volume.
struct Region {
  Triple begin, size; // in voxels
};

class ZarrFile final : public VolumeFile {
 public:
  ZarrFile(const VolumeDescription& description, ZarrArray array, VolumeAxes axes, bool fills_missing)
      : VolumeFile(description), array_(std::move(array)), axes_(std::move(axes)), fills_missing_(fills_missing) {
    uint64_t count = 1;
    for (size_t n = 0; n < 3; ++n) {
      const int64_t chunk = array_.chunk[axes_.axis[n]];
      chunks_[n] = (description.shape[n] + chunk - 1) / chunk;
      count *= static_cast<uint64_t>(chunks_[n]); // below 2^48
    }
    if (count > kChunksMax)
      throw cannot_read(array_.file, "the volume has " + std::to_string(count) + " chunks, and may have " +
                                         std::to_string(kChunksMax) + "; a coarser level or larger chunks would do");
    count_ = static_cast<size_t>(count);
    find_strides();
  }

  // Looks at each chunk's file without decoding it.
  void check_chunks() const {
    uint64_t missing = 0;
    std::string first;
    for (size_t chunk = 0; chunk < count_; ++chunk) {
      const std::string path = path_of(chunk);
      if (is_there(path)) {
        const InputFile file(path);
        check_head(file);
      } else if (!fills_missing_ && missing++ == 0) {
        first = path;
      }
    }
    if (missing > 0)
      throw cannot_read(array_.folder, std::to_string(missing) + " of " + std::to_string(count_) +
                                           " chunks are missing, the first is '" +
                                           first.substr(array_.folder.size() + 1) +
                                           "'; missing=fill takes them as fill_value");
  }

  void read_into(std::span<uint8_t> target, Crew& crew) const override {
    crew.each(count_, kChunksPerPart, [&](size_t begin, size_t end) {
      Scratch scratch;
      for (size_t chunk = begin; chunk < end; ++chunk) read_chunk(chunk, target, scratch);
    });
  }

 private:
  // Memory of one thread. It is not initialised, so that a header that lies takes none before it was decoded.
  struct Scratch {
    std::unique_ptr<uint8_t[]> chunk;
    std::vector<uint8_t> file;
  };

  size_t element() const { return array_.dtype.bits / 8; }

  void find_strides() {
    int64_t stride = 1;
    std::vector<int64_t> strides(array_.chunk.size());
    for (size_t axis = strides.size(); axis-- > 0; stride *= array_.chunk[axis]) strides[axis] = stride;
    for (size_t axis = 0; axis < strides.size(); ++axis)
      first_ += axes_.place[axis] % array_.chunk[axis] * strides[axis];
    for (size_t n = 0; n < 3; ++n) strides_[n] = strides[axes_.axis[n]];
  }

  Triple place_of(size_t chunk) const {
    const auto n = static_cast<int64_t>(chunk);
    return {n / chunks_[2] / chunks_[1], n / chunks_[2] % chunks_[1], n % chunks_[2]};
  }
  std::string path_of(size_t chunk) const {
    const Triple own = place_of(chunk);
    std::vector<int64_t> place(array_.shape.size());
    for (size_t axis = 0; axis < place.size(); ++axis) place[axis] = axes_.place[axis] / array_.chunk[axis];
    for (size_t n = 0; n < 3; ++n) place[axes_.axis[n]] = own[n];
    return array_.folder + "/" + array_.key_of(place);
  }
  Region region_of(size_t chunk) const {
    Region region{};
    const Triple place = place_of(chunk);
    for (size_t n = 0; n < 3; ++n) {
      const int64_t side = array_.chunk[axes_.axis[n]];
      region.begin[n] = place[n] * side;
      region.size[n] = std::min(side, description().shape[n] - region.begin[n]);
    }
    return region;
  }
  size_t offset_of(const Triple& voxel) const {
    const Triple& shape = description().shape;
    return static_cast<size_t>((voxel[0] * shape[1] + voxel[1]) * shape[2] + voxel[2]) * element();
  }

  void check_head(const InputFile& file) const {
    const std::string why =
        look_at_chunk(array_.codec, file.first_bytes(kChunkHeadBytes), file.size(), array_.chunk_bytes());
    if (!why.empty()) throw cannot_read(file.path(), why);
  }

  // True if the chunk lies in the volume in one piece, as it lies in its file.
  bool is_in_one_piece(const Region& region) const {
    const Triple &shape = description().shape, &size = region.size;
    const uint64_t bytes = static_cast<uint64_t>(size[0] * size[1] * size[2]) * element();
    const bool has_whole_rows = size[2] == shape[2] || (size[1] == 1 && size[0] == 1);
    const bool has_whole_planes = size[1] == shape[1] || size[0] == 1;
    return bytes == array_.chunk_bytes() && has_whole_rows && has_whole_planes;
  }

  void read_chunk(size_t chunk, std::span<uint8_t> target, Scratch& scratch) const {
    const Region region = region_of(chunk);
    const std::string path = path_of(chunk);
    if (fills_missing_ && !is_there(path)) return fill(region, target);
    const size_t bytes = array_.chunk_bytes();
    const bool is_direct = is_in_one_piece(region);
    if (!is_direct && !scratch.chunk) scratch.chunk = std::make_unique_for_overwrite<uint8_t[]>(bytes);
    const std::span<uint8_t> decoded =
        is_direct ? target.subspan(offset_of(region.begin), bytes) : std::span(scratch.chunk.get(), bytes);
    decode(path, decoded, scratch.file);
    if (array_.is_big_endian) handlers::swap_bytes(decoded, element());
    if (!is_direct) copy(decoded.data(), region, target);
  }
  void decode(const std::string& path, std::span<uint8_t> decoded, std::vector<uint8_t>& packed) const {
    const InputFile file(path);
    check_head(file);
    if (array_.codec == ChunkCodec::none) return file.read_at(0, decoded);
    packed.resize(file.size());
    file.read_at(0, packed);
    const std::string why = decode_chunk(array_.codec, packed, decoded);
    if (!why.empty()) throw cannot_read(path, why);
  }
  void copy(const uint8_t* chunk, const Region& region, std::span<uint8_t> target) const {
    const size_t bytes = element();
    for (int64_t z = 0; z < region.size[0]; ++z)
      for (int64_t y = 0; y < region.size[1]; ++y) {
        const uint8_t* const from = chunk + static_cast<size_t>(first_ + z * strides_[0] + y * strides_[1]) * bytes;
        uint8_t* const to = target.data() + offset_of({region.begin[0] + z, region.begin[1] + y, region.begin[2]});
        if (strides_[2] == 1)
          std::memcpy(to, from, static_cast<size_t>(region.size[2]) * bytes);
        else
          for (size_t x = 0; x < static_cast<size_t>(region.size[2]); ++x)
            std::memcpy(to + x * bytes, from + x * static_cast<size_t>(strides_[2]) * bytes, bytes);
      }
  }
  void fill(const Region& region, std::span<uint8_t> target) const {
    for (int64_t z = 0; z < region.size[0]; ++z)
      for (int64_t y = 0; y < region.size[1]; ++y) {
        uint8_t* const to = target.data() + offset_of({region.begin[0] + z, region.begin[1] + y, region.begin[2]});
        for (size_t x = 0; x < static_cast<size_t>(region.size[2]); ++x)
          std::memcpy(to + x * element(), array_.fill.data(), element());
      }
  }

  const ZarrArray array_;
  const VolumeAxes axes_;
  const bool fills_missing_;
  Triple chunks_{};  // along each axis of the volume
  size_t count_ = 0; // along all three
  // Within a chunk, in elements: the volume's first voxel, and from one voxel to the next along its axes.
  int64_t first_ = 0;
  Triple strides_{};
};

ZarrArray read_level(const std::string& folder, int64_t level) {
  if (is_zarr_array(folder)) {
    if (level != 0)
      throw cannot_read(folder, "level is " + std::to_string(level) + ", and one array has level 0 alone");
    return read_zarr_array(folder);
  }
  const ZarrLevel found = find_level(folder, level);
  ZarrArray array = read_zarr_array(found.folder);
  if (found.axes.size() != array.shape.size())
    throw cannot_read(array.file, "shape: it has " + std::to_string(array.shape.size()) +
                                      " axes, and multiscales says " + std::to_string(found.axes.size()));
  array.axes = found.axes;
  return array;
}

} // namespace

std::unique_ptr<VolumeFile> open_zarr(const std::string& folder, const Wishes& wishes) {
  ZarrArray array = read_level(folder, wishes.level);
  VolumeAxes axes = choose_axes(array, wishes.at);
  VolumeDescription description = {"Zarr " + std::to_string(array.version), array.dtype, {}};
  for (size_t n = 0; n < 3; ++n) description.shape[n] = array.shape[axes.axis[n]];
  check_shape(array.file, "shape", description.shape);
  auto file = std::make_unique<ZarrFile>(description, std::move(array), std::move(axes), wishes.fills_missing);
  file->check_chunks();
  return file;
}

} // namespace millrace::volume
