// volume.file: gives the volume of a file.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "millrace/handler.h"
#include "plugins/crew/crew.h"
#include "plugins/volume/files/volume_file.h"

namespace millrace::volume {
namespace {

constexpr const char* kFileManual = &R"(
Gives the volume of a file, once: [depth, height, width] voxels of uint8, uint16 or float32. The first
bytes say the format:

- NPY, as `numpy.save` writes it. First axes of one element are passed over.
- TIFF and BigTIFF: the pages are the planes, and all must have one size and type.
- A folder of Zarr 2 or 3: one array, or OME-Zarr, of whose `multiscales` `level` chooses the size.
  Chunks are packed by blosc, zstd, gzip, zlib or nothing. Further axes, such as t and c, are passed
  over if they have one element, or else `at` chooses a place on each, as in `at: t=0,c=1`.
- With `shape`, `dtype`, `endian` and `offset` any file is read as raw numbers. Bytes that are left
  over are not looked at.

Numbers stay as they are. Everything but the packed bytes is checked before anything runs: a wrong type,
a file that breaks off, a codec that is not known, the head of each chunk. A missing chunk is an error;
with `missing: fill` it has the array's fill_value.

A file whose numbers lie as in memory (NPY, and raw numbers in the machine's order) is mapped, and takes
no memory of its own, unless a device copies it on each tick: readers there want `policy: latest`. A
mapped file must not be cut off while it is read. Others are decoded into one block.

    volume.file path=examples/data/balls.npy ! null.sink
)"[1];

class VolumeOfFile final : public Handler {
 public:
  void probe(Facts& facts) override {
    open();
    facts.tick_count(1);
  }
  void configure(const Formats& formats) override {
    if (!planned_) return;
    const std::array<int64_t, 3>& shape = planned_->shape;
    formats.tensor(volume_, planned_->dtype, {shape[0], shape[1], shape[2]}).adopted = is_mapped_;
  }
  void start() override {
    if (!file_) open(); // else it is open since the plan was made
  }
  void stop() override { file_.reset(); }
  void reset() override { is_given_ = false; }
  void interrupt() override { is_interrupted_ = true; }

  void process(Tick& tick, Cpu&) {
    if (is_given_) return tick.end();
    is_given_ = true;
    is_interrupted_ = false; // an earlier interrupt was meant for another call
    if (is_mapped_) return adopt(tick, *file_->mapped());
    const VolumeDescription& what = file_->description();
    const std::span<uint8_t> to = {volume_.allocate(tick, what.dtype, what.shape).data(),
                                   static_cast<size_t>(what.bytes())};
    Crew crew(static_cast<uint32_t>(std::max<int64_t>(*threads_, 1)),
              [this] { return is_interrupted_.load(std::memory_order_relaxed); });
    try {
      file_->read_into(to, crew);
    } catch (const Interrupted&) {
      volume_.withdraw(tick);
      tick.end();
    }
  }

 private:
  void open() {
    Wishes wishes;
    wishes.shape = *shape_;
    wishes.dtype = *dtype_;
    wishes.is_big_endian = *endian_ == "big";
    wishes.offset = static_cast<uint64_t>(*offset_);
    wishes.level = *level_;
    wishes.at = *at_;
    wishes.fills_missing = *missing_ == "fill";
    file_ = open_volume(*path_, wishes);
    planned_ = file_->description();
    is_mapped_ = file_->mapped().has_value();
    is_given_ = false;
  }
  // The mapping stays until the last reader is done.
  void adopt(Tick& tick, MappedVoxels voxels) const {
    const VolumeDescription& what = file_->description();
    auto* const held = new MappedVoxels(std::move(voxels));
    const auto release = [](void* context) { delete static_cast<MappedVoxels*>(context); };
    mr_value& value = volume_.adopt(tick, held->first.get(), held->size, release, held);
    detail::lay_out_tensor(what.dtype, what.shape, value.as.tensor);
  }

  Output<Tensor> volume_{*this,   "volume", dtypes<uint8_t, uint16_t, float>(),
                         rank(3), lasting,  help("[depth, height, width]")};
  Param<std::string> path_{*this, "path", "", "the file, or the folder of a Zarr", required, reads_path};
  Param<std::string> shape_{*this, "shape", "", "of raw numbers: DEPTHxHEIGHTxWIDTH; empty: the file says it"};
  Param<std::string> dtype_{*this, "dtype", "uint8", "of raw numbers", choices({"uint8", "uint16", "float32"})};
  Param<std::string> endian_{*this, "endian", "little", "order of the bytes of raw numbers",
                             choices({"little", "big"})};
  Param<int64_t> offset_{*this, "offset", 0, "bytes before the first raw number", range(0, 1e15)};
  Param<int64_t> level_{*this, "level", 0, "of an OME-Zarr; 0: the finest", range(0, 999)};
  Param<std::string> at_{*this, "at", "", "places on further axes of a Zarr, as in t=0,c=1"};
  Param<std::string> missing_{*this, "missing", "error", "chunks of a Zarr that are not there",
                              choices({"error", "fill"})};
  Param<int64_t> threads_{*this,          "threads",     0, "decode one volume; 0: a share of the run's",
                          range(0, 1024), counts_threads};

  std::unique_ptr<VolumeFile> file_;
  std::optional<VolumeDescription> planned_;
  bool is_mapped_ = false;
  bool is_given_ = false;
  std::atomic<bool> is_interrupted_{false};
};

MILLRACE_HANDLER(VolumeOfFile, "volume.file", "Gives the volume of a file", kFileManual)

} // namespace
} // namespace millrace::volume
