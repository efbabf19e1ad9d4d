// libFuzzer: whatever a file holds that video.file is given, it is played or refused with a sentence; pictures stay
// within their blocks, times rise, blocks that are borrowed come back.
//
// The handler runs as a plan would run it, on blocks of exactly the size that it asked for. FFmpeg's own faults are
// found by others; this looks for what we do with what it says.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

extern "C" {
#include <libavutil/mem.h>
}

#include "millrace/handler.h"

namespace {

constexpr size_t kInputBytesMax = 1 << 20;
constexpr uint64_t kBlockBytesMax = 64 << 20; // a picture of 16384 × 1024; a plan refuses larger ones by its own bound
constexpr size_t kFfmpegBytesMax = 256 << 20; // of one allocation
constexpr int kTicksMax = 64;

[[noreturn]] void fault(const char* words) {
  std::fprintf(stderr, "fault: %s\n", words);
  std::abort();
}
void require(bool holds, const char* words) {
  if (!holds) fault(words);
}

// The plan's memory: each block in an allocation of its own, so that a sanitizer sees a byte too far.
class Blocks {
 public:
  void plan(const mr_format& format) {
    mr_image image{};
    const auto pixel = static_cast<millrace::Pixel>(__builtin_ctzll(format.pixel_formats));
    bytes_ = std::max(millrace::lay_out_image(pixel, format.width, format.height, image), format.bytes_max);
    held_max_ = format.held;
  }
  bool fits() const { return bytes_ <= kBlockBytesMax; }

  mr_status allocate(mr_output& output, uint64_t bytes) {
    if (bytes > bytes_) return MR_ERROR;
    const std::lock_guard lock(mutex_);
    mine_ = make(bytes_);
    fill(output, mine_, 0);
    return MR_OK;
  }
  mr_status borrow(mr_block& block) {
    const std::lock_guard lock(mutex_);
    if (lent_.size() >= held_max_) return MR_ERROR;
    Block made = make(bytes_);
    block = {data_of(made), bytes_, ++token_};
    lent_.emplace(token_, std::move(made));
    return MR_OK;
  }
  mr_status give(mr_output& output, uint64_t token) {
    const std::lock_guard lock(mutex_);
    const auto found = lent_.find(token);
    require(found != lent_.end(), "a block that is given to a tick is lent");
    fill(output, found->second, token);
    return MR_OK;
  }
  void give_back(uint64_t token) {
    const std::lock_guard lock(mutex_);
    require(lent_.erase(token) == 1, "a block comes back once");
  }
  bool all_back() const { return lent_.empty(); }

 private:
  using Block = std::unique_ptr<uint8_t[]>; // the record, and the bytes after it

  static Block make(uint64_t bytes) { return std::make_unique<uint8_t[]>(sizeof(mr_value) + bytes); }
  static uint8_t* data_of(const Block& block) { return block.get() + sizeof(mr_value); }
  void fill(mr_output& output, const Block& block, uint64_t token) const {
    output.value = reinterpret_cast<mr_value*>(block.get());
    output.data = data_of(block);
    output.capacity = bytes_;
    output.state = MR_OUTPUT_OWN;
    output.token = token;
  }

