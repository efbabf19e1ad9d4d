// Makes patches of NV12 pictures.
//
// Such a kernel is limited first by instructions and by the latency of its loads, and only then by memory bandwidth. So
// it loads words. A thread goes down two columns of a patch, keeps the results of a picture row for the next row of the
// patch, and issues the next row's loads before it colours and stores the present one. A block computes the picture
// rows and their weights once (tap_mix.h; window_mix.h for wider footprints). The usual tensor, halves of three
// channels, is stored without checks at run time. A picture at half its size, whose pixels are the means of four each,
// has a kernel of its own.
#include "handlers/gpu/nv12_patches.h"

#include "handlers/gpu/launch.cuh"
#include "handlers/gpu/tap_mix.h"
#include "handlers/gpu/tensor_store.cuh"

namespace millrace::handlers::gpu {
namespace {

constexpr uint32_t kWarp = 32;

// ---- storing ----------------------------------------------------------------------------------------------------

// The kinds of tensors that kernels tell apart: halves of three channels whose rows are even and whose bytes 32 bits
// can count, or anything else.
enum class Store { planar_halves, interleaved_halves, any };

Store store_of(const TensorForm& form) {
  const uint64_t numbers = uint64_t{form.count} * form.channels * form.width * form.height;
  if (!form.half || form.channels != 3 || form.width % 2 != 0 || numbers > UINT32_MAX / 2) return Store::any;
  return form.interleaved ? Store::interleaved_halves : Store::planar_halves;
}

__device__ uint32_t two_halves(float first, float second) {
  const __half2 both = __floats2half2_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&both);
}

struct SixHalves {
  uint32_t word[3];
};
__device__ SixHalves six_halves(const ChannelForm& channels, const UnitRgb& left, const UnitRgb& right) {
  const SixNumbers six = six_numbers(channels, left, right);
  return {two_halves(six.at[0], six.at[1]), two_halves(six.at[2], six.at[3]), two_halves(six.at[4], six.at[5])};
}

// Stores a word at a place that is counted in words of its type from the tensor's beginning, in 32 bits.
template <class Word>
__device__ void store_word(void* target, uint32_t index, const Word& word) {
  *reinterpret_cast<Word*>(static_cast<uint8_t*>(target) + static_cast<uint32_t>(sizeof(Word)) * index) = word;
}

// Stores three words of each thread of a warp consecutively, from the warp's `first` on. Each thread stores three words
// that lie a warp apart, so that every store of the warp fills whole lines. All threads of the warp call it with memory
// that they share.
template <class Word>
__device__ void store_by_warp(void* target, uint32_t first, const Word (&words)[3], Word (&shared)[3 * kWarp]) {
  const uint32_t lane = threadIdx.x % kWarp;
#pragma unroll
  for (uint32_t i = 0; i < 3; ++i) shared[3 * lane + i] = words[i];
  __syncwarp();
#pragma unroll
  for (uint32_t i = 0; i < 3; ++i) store_word(target, first + kWarp * i + lane, shared[kWarp * i + lane]);
  __syncwarp(); // before the next row is written
}

// ---- patches of any size ----------------------------------------------------------------------------------------

constexpr uint32_t kColumns = 2; // columns of a thread
// The threads of a block, which are all in one row of the patch, and the blocks that a multiprocessor holds.
constexpr uint32_t kThreads = 64, kBlocksResident = 16;
// The rows of a thread. A tensor of fewer than kSmallPixels pixels has too few threads to hide the latency of memory,
// so each gets fewer rows.
constexpr uint32_t kRows = 8, kRowsOfSmall = 2;
constexpr uint64_t kSmallPixels = 1 << 20;

// The part of a patch that a thread makes: two neighbouring columns of some rows. `x` is even.
struct Place {
  uint32_t x, top, bottom, patch;
};

// Stores the rows of a place. With kWarps, all threads of a warp call store() together.
template <Store kStore, bool kWarps>
class PairRows {
 public:
  __device__ PairRows(const TensorForm& form, const ChannelForm& channels, void* target, const Place& place)
      : form_(form), channels_(channels), target_(target), place_(place) {
    if constexpr (kStore == Store::planar_halves) {
      const uint32_t plane = form.width * form.height;
      for (uint32_t c = 0; c < 3; ++c)
        planes_[c] =
            own_address(static_cast<uint8_t*>(target) + 2 * ((3 * place.patch + channels.place[c]) * plane + place.x));
    }
  }

