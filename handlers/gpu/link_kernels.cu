// Kernels of points.links.
//
// A warp looks for the nearest of up to four points. Its lanes go through all points, 32 at a time, and each of the
// four has a list of its nearest that lies across the lanes, the best first. A candidate that is not worse than the
// last of the list is inserted, which happens seldom. Then one thread for each pair of a point and one of its nearest
// decides if it is a link that this point owns. The blocks add up how many come before theirs, so the links lie in the
// order of the rule.
//
// Links of the tick before are found by the ids of their ends. Each end is put into a chain of all ends at its point.
// So a point finds its links, and the order within a chain does not matter.
//
//   [recall_places, recall_links] → find_nearest → [find_pairs, cap_degrees] → give_links → [find_fading, give_fading]
//
// Those in brackets are for rules that need them.
#include "handlers/gpu/link_kernels.h"

#include <algorithm>
#include <cmath>

#include "handlers/gpu/kept_count.cuh"
#include "handlers/gpu/launch.cuh"
#include "handlers/gpu/link_work.h"

namespace millrace::handlers::gpu {

namespace {

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr uint32_t kSimpleThreads = 256;

// Arguments of all kernels.
struct Joining {
  DeviceList<Point> points;
  LinkRule rule;
  float ratio; // LinkRule::linked_ratio()
  LinkState state;
  LinkWork work;
  uint32_t most; // links
  MadeList<Link> to;