  uint64_t bytes_ = 0;
  size_t held_max_ = 0;
  std::mutex mutex_; // FFmpeg's threads borrow and give back
  Block mine_;
  std::map<uint64_t, Block> lent_;
  uint64_t token_ = 0;
};

// One life of the handler, and what the runtime offers to it.
struct Life {
  Blocks blocks;
  std::string sentence;
};
Life& life_of(void* instance) { return *static_cast<Life*>(instance); }

mr_host host() {
  mr_host table{};
  table.size = sizeof table;
  table.abi_version = MR_ABI_VERSION;
  table.allocate = [](mr_tick* tick, uint32_t output, uint64_t bytes) {
    return life_of(tick->context).blocks.allocate(tick->outputs[output], bytes);
  };
  table.fail = [](void* instance, const char* sentence) { life_of(instance).sentence = sentence; };
  table.log = [](void*, uint32_t, const char* sentence) { require(sentence[0] != 0, "a message says something"); };
  table.now_ns = [](void*) { return int64_t{0}; };
  table.borrow = [](void* instance, uint32_t, mr_block* block) { return life_of(instance).blocks.borrow(*block); };
  table.give = [](mr_tick* tick, uint32_t output, uint64_t token) {
    return life_of(tick->context).blocks.give(tick->outputs[output], token);
  };
  table.give_back = [](void* instance, uint32_t, uint64_t token) { life_of(instance).blocks.give_back(token); };
  table.count = [](void*, const char*, int64_t) {};
  return table;
}

const mr_handler_type& video_file() {
  for (const mr_handler_type* type : millrace::detail::registered_types())
    if (std::string_view(type->type) == "video.file") return *type;
  fault("video.file is linked in");
}

void set(const mr_handler_type& type, void* self, const mr_declaration& declared, std::string_view name,
         const mr_param_value& value) {
  for (uint32_t i = 0; i < declared.param_count; ++i)
    if (name == declared.params[i].name) {
      require(type.set_param(self, i, &value) == MR_OK, "the parameter is taken");
      return;
    }
  fault("the parameter is there");
}

// A picture is what was planned, and lies in its block to the last byte.
void check_picture(const mr_output& output, const mr_format& planned, int64_t& last_ns) {
  require(output.value, "a tick has a picture");
  const mr_image& image = output.value->as.image;
  require(image.width == planned.width && image.height == planned.height, "a picture has the size that was planned");
  require(planned.pixel_formats == 1ull << image.format, "a picture has the format that was planned");
  require(image.plane_count > 0 && image.plane_count <= MR_PLANES_MAX, "a picture has planes");
  for (uint32_t i = 0; i < image.plane_count; ++i) {
    const mr_plane& plane = image.planes[i];
    const uint64_t end = plane.offset + uint64_t{plane.stride} * plane.rows;
    require(plane.rows > 0 && end <= output.capacity, "a plane lies in its block");
    uint64_t sum = 0; // reads each byte, for the sanitizer
    for (uint64_t at = plane.offset; at < end; ++at) sum += output.data[at];
    require(sum < UINT64_MAX, "bytes are there");
  }
  const mr_header& header = output.value->header;
  require(header.pts_ns > last_ns, "times rise");
  require(header.duration_ns >= 0, "a picture lasts some time or an unknown one");
  last_ns = header.pts_ns;
}

void play(const mr_handler_type& type, void* self, const mr_host& table, Life& life) {
  mr_facts facts = millrace::no_facts();
  if (type.probe(self, &facts) != MR_OK) return require(!life.sentence.empty(), "a refusal has a sentence");
  require(facts.rate_num >= 0 && facts.rate_den > 0 && facts.tick_count >= -1, "facts are possible");
  mr_format format{};
  format.size = sizeof format;
  if (type.configure(self, nullptr, 0, &format, 1) != MR_OK)
    return require(!life.sentence.empty(), "a refusal has a sentence");
  if (format.pixel_formats == 0) return; // the size is not known: the plan refuses
  require(format.width > 0 && format.height > 0, "a picture has a size");
  require(format.turn < MR_TURN_COUNT, "a turn is one of the eight");
  life.blocks.plan(format);
  if (!life.blocks.fits()) return;
  if (type.start(self) != MR_OK) return require(!life.sentence.empty(), "a failure has a sentence");
  int64_t last_ns = -1;
  for (uint64_t n = 0; n < kTicksMax; ++n) {
    mr_tick_info info{};
    info.index = n;
    mr_output output{};
    mr_tick tick{};
    tick.size = sizeof tick;
    tick.info = &info;
    tick.outputs = &output;
    tick.output_count = 1;
    tick.host = &table;
    tick.context = &life;
    life.sentence.clear();
    const mr_status status = type.process(self, &tick);
    if (status == MR_ERROR) break; // the runtime says why where memory ran out, the handler where a file is damaged
    if (status == MR_END) break;
    if (status == MR_NOT_YET) continue;
    check_picture(output, format, last_ns);
  }
  type.drain(self);
  type.stop(self);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kInputBytesMax) return 0;
  av_max_alloc(kFfmpegBytesMax);
  const int file = memfd_create("video", MFD_CLOEXEC);
  require(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size), "the file is written");
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  Life life;
  const mr_host table = host();
  const mr_handler_type& type = video_file();
  void* self = nullptr;
  const mr_declaration* declared = nullptr;
  require(type.create(&table, &life, &self, &declared) == MR_OK, "a handler is made");
  mr_param_value text{}, number{};
  text.type = MR_PARAM_STRING;
  text.as.text = path.c_str();
  number.type = MR_PARAM_INT;
  number.as.integer = 1; // in one order of work, so that what is found is found again
  set(type, self, *declared, "path", text);
  set(type, self, *declared, "threads", number);
  const std::vector<uint32_t> edges(declared->port_count, 1);
  require(type.bind(self, edges.data()) == MR_OK, "it is bound");
  play(type, self, table, life);
  type.destroy(self);
  require(life.blocks.all_back(), "every borrowed block has come back");
  close(file);
  return 0;
}