  __device__ void store(uint32_t y, const UnitRgb& left, const UnitRgb& right) const {
    if constexpr (kStore == Store::any) {
      store_any(form_, channels_, target_, place_.patch, place_.x, y, left, right);
    } else if constexpr (kStore == Store::planar_halves) {
      const auto store_words = [&](uint32_t channel, uint32_t words) {
        *reinterpret_cast<uint32_t*>(row_at(planes_[channel], y, 2 * form_.width)) = words;
      };
      store_words(0, two_halves(left.red, right.red));
      store_words(1, two_halves(left.green, right.green));
      store_words(2, two_halves(left.blue, right.blue));
    } else {
      __shared__ uint32_t shared[kThreads / kWarp][3 * kWarp];
      const SixHalves six = six_halves(channels_, left, right);
      const uint32_t lane = threadIdx.x % kWarp, pixel = (place_.patch * form_.height + y) * form_.width + place_.x;
      const uint32_t first = 3 * (pixel / 2);
      if (kWarps && place_.x - kColumns * lane + kColumns * kWarp <= form_.width)
        return store_by_warp(target_, first - 3 * lane, six.word, shared[threadIdx.x / kWarp]);
      for (uint32_t i = 0; i < 3; ++i) store_word(target_, first + i, six.word[i]);
    }
  }

