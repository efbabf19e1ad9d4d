// volume.test: a source of a volume that every machine makes with the same bytes.
#include <cstdint>

#include "millrace/handler.h"
#include "plugins/volume/test_scene.h"

namespace millrace::volume {
namespace {

constexpr const char* kTestManual = &R"(
Gives one volume, [depth, height, width] voxels of 8 bits, with the same bytes on every machine: balls
that are brighter towards their middle, and tubes along all three axes with less light. Their places
come from `seed`.

    volume.test width=32 height=32 depth=32 ! null.sink
)"[1];

class TestVolume final : public Handler {
 public:
  void probe(Facts& facts) override { facts.tick_count(1); }
  void configure(const Formats& formats) override {
    formats.tensor(volume_, dtype_of<uint8_t>(), {*depth_, *height_, *width_});
  }
  void reset() override { is_given_ = false; }
  void process(Tick& tick, Cpu&) {
    if (is_given_) return tick.end();
    is_given_ = true;
    const int64_t shape[] = {*depth_, *height_, *width_};
    const SceneSize size = {static_cast<int32_t>(*width_), static_cast<int32_t>(*height_),
                            static_cast<int32_t>(*depth_)};
    TestScene(volume_.allocate(tick, dtype_of<uint8_t>(), shape).elements<uint8_t>(), size,
              static_cast<uint64_t>(*seed_));
  }

 private:
  static constexpr double kSideMax = 2048;

  Output<Tensor> volume_{*this, "volume", dtypes<uint8_t>(), rank(3), lasting, help("[depth, height, width]")};
  Param<int64_t> width_{*this, "width", 128, "voxels from left to right", range(1, kSideMax)};
  Param<int64_t> height_{*this, "height", 128, "voxels from top to bottom", range(1, kSideMax)};
  Param<int64_t> depth_{*this, "depth", 128, "voxels away from the eye", range(1, kSideMax)};
  Param<int64_t> seed_{*this, "seed", 1, "other places for another seed"};
  bool is_given_ = false;
};

MILLRACE_HANDLER(TestVolume, "volume.test", "Gives a volume of balls and tubes", kTestManual)

} // namespace
} // namespace millrace::volume