  __device__ PlaceTable places() const { return {state.slots, state.slot_mask, work.counts->turn}; }
  __device__ bool too_high(const Point& a, const Point& b) const {
    return rule.delta_y_max > 0 && !(fabsf(a.y - b.y) <= rule.delta_y_max);
  }
};

__device__ uint32_t thread_of_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }

// ---- the places of ids, and the tick before
// ----------------------------------------------------------------------------------------------

// Called for all points by the first kernel, which finds the turn of the tick before in the state.
__device__ void insert_place(const Joining& on, uint32_t place) {
  const PlaceTable table{on.state.slots, on.state.slot_mask, on.state.turn->turn + 1};
  const Point* const points = on.points.records;
  const int64_t id = points[place].id;
  if (id < 0 || !is_joinable(points[place])) return;
  const auto mine = static_cast<unsigned long long>(table.entry(place));
  for (uint32_t at = PlaceTable::first_slot(id, table.mask);; at = (at + 1) & table.mask) {
    auto* const slot = reinterpret_cast<unsigned long long*>(&table.slots[at]);
    unsigned long long found = *reinterpret_cast<volatile unsigned long long*>(slot);
    if (!table.holds(found)) {
      const unsigned long long before = atomicCAS(slot, found, mine);
      if (before == found) return;
      found = before; // another thread was faster, with an entry of this turn
    }
    if (points[static_cast<uint32_t>(found)].id != id) continue;
    atomicMin(slot, mine); // the first point has the id
    return;
  }
}

// Called once by the first kernel.
__device__ void begin_turn(const Joining& on) {
  on.work.counts->linked = on.work.counts->fading = 0;
  on.work.counts->before = on.state.turn->last;
  on.work.counts->turn = on.state.turn->turn + 1;
}

__global__ void recall_places(const __grid_constant__ Joining on) {
  await_inputs();
  const uint32_t point = thread_of_grid();
  if (point == 0) begin_turn(on);
  if (point >= on.points.size()) return;
  on.work.past_ends[point] = kNone;
  insert_place(on, point);
}

__device__ void chain_end(uint32_t* first_of, LinkEnd* ends, uint32_t end, uint32_t point, uint32_t other) {
  ends[end] = {atomicExch(&first_of[point], end), other};
}

__device__ const PastLink* past_list(const Joining& on, uint32_t list) {
  return on.state.past + size_t{list} * on.most;
}

__global__ void recall_links(const __grid_constant__ Joining on) {
  await_inputs();
  const uint32_t l = thread_of_grid(), before = on.work.counts->before;
  if (l >= on.state.turn->counts[before]) return;
  const PastLink link = past_list(on, before)[l];
  const PlaceTable places = on.places();
  const uint32_t a = places.find(on.points.records, link.id_a), b = places.find(on.points.records, link.id_b);
  on.work.is_renewed[l] = 0;
  if (a == PlaceTable::kNowhere || b == PlaceTable::kNowhere) {
    on.work.past[2 * l].other = kNone;
    return;
  }
  chain_end(on.work.past_ends, on.work.past, 2 * l, a, b);
  chain_end(on.work.past_ends, on.work.past, 2 * l + 1, b, a);
}

// ---- the nearest --------------------------------------------------------------------------------------------------

constexpr uint32_t kTilePoints = 6'144; // in shared memory
constexpr uint32_t kStep = 4;           // candidates of a lane at a time
constexpr uint32_t kWarpsMax = 32;      // in a block

// The nearest of one point, the best in lane 0. All lanes of a warp have it.
struct Nearest {
  float x, y;     // the point; NaN if it cannot be joined
  float limit;    // a candidate with a larger score is none of the nearest
  float score;    // this lane's; infinite if there is none
  uint32_t other; // this lane's; kNone
};

// Puts a candidate into its place, if it is one of the nearest k and not in the list yet.
template <bool kRemembers>
__device__ void insert(Nearest& list, uint32_t k, float score, uint32_t other) {
  const uint32_t lane = threadIdx.x % 32;
  const bool before = list.score < score || (list.score == score && list.other < other);
  const uint32_t place = __popc(__ballot_sync(kAllLanes, before));
  if (place >= k) return;
  if (kRemembers && __any_sync(kAllLanes, list.other == other)) return; // it was linked, and has a better score
  const float moved_score = __shfl_up_sync(kAllLanes, list.score, 1);
  const uint32_t moved_other = __shfl_up_sync(kAllLanes, list.other, 1);
  if (lane >= place) {
    list.score = lane == place ? score : moved_score;
    list.other = lane == place ? other : moved_other;
  }
  list.limit = fminf(list.limit, __shfl_sync(kAllLanes, list.score, static_cast<int>(k - 1)));
}

// The scores of partners of the tick before come first: they are better than what the search below finds of them.
__device__ void insert_partners(const Joining& on, uint32_t point, Nearest& list) {
  const Point here = on.points.records[point];
  for (uint32_t end = on.work.past_ends[point]; end != kNone; end = on.work.past[end].next) {
    const uint32_t other = on.work.past[end].other;
    if (!past_list(on, on.work.counts->before)[end / 2].is_linked) continue;
    const Point there = on.points.records[other];
    const float score = rounded_product(squared_distance(here, there), on.ratio);
    if (!(score <= list.limit) || (!on.rule.delta_after && on.too_high(here, there))) continue;
    insert<true>(list, on.rule.k, score, other);
  }
}

// The score of a candidate without a past; NaN if it is none.
template <bool kBefore>
__device__ float score_of(const Nearest& list, float2 candidate, float delta_y_max) {
  const float dy = list.y - candidate.y;
  const float squared = squared_distance(list.x - candidate.x, dy);
  return !kBefore || fabsf(dy) <= delta_y_max ? squared : NAN;
}

// A warp has kPoints points. kBefore: a limit of the height removes candidates.
template <uint32_t kPoints, bool kBefore, bool kRemembers>
__global__ void __launch_bounds__(kWarpsMax * 32) find_nearest(const __grid_constant__ Joining on) {
  await_inputs();
  __shared__ float2 tile[kTilePoints];
  const uint32_t count = on.points.size(), lane = threadIdx.x % 32, k = on.rule.k;
  const uint32_t first = (thread_of_grid() / 32) * kPoints;
  if (!kRemembers && thread_of_grid() == 0) begin_turn(on);
  if (!kRemembers)
    for (uint32_t p = thread_of_grid(); p < count; p += gridDim.x * blockDim.x) insert_place(on, p);
  if (blockIdx.x * (blockDim.x / 32) * kPoints >= count) return;

  Nearest lists[kPoints];
  MR_UNROLL
  for (uint32_t p = 0; p < kPoints; ++p) {
    Nearest& list = lists[p];
    const bool is_there = first + p < count && is_joinable(on.points.records[first + p]);
    list.x = is_there ? on.points.records[first + p].x : NAN;
    list.y = is_there ? on.points.records[first + p].y : NAN;
    list.limit = on.rule.radius > 0 ? rounded_product(on.rule.radius, on.rule.radius) : INFINITY;
    list.score = INFINITY;
    list.other = kNone;
    if (on.rule.degree_max > 0 && lane == 0 && first + p < count) on.work.pair_ends[first + p] = kNone;
    if (kRemembers && is_there && on.rule.hysteresis > 0) insert_partners(on, first + p, list);
  }
  for (uint32_t begin = 0; begin < count; begin += kTilePoints) {
    const uint32_t size = min(kTilePoints, count - begin);
    const uint32_t filled = (size + 32 * kStep - 1) / (32 * kStep) * (32 * kStep);
    __syncthreads();
    for (uint32_t t = threadIdx.x; t < filled; t += blockDim.x) {
      float2 place = {NAN, NAN};
      if (t < size) place = *reinterpret_cast<const float2*>(&on.points.records[begin + t].x);
      if (!isfinite(place.x) || !isfinite(place.y)) place = {NAN, NAN};
      tile[t] = place;
    }
    __syncthreads();
    for (uint32_t at = 0; at < filled; at += 32 * kStep) {
      float scores[kPoints][kStep];
      bool any = false;
      MR_UNROLL
      for (uint32_t s = 0; s < kStep; ++s) {
        const float2 candidate = tile[at + s * 32 + lane];
        MR_UNROLL
        for (uint32_t p = 0; p < kPoints; ++p) {
          scores[p][s] = score_of<kBefore>(lists[p], candidate, on.rule.delta_y_max);
          any = any || scores[p][s] <= lists[p].limit;
        }
      }
      if (!__any_sync(kAllLanes, any)) continue;
      MR_UNROLL
      for (uint32_t p = 0; p < kPoints; ++p) MR_UNROLL
      for (uint32_t s = 0; s < kStep; ++s)
        for (uint32_t found = __ballot_sync(kAllLanes, scores[p][s] <= lists[p].limit); found; found &= found - 1) {
          const uint32_t from = __ffs(static_cast<int>(found)) - 1;
          const uint32_t other = begin + at + s * 32 + from;
          const float score = __shfl_sync(kAllLanes, scores[p][s], static_cast<int>(from));
          if (other != first + p) insert<kRemembers>(lists[p], k, score, other);
        }
    }
  }
  MR_UNROLL
  for (uint32_t p = 0; p < kPoints; ++p) {
    if (first + p >= count || lane >= k) continue;
    const size_t pair = size_t{first + p} * k + lane;
    on.work.near[pair] = lists[p].other;
    if (on.rule.degree_max > 0) on.work.scores[pair] = lists[p].score;
  }
}

// ---- the links ----------------------------------------------------------------------------------------------------

// True if the pair is a link, and the point owns it. `other` becomes the second point.
__device__ bool is_owned_link(const Joining& on, uint32_t pair, uint32_t point, uint32_t& other) {
  other = on.work.near[pair];
  if (other == kNone) return false;
  if (on.rule.delta_after && on.too_high(on.points.records[point], on.points.records[other])) return false;
  if (other > point) return true;
  const uint32_t* const near = on.work.near + size_t{other} * on.rule.k;
  for (uint32_t n = 0; n < on.rule.k; ++n)
    if (near[n] == point) return false; // both have each other, and the one before owns it
  return true;
}

__global__ void find_pairs(const __grid_constant__ Joining on) {
  await_inputs();
  const uint32_t pair = thread_of_grid(), point = pair / on.rule.k;
  if (point >= on.points.size()) return;
  uint32_t other;
  const bool is_pair = is_owned_link(on, pair, point, other);
  on.work.is_pair[pair] = is_pair;
  if (!is_pair) return;
  chain_end(on.work.pair_ends, on.work.ends, 2 * pair, point, other);
  chain_end(on.work.pair_ends, on.work.ends, 2 * pair + 1, other, point);
}

// True if at this point fewer than `most` links come before the one of `end`, as before(end, l) says for another one.
template <class Before>
__device__ bool is_among_first(const uint32_t* first_of, const LinkEnd* ends, uint32_t point, uint32_t end,
                               uint32_t most, const Before& before) {
  uint32_t better = 0;
  for (uint32_t l = first_of[point]; l != kNone && better < most; l = ends[l].next) better += l != end && before(l);
  return better < most;
}

__global__ void cap_degrees(const __grid_constant__ Joining on) {
  await_inputs();
  const uint32_t pair = thread_of_grid(), point = pair / on.rule.k;
  if (point >= on.points.size()) return;
  on.work.is_kept[pair] = 0;
  if (!on.work.is_pair[pair]) return;
  const LinkEnd* const ends = on.work.ends;
  const uint32_t other = ends[2 * pair].other, a = min(point, other), b = max(point, other);
  const float score = on.work.scores[pair];
  const auto before = [&](uint32_t end) {
    const uint32_t p = end / 2, one = p / on.rule.k, two = ends[2 * p].other;
    const float its = on.work.scores[p];
    if (its != score) return its < score;
    const uint32_t its_a = min(one, two), its_b = max(one, two);
    return its_a != a ? its_a < a : its_b < b;
  };
  on.work.is_kept[pair] = is_among_first(on.work.pair_ends, ends, point, 2 * pair, on.rule.degree_max, before) &&
                          is_among_first(on.work.pair_ends, ends, other, 2 * pair + 1, on.rule.degree_max, before);
}

// Finds the life of a link before this tick, and marks it as linked again.
__device__ float take_past_life(const Joining& on, uint32_t a, uint32_t b) {
  for (uint32_t end = on.work.past_ends[a]; end != kNone; end = on.work.past[end].next) {
    if (on.work.past[end].other != b) continue;
    on.work.is_renewed[end / 2] = 1;
    return past_list(on, on.work.counts->before)[end / 2].life;
  }
  return 0;
}

__device__ void give(const Joining& on, uint32_t place, const Link& link, bool is_linked) {
  if (place >= on.most) return;
  on.to.records[place] = link;
  if (!on.state.past) return;
  on.state.past[size_t{1 - on.work.counts->before} * on.most + place] = {link.id_a, link.id_b, link.life, is_linked};
}

// Called once, when it is known how many links there are.
__device__ void end_list(const Joining& on, uint32_t count) {
  const uint32_t given = min(count, on.most);
  *on.to.count = given;
  if (count > given) on.work.counts->left_out += count - given;
  on.state.turn->turn = on.work.counts->turn;
  if (!on.state.past) return;
  const uint32_t list = 1 - on.work.counts->before;
  on.state.turn->counts[list] = given;
  on.state.turn->last = list;
}

__global__ void __launch_bounds__(kPairsOfBlock) give_links(const __grid_constant__ Joining on) {
  await_inputs();
  constexpr uint32_t kWarps = kPairsOfBlock / 32;
  __shared__ uint32_t of_warp[kWarps], before_of_warp[kWarps];
  const uint32_t count = on.points.size(), k = on.rule.k, pairs = count * k;
  if (pairs == 0) {
    if (thread_of_grid() == 0 && on.rule.fade <= 0) end_list(on, 0);
    return;
  }
  if (blockIdx.x * kPairsOfBlock >= pairs) return;
  const uint32_t pair = thread_of_grid(), point = pair / k, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t other = kNone;
  bool is_link = false;
  if (pair < pairs && on.rule.degree_max == 0) is_link = is_owned_link(on, pair, point, other);
  if (pair < pairs && on.rule.degree_max > 0 && on.work.is_kept[pair]) {
    is_link = true;
    other = on.work.near[pair];
  }
  const uint32_t votes = __ballot_sync(kAllLanes, is_link);
  if (lane == 0) of_warp[warp] = __popc(votes);
  __syncthreads();
  uint32_t in_block = 0, place = __popc(votes & ((1u << lane) - 1));
  for (uint32_t w = 0; w < kWarps; ++w) {
    if (w < warp) place += of_warp[w];
    in_block += of_warp[w];
  }
  const uint64_t turn = on.work.counts->turn;
  auto* const sums = reinterpret_cast<volatile unsigned long long*>(on.state.sums);
  if (threadIdx.x == 0) sums[blockIdx.x] = turn << 32 | in_block;
  // Blocks begin in their order, so those before this one come to give their sums.
  uint32_t before = 0;
  for (uint32_t b = threadIdx.x; b < blockIdx.x; b += kPairsOfBlock) {
    unsigned long long sum;
    do sum = sums[b];
    while (sum >> 32 != turn);
    before += static_cast<uint32_t>(sum);
  }
  for (uint32_t step = 16; step > 0; step /= 2) before += __shfl_xor_sync(kAllLanes, before, static_cast<int>(step));
  if (lane == 0) before_of_warp[warp] = before;
  __syncthreads();
  before = 0;
  for (uint32_t w = 0; w < kWarps; ++w) before += before_of_warp[w];
  if (is_link) {
    const PlaceTable places = on.places();
    const uint32_t a = min(point, other), b = max(point, other);
    Link link;
    link.a = static_cast<int32_t>(a);
    link.b = static_cast<int32_t>(b);
    link.id_a = places.id_at(on.points.records, a);
    link.id_b = places.id_at(on.points.records, b);
    link.length = sqrtf(squared_distance(on.points.records[a], on.points.records[b]));
    link.life = risen_life(on.state.past ? take_past_life(on, a, b) : 0, on.rule.gain);
    give(on, before + place, link, true);
  }
  if (threadIdx.x > 0 || (blockIdx.x + 1) * kPairsOfBlock < pairs) return; // not the last block
  on.work.counts->linked = before + in_block;
  if (on.rule.fade <= 0) end_list(on, before + in_block);
}

// ---- links that fade ----------------------------------------------------------------------------------------------

__device__ float faded_life(const Joining& on, uint32_t l) {
  return rounded_product(past_list(on, on.work.counts->before)[l].life, on.rule.fade);
}

// True if a link of the tick before, whose points are both there, is not linked any more and has life.
__device__ bool fades(const Joining& on, uint32_t l) { return !on.work.is_renewed[l] && faded_life(on, l) > kLifeMin; }

__global__ void find_fading(const __grid_constant__ Joining on) {
  await_inputs();
  const uint32_t l = thread_of_grid();
  if (l >= on.state.turn->counts[on.work.counts->before] || on.work.past[2 * l].other == kNone || !fades(on, l)) return;
  const LinkEnd* const ends = on.work.past;
  const uint32_t one = ends[2 * l + 1].other, two = ends[2 * l].other; // end 2·l is at `one`
  const float life = faded_life(on, l);
  const auto is_kept_at = [&](uint32_t point, uint32_t end) {
    const int64_t partner = on.points.records[ends[end].other].id;
    return is_among_first(on.work.past_ends, ends, point, end, on.rule.k, [&](uint32_t e) {
      if (!fades(on, e / 2)) return false;
      const float its = faded_life(on, e / 2);
      return its != life ? its > life : on.points.records[ends[e].other].id < partner;
    });
  };
  if (!is_kept_at(one, 2 * l) || !is_kept_at(two, 2 * l + 1)) return;
  const int64_t id_one = on.points.records[one].id, id_two = on.points.records[two].id;
  on.work.fading[atomicAdd(&on.work.counts->fading, 1u)] = {min(id_one, id_two), max(id_one, id_two), min(one, two),
                                                            max(one, two), life};
}

// The place of a fading link is that of its ids among those of all.
__global__ void give_fading(const __grid_constant__ Joining on) {
  await_inputs();
  const uint32_t count = on.work.counts->fading, linked = on.work.counts->linked;
  if (thread_of_grid() == 0) end_list(on, linked + count);
  const uint32_t f = thread_of_grid();
  if (f >= count) return;
  const FadingLink mine = on.work.fading[f];
  uint32_t before = 0;
  for (uint32_t g = 0; g < count; ++g) {
    const int64_t low = on.work.fading[g].low;
    before += low < mine.low || (low == mine.low && on.work.fading[g].high < mine.high);
  }
  const Point &a = on.points.records[mine.a], &b = on.points.records[mine.b];
  Link link;
  link.a = static_cast<int32_t>(mine.a);
  link.b = static_cast<int32_t>(mine.b);
  link.id_a = a.id;
  link.id_b = b.id;
  link.length = sqrtf(squared_distance(a, b));
  link.life = mine.life;
  give(on, linked + before, link, false);
}

// ---- launches -----------------------------------------------------------------------------------------------------

// One thread for each of so many.
LaunchShape simple_shape(void* stream, uint64_t count) {
  const auto blocks = static_cast<unsigned>((count + kSimpleThreads - 1) / kSimpleThreads);
  return {std::max(blocks, 1u), kSimpleThreads, 0, static_cast<cudaStream_t>(stream)};
}

uint32_t processors() {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;
  if (cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) return 1;
  return static_cast<uint32_t>(std::max(count, 1));
}

template <uint32_t kPoints, bool kBefore, bool kRemembers>
void launch_nearest(void* stream, const Joining& on) {
  const uint32_t warps = (on.points.most + kPoints - 1) / kPoints;
  const uint32_t of_block = std::clamp((warps + processors() - 1) / processors(), 4u, kWarpsMax);
  launch({std::max((warps + of_block - 1) / of_block, 1u), of_block * 32, 0, static_cast<cudaStream_t>(stream)},
         find_nearest<kPoints, kBefore, kRemembers>, on);
}

template <uint32_t kPoints>
void launch_nearest(void* stream, const Joining& on) {
  const bool before = on.rule.delta_y_max > 0 && !on.rule.delta_after;
  if (before && on.rule.remembers()) return launch_nearest<kPoints, true, true>(stream, on);
  if (before) return launch_nearest<kPoints, true, false>(stream, on);
  if (on.rule.remembers()) return launch_nearest<kPoints, false, true>(stream, on);
  launch_nearest<kPoints, false, false>(stream, on);
}

const char* join(void* stream, const DeviceList<Point>& points, const LinkRule& rule, const LinkState& state,
                 void* scratch, uint32_t most, const MadeList<Link>& links) {
  const LinkWork work = lay_out_work(scratch, rule, points.most, most);
  const Joining on{points, rule, rule.linked_ratio(), state, work, most, links};
  const uint64_t pairs = uint64_t{points.most} * rule.k;
  if (rule.remembers()) {
    launch(simple_shape(stream, points.most), recall_places, on);
    launch(simple_shape(stream, most), recall_links, on);
  }
  const uint32_t resident = processors() * kWarpsMax; // warps
  if (points.most <= resident / 2)
    launch_nearest<1>(stream, on);
  else if (points.most <= resident * 2)
    launch_nearest<2>(stream, on);
  else
    launch_nearest<4>(stream, on);
  if (rule.degree_max > 0) {
    launch(simple_shape(stream, pairs), find_pairs, on);
    launch(simple_shape(stream, pairs), cap_degrees, on);
  }
  launch({std::max(static_cast<unsigned>(pair_blocks(points.most, rule.k)), 1u), kPairsOfBlock, 0,
          static_cast<cudaStream_t>(stream)},
         give_links, on);
  if (rule.fade > 0) {
    launch(simple_shape(stream, most), find_fading, on);
    launch(simple_shape(stream, most), give_fading, on);
  }
  return launched();
}

} // namespace

const LinkKernels& link_kernels() {
  static const LinkKernels kernels{&join, kKeptCount};
  return kernels;
}

} // namespace millrace::handlers::gpu