 private:
  const TensorForm& form_;
  const ChannelForm& channels_;
  void* target_;
  Place place_;
  uint8_t* planes_[3]; // address of the place's column in each plane
};

// Many rows (kRows) keep results from one row to the next; few rows (kRowsOfSmall) are all loaded before any is mixed.
template <Store kStore, uint32_t kRowsEach, class Columns>
__device__ void mix_taps(const SampleSource& source, const Columns& columns, const RowPlan* plans, const Place& place,
                         const TensorForm& form, const ChannelForm& channels, void* target) {
  const PairRows<kStore, true> pairs(form, channels, target, place);
  const auto number = [&](const Sample& sample) {
    return normalized(channels, unit_rgb(source.numbers, sample.a, sample.b, sample.c));
  };
  Sample pixels[2];
  if constexpr (kRowsEach == kRowsOfSmall) {
    RowSlots<Columns, false> rows[kRowsOfSmall] = {{source, columns}, {source, columns}};
#pragma unroll
    for (uint32_t i = 0; i < kRowsOfSmall; ++i) rows[i].load(plans[i]);
#pragma unroll
    for (uint32_t i = 0; i < kRowsOfSmall; ++i) {
      rows[i].take(plans[i]);
      rows[i].mean(plans[i], pixels);
      if (place.top + i < place.bottom) pairs.store(place.top + i, number(pixels[0]), number(pixels[1]));
    }
  } else {
    RowSlots<Columns, true> rows(source, columns);
    RowPlan plan = plans[0];
    rows.load(plan);
#pragma unroll 1
    for (uint32_t y = place.top; y < place.bottom; ++y) {
      rows.take(plan);
      rows.mean(plan, pixels);
      plan = *++plans;
      rows.load(plan); // loads the next row while this one is coloured and stored
      pairs.store(y, number(pixels[0]), number(pixels[1]));
    }
  }
}

// Mixes both columns from one window, or each from its own.
template <uint32_t kWindows, Store kStore, bool kWarps>
__device__ void mix_windows(const SampleSource& source, const Footprint& left, const Footprint& right,
                            const Place& place, const Region& region, const TensorForm& form,
                            const ChannelForm& channels, void* target) {
  PairMixer<kWindows> mixer(source, left, right);
  const PairRows<kStore, kWarps> pairs(form, channels, target, place);
  const auto number = [&](const Sample& sample) {
    return normalized(channels, decoded<SampleLayout::nv12>(source.numbers, sample));
  };
#pragma unroll 1
  for (uint32_t y = place.top; y < place.bottom; ++y) {
    Sample pixels[2];
    mixer.mix(footprint(region.top, region.scale_y, static_cast<int32_t>(y), source.height), pixels);
    pairs.store(y, number(pixels[0]), number(pixels[1]));
  }
}

// Mixes sample by sample, for a footprint wider than a window. Not inlined, because it would take registers from the
// usual cases. Values that the caller computed are passed by value, or else the usual cases would have them in memory
// too.
__device__ __noinline__ void mix_singly(const SampleSource& source, Footprint left, Footprint right, Place place,
                                        Region region, const TensorForm& form, const ChannelForm& channels,
                                        void* target) {
#pragma unroll 1
  for (uint32_t y = place.top; y < place.bottom; ++y) {
    const Footprint rows = footprint(region.top, region.scale_y, static_cast<int32_t>(y), source.height);
    const auto pixel = [&](const Footprint& columns) {
      const Sample sample = mixed<SampleLayout::nv12>(source, columns, rows);
      return normalized(channels, decoded<SampleLayout::nv12>(source.numbers, sample));
    };
    store_any(form, channels, target, place.patch, place.x, y, pixel(left), pixel(right));
  }
}

// The facts about all footprints that are known before a launch: two taps in each direction; three columns and two taps
// down; no more columns than a window has; nothing.
enum class Scale { two_taps, thirds, windows, any };

// Beyond a scale of 2 a footprint's ends are rounded, so at a scale near 3 it might take a fifth column; at exactly 3
// they are whole numbers.
Scale scale_of(const SampleSource& source, const Regions& regions, const TensorForm& form) {
  const Region picture = whole_region(source, form);
  const bool two_rows = picture.scale_y <= kBilinearScaleMax, two_columns = picture.scale_x <= kBilinearScaleMax;
  if (!regions.whole || (two_columns && !two_rows)) return Scale::any;
  if (two_columns) return Scale::two_taps;
  const bool third = picture.scale_x == 3 && form.width < 1u << 22;
  if (third && two_rows && form.width % kColumns == 0) return Scale::thirds;
  return third || picture.scale_x <= 2.5f ? Scale::windows : Scale::any;
}

template <Scale kScale, Store kStore, uint32_t kRowsEach>
__global__ void __launch_bounds__(kThreads, kBlocksResident)
    cut_patches(const __grid_constant__ SampleSource source, const __grid_constant__ Regions regions,
                const __grid_constant__ TensorForm form, const __grid_constant__ ChannelForm channels, void* target) {
  constexpr bool kWhole = kScale != Scale::any; // no boxes are read
  if (!kWhole) await_inputs();
  const uint32_t x = (blockIdx.x * kThreads + threadIdx.x) * kColumns, top = blockIdx.y * kRowsEach;
  const Place place{x, top, min(top + kRowsEach, form.height), blockIdx.z};
  const Region region = kWhole ? whole_region(source, form) : region_at(regions, place.patch, source, form);
  // One plan more than there are rows. It repeats the last row's plan, so nothing is loaded for it.
  __shared__ RowPlan plans[kRowsEach + 1];
  if (kScale != Scale::windows && threadIdx.x <= kRowsEach) {
    constexpr float kUnit = kScale == Scale::thirds ? Thirds::kUnit : TwoTaps::kUnit;
    const auto y = static_cast<int32_t>(min(top + threadIdx.x, place.bottom - 1));
    plans[threadIdx.x] = row_plan(bilinear_footprint(region.top, region.scale_y, y, source.height), source.height,
                                  source.numbers.luma_step * kUnit, kUnit);
  }
  __syncthreads();
  if (x >= form.width) return;
  if constexpr (kScale == Scale::thirds) {
    await_inputs();
    mix_taps<kStore, kRowsEach>(source, Thirds(x), plans, place, form, channels, target);
    return;
  }
  if (!kWhole && !region.valid) {
    const UnitRgb zero = {0, 0, 0};
    const PairRows<kStore, true> pairs(form, channels, target, place);
    for (uint32_t y = top; y < place.bottom; ++y) pairs.store(y, zero, zero);
    return;
  }
  const bool two_taps = region.scale_x <= kBilinearScaleMax && region.scale_y <= kBilinearScaleMax;
  // A pixel after the last column uses the last one's footprint and is not stored.
  const uint32_t neighbour = min(x + 1, form.width - 1);
  if (kScale == Scale::two_taps || (kScale == Scale::any && two_taps)) {
    const auto columns_at = [&](uint32_t at) {
      return bilinear_footprint(region.left, region.scale_x, static_cast<int32_t>(at), source.width);
    };
    const TwoTaps columns(columns_at(x), columns_at(neighbour));
    if (kWhole) await_inputs();
    mix_taps<kStore, kRowsEach>(source, columns, plans, place, form, channels, target);
    return;
  }
  if constexpr (kScale == Scale::windows || kScale == Scale::any) {
    const auto columns_at = [&](uint32_t at) {
      return footprint(region.left, region.scale_x, static_cast<int32_t>(at), source.width);
    };
    const Footprint left = columns_at(x), right = columns_at(neighbour);
    if (kWhole) await_inputs();
    const bool fit = left.last - left.first < kWindowColumns && right.last - right.first < kWindowColumns;
    if (kScale == Scale::any && right.last - left.first < kWindowColumns)
      mix_windows<1, kStore, false>(source, left, right, place, region, form, channels, target);
    else if (kScale == Scale::windows || fit)
      mix_windows<2, kStore, kWhole>(source, left, right, place, region, form, channels, target);
    else
      mix_singly(source, left, right, place, region, form, channels, target);
  }
}

template <Scale kScale, Store kStore, uint32_t kRowsEach>
void launch_rows(cudaStream_t stream, const SampleSource& source, const Regions& regions, const TensorForm& form,
                 const ChannelForm& channels, void* target) {
  const dim3 blocks((form.width + kColumns * kThreads - 1) / (kColumns * kThreads),
                    (form.height + kRowsEach - 1) / kRowsEach, form.count);
  launch({blocks, kThreads, 0, stream}, cut_patches<kScale, kStore, kRowsEach>, source, regions, form, channels,
         target);
}

template <Scale kScale, Store kStore>
void launch_patches(cudaStream_t stream, const SampleSource& source, const Regions& regions, const TensorForm& form,
                    const ChannelForm& channels, void* target) {
  if (uint64_t{form.width} * form.height * form.count < kSmallPixels)
    launch_rows<kScale, kStore, kRowsOfSmall>(stream, source, regions, form, channels, target);
  else
    launch_rows<kScale, kStore, kRows>(stream, source, regions, form, channels, target);
}

// ---- half as large ----------------------------------------------------------------------------------------------

constexpr uint32_t kHalvedPixels = 4; // neighbouring pixels of a thread, in one row

// True if the tensor is the picture at exactly half its size and all of a thread's words are aligned so that two can be
// moved at once. Then a footprint is 2 by 2 pixels, each of which weighs a quarter, with one pair of chroma.
bool is_half_size(const SampleSource& source, const Regions& regions, const TensorForm& form, const void* target) {
  const auto aligned = [&](int plane) {
    return reinterpret_cast<uintptr_t>(source.planes[plane]) % 8 == 0 && source.strides[plane] % 8 == 0;
  };
  return regions.whole && form.count == 1 && int64_t{source.width} == 2 * int64_t{form.width} &&
         int64_t{source.height} == 2 * int64_t{form.height} && form.width % kHalvedPixels == 0 && aligned(0) &&
         aligned(1) && reinterpret_cast<uintptr_t>(target) % 8 == 0;
}

// Adds two bytes of the word, from byte kFirst on, to `sum`.
template <uint32_t kFirst>
__device__ uint32_t two_bytes(uint32_t word, uint32_t sum) {
  return __dp4a(word, 0x0101u << 8 * kFirst, sum);
}

template <Store kStore>
__global__ void __launch_bounds__(kBlockWidth* kBlockHeight)
    halve_size(const __grid_constant__ SampleSource source, const __grid_constant__ TensorForm form,
               const __grid_constant__ ChannelForm channels, void* target) {
  await_inputs();
  const uint32_t x = (blockIdx.x * kBlockWidth + threadIdx.x) * kHalvedPixels;
  const uint32_t y = blockIdx.y * kBlockHeight + threadIdx.y;
  if (x >= form.width || y >= form.height) return;
  const auto eight = [&](int plane, uint32_t row) {
    return *reinterpret_cast<const uint2*>(source.planes[plane] + (row * source.strides[plane] + 2 * x));
  };
  const uint2 above = eight(0, 2 * y), below = eight(0, 2 * y + 1), chroma = eight(1, y);
  const uint32_t sums[kHalvedPixels] = {
      two_bytes<0>(above.x, two_bytes<0>(below.x, 0)), two_bytes<2>(above.x, two_bytes<2>(below.x, 0)),
      two_bytes<0>(above.y, two_bytes<0>(below.y, 0)), two_bytes<2>(above.y, two_bytes<2>(below.y, 0))};
  const float us[kHalvedPixels] = {number_of_byte<0>(chroma.x), number_of_byte<2>(chroma.x),
                                   number_of_byte<0>(chroma.y), number_of_byte<2>(chroma.y)};
  const float vs[kHalvedPixels] = {number_of_byte<1>(chroma.x), number_of_byte<3>(chroma.x),
                                   number_of_byte<1>(chroma.y), number_of_byte<3>(chroma.y)};
  UnitRgb pixels[kHalvedPixels];
#pragma unroll
  for (uint32_t i = 0; i < kHalvedPixels; ++i) {
    const Sample sample = {static_cast<float>(sums[i]) * 0.25f, us[i], vs[i]};
    pixels[i] = normalized(channels, decoded<SampleLayout::nv12>(source.numbers, sample));
  }
  const uint32_t plane = form.width * form.height / 4, place = (y * form.width + x) / 4; // in units of two words
  if constexpr (kStore == Store::planar_halves) {
    const auto store = [&](uint32_t channel, float UnitRgb::*color) {
      store_word(
          target, channels.place[channel] * plane + place,
          make_uint2(two_halves(pixels[0].*color, pixels[1].*color), two_halves(pixels[2].*color, pixels[3].*color)));
    };
    store(0, &UnitRgb::red);
    store(1, &UnitRgb::green);
    store(2, &UnitRgb::blue);
  } else {
    __shared__ uint2 shared[kBlockHeight][3 * kWarp];
    const SixHalves first = six_halves(channels, pixels[0], pixels[1]),
                    last = six_halves(channels, pixels[2], pixels[3]);
    const uint2 words[3] = {make_uint2(first.word[0], first.word[1]), make_uint2(first.word[2], last.word[0]),
                            make_uint2(last.word[1], last.word[2])};
    if ((blockIdx.x + 1) * kBlockWidth * kHalvedPixels <= form.width)
      return store_by_warp(target, 3 * (place - threadIdx.x), words, shared[threadIdx.y]);
    for (uint32_t i = 0; i < 3; ++i) store_word(target, 3 * place + i, words[i]);
  }
}
static_assert(kBlockWidth == kWarp, "a warp has a row");

template <Store kStore>
const char* launch_stored(cudaStream_t stream, const SampleSource& source, const Regions& regions,
                          const TensorForm& form, const ChannelForm& channels, void* target) {
  if (is_half_size(source, regions, form, target)) {
    launch({blocks_for(form.width / kHalvedPixels, form.height), kBlock, 0, stream}, halve_size<kStore>, source, form,
           channels, target);
    return launched();
  }
  switch (scale_of(source, regions, form)) {
    case Scale::two_taps:
      launch_patches<Scale::two_taps, kStore>(stream, source, regions, form, channels, target);
      break;
    case Scale::thirds: launch_patches<Scale::thirds, kStore>(stream, source, regions, form, channels, target); break;
    case Scale::windows: launch_patches<Scale::windows, kStore>(stream, source, regions, form, channels, target); break;
    case Scale::any: launch_patches<Scale::any, kStore>(stream, source, regions, form, channels, target); break;
  }
  return launched();
}

} // namespace

const char* launch_nv12_patches(void* stream, const SampleSource& source, const Regions& regions,
                                const TensorForm& form, const ChannelForm& channels, void* target) {
  const auto on = static_cast<cudaStream_t>(stream);
  switch (store_of(form)) {
    case Store::planar_halves: return launch_stored<Store::planar_halves>(on, source, regions, form, channels, target);
    case Store::interleaved_halves:
      return launch_stored<Store::interleaved_halves>(on, source, regions, form, channels, target);
    case Store::any: launch_patches<Scale::any, Store::any>(on, source, regions, form, channels, target);
  }
  return launched();
}

} // namespace millrace::handlers::gpu
