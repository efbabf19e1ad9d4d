// Kernels of points.links.
//
// Each block has all points in shared memory, or 6,144 at a time, sorted into cells of a few. A warp looks for the
// nearest of up to four points, in the cells around each, and further away only if there may be nearer ones. The list
// of the nearest lies across its lanes, the best first. Then one thread for each pair of a point and one of its nearest
// decides if it is a link that this point owns. The blocks add up how many come before theirs, so the links lie in the
// order of the rule.
//
// Links of the tick before are found by the ids of their ends. Each end is put into a chain of all ends at its point.
// So a point finds its links, and the order within a chain does not matter.
//
//   [recall_places, recall_links] → find_nearest → [find_pairs, cap_degrees] → give_links → [find_fading, give_fading]
//
// Those in brackets are for rules that need them.
//
// A short list and a plain rule need one kernel: to sort the points takes longer there than to look at all of them.
#include "handlers/gpu/link_kernels.h"

#include <algorithm>
#include <cmath>

#include "handlers/gpu/few_points.cuh"
#include "handlers/gpu/kept_count.cuh"
#include "handlers/gpu/launch.cuh"
#include "handlers/gpu/link_work.h"
#include "handlers/gpu/point_cells.cuh"

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
};

__device__ uint32_t thread_of_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }

// ---- the places of ids, and the tick before -----------------------------------------------------------------------

// Called for all points by the first kernel, which finds the turn of the tick before in the state.
__device__ void insert_place(const Joining& on, uint32_t place) {
  const PlaceTable table{on.state.slots, on.state.slot_mask, next_turn(on.state.turn->turn)};
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
  on.work.counts->turn = next_turn(on.state.turn->turn);
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

// Scores are compared by their bits. No score is negative, so bits and numbers have one order. NaN comes last.
constexpr uint32_t kInfinite = 0x7f800000, kNoScore = kInfinite + 1, kUsed = UINT32_MAX;
static_assert(kUsed > kNoScore);

// The nearest of one point, the best in lane 0. All lanes of a warp have it.
struct Nearest {
  float x, y;     // the point; NaN if it cannot be joined
  uint32_t limit; // a candidate with a larger score is none of the nearest
  uint32_t score; // this lane's; kNoScore
  uint32_t other; // this lane's; kNone
};

__device__ Nearest begin_list(const Joining& on, uint32_t point, uint32_t count) {
  const float radius = on.rule.radius;
  Nearest list{NAN, NAN, kInfinite, kNoScore, kNone};
  if (radius > 0) list.limit = __float_as_uint(rounded_product(radius, radius));
  if (point >= count || !is_joinable(on.points.records[point])) return list;
  list.x = on.points.records[point].x;
  list.y = on.points.records[point].y;
  return list;
}

// Inserts a candidate. Returns false if k others are nearer; then no candidate with a larger score is among the
// nearest.
template <bool kRemembers>
__device__ bool insert(Nearest& list, uint32_t k, uint32_t score, uint32_t other) {
  const uint32_t lane = threadIdx.x % 32;
  const bool before = list.score < score || (list.score == score && list.other < other);
  const uint32_t place = __popc(__ballot_sync(kAllLanes, before));
  if (place >= k) return false;
  if (kRemembers && __any_sync(kAllLanes, list.other == other)) return true; // it was linked, and has a better score
  const uint32_t moved_score = __shfl_up_sync(kAllLanes, list.score, 1);
  const uint32_t moved_other = __shfl_up_sync(kAllLanes, list.other, 1);
  if (lane >= place) {
    list.score = lane == place ? score : moved_score;
    list.other = lane == place ? other : moved_other;
  }
  list.limit = min(list.limit, __shfl_sync(kAllLanes, list.score, static_cast<int>(k - 1)));
  return true;
}

// The scores of partners of the tick before come first: they are better than what the search below finds of them.
__device__ void insert_partners(const Joining& on, uint32_t point, Nearest& list) {
  const Point here = on.points.records[point];
  for (uint32_t end = on.work.past_ends[point]; end != kNone; end = on.work.past[end].next) {
    const uint32_t other = on.work.past[end].other;
    if (!past_list(on, on.work.counts->before)[end / 2].is_linked) continue;
    const Point there = on.points.records[other];
    if (!on.rule.delta_after && on.rule.parts(here, there)) continue;
    const uint32_t score = __float_as_uint(rounded_product(squared_distance(here, there), on.ratio));
    if (score <= list.limit) insert<true>(list, on.rule.k, score, other);
  }
}

// The search of one point in one tile. All lanes of a warp call its functions together.
template <bool kBefore, bool kRemembers>
struct Search {
  const Joining& on;
  const Tile& tile;
  const uint32_t point;
  Nearest& list;

  // Looks at cells around the point's own, and further away as long as there may be anything nearer.
  __device__ void run() {
    const int32_t column = tile.across.cell(list.x), row = tile.down.cell(list.y);
    look_at_rows(column - 1, column + 1, row - 1);
    for (int32_t reach = 1;; ++reach) {
      const float gap = fminf(tile.across.gap(list.x, column - reach, column + reach),
                              tile.down.gap(list.y, row - reach, row + reach));
      if (gap == INFINITY || __uint_as_float(list.limit) < gap * gap * (1 - 1e-6f)) return;
      const int32_t next = reach + 1;
      for (int32_t beside = row - next; beside <= row + next; ++beside) {
        if (beside < 0 || beside >= tile.down.count) continue;
        if (beside == row - next || beside == row + next) {
          look_at_row(column - next, column + next, beside);
        } else {
          look_at_row(column - next, column - next, beside);
          look_at_row(column + next, column + next, beside);
        }
      }
    }
  }

 private:
  // Three rows at a time, since a row of three cells has fewer points than a warp has lanes.
  __device__ void look_at_rows(int32_t left, int32_t right, int32_t top) {
    left = max(left, 0);
    right = min(right, tile.across.count - 1);
    uint32_t begins[3], ends[3]; // begins in the tile, ends as if the rows lay one after the other
    uint32_t all = 0;
    MR_UNROLL
    for (int32_t r = 0; r < 3; ++r) {
      const bool is_row = top + r >= 0 && top + r < tile.down.count;
      begins[r] = is_row ? tile.begin_of(left, top + r) : 0;
      all += is_row ? tile.end_of(right, top + r) - begins[r] : 0;
      ends[r] = all;
    }
    for (uint32_t i = threadIdx.x % 32; i - threadIdx.x % 32 < all; i += 32) {
      const uint32_t at = i < ends[0] ? begins[0] + i : i < ends[1] ? begins[1] + i - ends[0] : begins[2] + i - ends[1];
      look_at(at, i < all);
    }
  }
  __device__ void look_at_row(int32_t left, int32_t right, int32_t row) {
    if (left >= tile.across.count || right < 0) return;
    const uint32_t end = tile.end_of(min(right, tile.across.count - 1), row);
    for (uint32_t at = tile.begin_of(max(left, 0), row); at < end; at += 32)
      look_at(at + threadIdx.x % 32, at + threadIdx.x % 32 < end);
  }

  // Each lane has one candidate. Takes the best of them, one after the other, as long as they are among the nearest.
  __device__ void look_at(uint32_t at, bool is_there) {
    uint32_t score = kUsed, other = kNone;
    if (is_there) {
      const uint32_t of_tile = tile.order[at];
      const float2 place = tile.places[of_tile];
      const float dy = list.y - place.y;
      other = tile.begin + of_tile;
      if (other != point && (!kBefore || fabsf(dy) <= on.rule.delta_y_max))
        score = __float_as_uint(squared_distance(list.x - place.x, dy));
    }
    for (;;) {
      const uint32_t best = __reduce_min_sync(kAllLanes, score);
      if (best > list.limit) return;
      const uint32_t first = __reduce_min_sync(kAllLanes, score == best ? other : kNone);
      if (other == first) score = kUsed;
      if (!insert<kRemembers>(list, on.rule.k, best, first)) return;
    }
  }
};

// The blocks from `searching` on put the points into the table of places, the others search. A warp has kPoints points.
// kBefore: a limit of the height removes candidates.
template <uint32_t kPoints, bool kBefore, bool kRemembers>
__global__ void __launch_bounds__(kTileWarpsMax * 32)
    find_nearest(const __grid_constant__ Joining on, uint32_t searching) {
  await_inputs();
  extern __shared__ float2 shared[];
  const uint32_t count = on.points.size(), lane = threadIdx.x % 32, k = on.rule.k;
  if (blockIdx.x >= searching) {
    const uint32_t point = thread_of_grid() - searching * blockDim.x;
    if (point == 0) begin_turn(on);
    if (point < count) insert_place(on, point);
    return;
  }
  const uint32_t first = (thread_of_grid() / 32) * kPoints;
  if (blockIdx.x * (blockDim.x / 32) * kPoints >= count) return;
  const uint32_t tile_points = min(kTilePoints, on.points.most);
  auto* const ends = reinterpret_cast<uint32_t*>(shared + tile_points);
  Tile tile{shared, reinterpret_cast<uint16_t*>(ends + kCellsMax), ends};
  Nearest lists[kPoints];
  MR_UNROLL
  for (uint32_t p = 0; p < kPoints; ++p) {
    lists[p] = begin_list(on, first + p, count);
    if (on.rule.degree_max > 0 && lane == 0 && first + p < count) on.work.pair_ends[first + p] = kNone;
    if (kRemembers && lists[p].x == lists[p].x && on.rule.hysteresis > 0) insert_partners(on, first + p, lists[p]);
  }
  for (uint32_t begin = 0; begin < count; begin += tile_points) {
    fill_tile(on.points, begin, min(tile_points, count - begin), 0.5f * static_cast<float>(k) + 0.5f, tile);
    MR_UNROLL
    for (uint32_t p = 0; p < kPoints; ++p)
      if (lists[p].x == lists[p].x) Search<kBefore, kRemembers>{on, tile, first + p, lists[p]}.run();
  }
  MR_UNROLL
  for (uint32_t p = 0; p < kPoints; ++p) {
    if (first + p >= count || lane >= k) continue;
    const size_t pair = size_t{first + p} * k + lane;
    on.work.near[pair] = lists[p].other;
    if (on.rule.degree_max > 0) on.work.scores[pair] = __uint_as_float(lists[p].score);
  }
}

// ---- the links ----------------------------------------------------------------------------------------------------

// True if a point and one of its nearest are a link, and the point owns it.
__device__ bool owns_link(const Joining& on, uint32_t point, uint32_t other) {
  if (other == kNone) return false;
  if (on.rule.delta_after && on.rule.parts(on.points.records[point], on.points.records[other])) return false;
  if (other > point) return true;
  const uint32_t* const near = on.work.near + size_t{other} * on.rule.k;
  bool have_each_other = false; // then the one before owns it
#pragma unroll 4
  for (uint32_t n = 0; n < on.rule.k; ++n) have_each_other |= near[n] == point;
  return !have_each_other;
}

__global__ void find_pairs(const __grid_constant__ Joining on) {
  await_inputs();
  const uint32_t pair = thread_of_grid(), point = pair / on.rule.k;
  if (point >= on.points.size()) return;
  const uint32_t other = on.work.near[pair];
  const bool is_pair = owns_link(on, point, other);
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
__device__ void end_list(const Joining& on, uint32_t count, uint32_t turn) {
  const uint32_t given = min(count, on.most);
  *on.to.count = given;
  if (count > given) on.work.counts->left_out += count - given;
  on.state.turn->turn = turn;
  if (!on.state.past) return;
  const uint32_t list = 1 - on.work.counts->before;
  on.state.turn->counts[list] = given;
  on.state.turn->last = list;
}

// Numbers that blocks tell each other, each with the turn in which they do. Blocks begin in their order, so a block may
// wait for those before it.
class Told {
 public:
  __device__ Told(uint64_t* words, uint32_t turn) : words_(reinterpret_cast<volatile Word*>(words)), turn_(turn) {}
  __device__ void tell(uint32_t block, uint32_t number) const { words_[block] = Word{turn_} << 32 | number; }
  __device__ uint32_t await(uint32_t block) const {
    Word word;
    do word = words_[block];
    while (word >> 32 != turn_);
    return static_cast<uint32_t>(word);
  }

 private:
  using Word = unsigned long long;
  volatile Word* words_;
  uint32_t turn_;
};

// The order of links: that of the threads that have them.
struct LinkOrder {
  uint32_t before; // links of the block's threads before this one
  uint32_t all;    // those of the block
};

// Counts the links of a block, and tells the others. All threads of a block call it.
template <uint32_t kWarps>
__device__ LinkOrder count_links(bool is_link, const Told& sums) {
  __shared__ uint32_t of_warp[kWarps];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, votes = __ballot_sync(kAllLanes, is_link);
  if (lane == 0) of_warp[warp] = __popc(votes);
  __syncthreads();
  LinkOrder order{static_cast<uint32_t>(__popc(votes & ((1u << lane) - 1))), 0};
  for (uint32_t w = 0; w < kWarps; ++w) {
    if (w < warp) order.before += of_warp[w];
    order.all += of_warp[w];
  }
  if (threadIdx.x == 0) sums.tell(blockIdx.x, order.all);
  return order;
}

// How many links the blocks before this one have. All threads of a block call it.
template <uint32_t kWarps>
__device__ uint32_t await_links_before(const Told& sums) {
  __shared__ uint32_t of_warp[kWarps];
  uint32_t before = 0;
  for (uint32_t block = threadIdx.x; block < blockIdx.x; block += kWarps * 32) before += sums.await(block);
  before = __reduce_add_sync(kAllLanes, before);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = before;
  __syncthreads();
  before = 0;
  for (uint32_t w = 0; w < kWarps; ++w) before += of_warp[w];
  return before;
}

__global__ void __launch_bounds__(kPairsOfBlock) give_links(const __grid_constant__ Joining on) {
  await_inputs();
  constexpr uint32_t kWarps = kPairsOfBlock / 32;
  const uint32_t k = on.rule.k, pair = thread_of_grid(), point = pair / k;
  // Loads come first, also of what may not be needed, since each takes long.
  const uint32_t turn = on.work.counts->turn;
  uint32_t other = point < on.points.most ? on.work.near[pair] : kNone; // also beyond the list's end
  const uint32_t count = on.points.size(), pairs = count * k;
  if (pairs == 0) {
    if (thread_of_grid() == 0 && on.rule.fade <= 0) end_list(on, 0, turn);
    return;
  }
  if (blockIdx.x * kPairsOfBlock >= pairs) return;
  if (pair >= pairs) other = kNone;
  Point one, two;
  if (other != kNone) {
    one = on.points.records[point];
    two = on.points.records[other];
  }
  bool is_link = false;
  if (other != kNone) is_link = on.rule.degree_max > 0 ? on.work.is_kept[pair] : owns_link(on, point, other);
  const Told sums(on.state.sums, turn);
  const LinkOrder order = count_links<kWarps>(is_link, sums);
  Link link;
  if (is_link) { // before the wait below
    const PlaceTable places{on.state.slots, on.state.slot_mask, turn};
    const int64_t id = places.id_at(on.points.records, point, one.id);
    const int64_t other_id = places.id_at(on.points.records, other, two.id);
    const uint32_t a = min(point, other), b = max(point, other);
    link.a = static_cast<int32_t>(a);
    link.b = static_cast<int32_t>(b);
    link.id_a = a == point ? id : other_id;
    link.id_b = a == point ? other_id : id;
    link.length = sqrtf(squared_distance(one, two));
    link.life = risen_life(on.state.past ? take_past_life(on, a, b) : 0, on.rule.gain);
  }
  const uint32_t before = await_links_before<kWarps>(sums);
  if (is_link) give(on, before + order.before, link, true);
  if (threadIdx.x > 0 || (blockIdx.x + 1) * kPairsOfBlock < pairs) return; // not the last block
  on.work.counts->linked = before + order.all;
  if (on.rule.fade <= 0) end_list(on, before + order.all, turn);
}

// ---- few points ---------------------------------------------------------------------------------------------------

// kUsed for the point itself, and for what a limit of the height removes.
template <bool kBefore>
__device__ uint32_t score_of(const Joining& on, const FewPoints& few, uint32_t point, float2 here, uint32_t other) {
  const float2 there = few.place(other);
  const float dy = here.y - there.y;
  if (other == point || (kBefore && !(fabsf(dy) <= on.rule.delta_y_max))) return kUsed;
  return __float_as_uint(squared_distance(here.x - there.x, dy));
}

// The nearest of a point, lane n with the n-th; kNone: there are fewer. All lanes of a warp call it.
template <bool kBefore>
__device__ uint32_t nearest_of_few(const Joining& on, const FewPoints& few, uint32_t point, uint32_t count) {
  const uint32_t lane = threadIdx.x % 32, k = on.rule.k;
  const uint32_t limit =
      on.rule.radius > 0 ? __float_as_uint(rounded_product(on.rule.radius, on.rule.radius)) : kInfinite;
  const float2 here = few.place(point);
  uint32_t best = kUsed, row = 0; // in this lane's column
  for (uint32_t begin = 0; begin * 32 < count; begin += FewPoints::kRowsAtOnce) {
    MR_UNROLL
    for (uint32_t r = begin; r < begin + FewPoints::kRowsAtOnce; ++r) {
      const uint32_t score = score_of<kBefore>(on, few, point, here, r * 32 + lane);
      if (score < best) best = score, row = r;
    }
  }
  uint32_t other = kNone;
  for (uint32_t n = 0; n < k; ++n) {
    const uint32_t least = __reduce_min_sync(kAllLanes, best);
    if (least > limit) break;
    const uint32_t found = __reduce_min_sync(kAllLanes, best == least ? row * 32 + lane : kNone);
    if (lane == n) other = found;
    if (n + 1 == k) break;
    // The next one of its column: each lane looks at one row.
    const uint32_t column = found % 32, candidate = lane * 32 + column;
    uint32_t score = score_of<kBefore>(on, few, point, here, candidate);
    if (score < least || (score == least && candidate <= found)) score = kUsed; // found before
    const uint32_t next = __reduce_min_sync(kAllLanes, score);
    const uint32_t next_row = __ffs(static_cast<int>(__ballot_sync(kAllLanes, score == next))) - 1;
    if (lane == column) best = next, row = next_row;
  }
  return other;
}

// True if a point is among the nearest of another one, which its block has told.
__device__ bool is_near_of(const Joining& on, uint32_t other, uint32_t point, const Told& listed) {
  constexpr uint32_t kAtOnce = 8;
  listed.await(other / kFewPointsOfBlock);
  __threadfence();
  const uint32_t* const near = on.work.near + size_t{other} * on.rule.k;
  bool is_near = false;
  for (uint32_t begin = 0; begin < on.rule.k; begin += kAtOnce) {
    uint32_t its[kAtOnce];
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) its[n] = begin + n < on.rule.k ? __ldcg(near + begin + n) : kNone;
    MR_UNROLL
    for (uint32_t n = 0; n < kAtOnce; ++n) is_near |= its[n] == point;
  }
  return is_near;
}

// All of points.links. A warp has one point, and its lane n the n-th of its nearest.
template <bool kBefore>
__global__ void __launch_bounds__(kFewPointsOfBlock * 32) join_few(const __grid_constant__ Joining on) {
  await_inputs();
  constexpr uint32_t kThreads = kFewPointsOfBlock * 32;
  __shared__ FewPoints few;
  const uint32_t turn = next_turn(on.state.turn->turn), count = few.load<kThreads>(on.points);
  if (count == 0 && thread_of_grid() == 0) end_list(on, 0, turn);
  if (blockIdx.x * kFewPointsOfBlock >= count) return;
  __syncthreads();
  const Told sums(on.state.sums, turn), listed(on.state.sums + gridDim.x, turn);
  const uint32_t point = thread_of_grid() / 32, lane = threadIdx.x % 32;
  const uint32_t other = point < count ? nearest_of_few<kBefore>(on, few, point, count) : kNone;
  if (point < count && lane < on.rule.k) on.work.near[size_t{point} * on.rule.k + lane] = other;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence(); // for what the whole block has written
    listed.tell(blockIdx.x, 0);
  }
  for (uint32_t p = threadIdx.x; p < count; p += kThreads) few.insert(p); // while that is on its way
  bool is_link = other != kNone;
  if (is_link && on.rule.delta_after) is_link = !on.rule.parts(few.place(point).y, few.place(other).y);
  if (is_link && other < point) is_link = !is_near_of(on, other, point, listed); // else that one owns it
  __syncwarp();
  const LinkOrder order = count_links<kFewPointsOfBlock>(is_link, sums);
  Link link;
  if (is_link) { // before the wait below
    const uint32_t a = min(point, other), b = max(point, other);
    const float2 one = few.place(a), two = few.place(b);
    link.a = static_cast<int32_t>(a);
    link.b = static_cast<int32_t>(b);
    link.id_a = few.id_at(a);
    link.id_b = few.id_at(b);
    link.length = sqrtf(squared_distance(one.x - two.x, one.y - two.y));
    link.life = risen_life(0, on.rule.gain);
  }
  const uint32_t before = await_links_before<kFewPointsOfBlock>(sums);
  if (is_link) give(on, before + order.before, link, true);
  if (threadIdx.x == 0 && (blockIdx.x + 1) * kFewPointsOfBlock >= count) end_list(on, before + order.all, turn);
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
  if (thread_of_grid() == 0) end_list(on, linked + count, on.work.counts->turn);
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

bool drops_candidates(const LinkRule& rule) { return rule.delta_y_max > 0 && !rule.delta_after; }

void launch_few(void* stream, const Joining& on) {
  const LaunchShape shape{std::max(static_cast<unsigned>(few_blocks(on.points.most)), 1u), kFewPointsOfBlock * 32, 0,
                          static_cast<cudaStream_t>(stream)};
  launch(shape, drops_candidates(on.rule) ? join_few<true> : join_few<false>, on);
}

template <uint32_t kPoints, bool kBefore, bool kRemembers>
void launch_nearest(void* stream, const Joining& on) {
  const uint32_t warps = (on.points.most + kPoints - 1) / kPoints;
  // A block sorts all points, which takes as long on every processor: a few warps more share that work.
  const uint32_t of_block = std::clamp((warps + processors() - 1) / processors(), 16u, kTileWarpsMax);
  const uint32_t searching = (warps + of_block - 1) / of_block, threads = of_block * 32;
  const uint32_t inserting = kRemembers ? 0 : std::max((on.points.most + threads - 1) / threads, 1u);
  const unsigned shared = Tile::bytes(std::min(kTilePoints, on.points.most));
  cudaFuncSetAttribute(find_nearest<kPoints, kBefore, kRemembers>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(Tile::bytes(kTilePoints)));
  launch({std::max(searching + inserting, 1u), threads, shared, static_cast<cudaStream_t>(stream)},
         find_nearest<kPoints, kBefore, kRemembers>, on, searching);
}

template <uint32_t kPoints>
void launch_nearest(void* stream, const Joining& on) {
  const bool before = drops_candidates(on.rule);
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
  if (points.most <= kFewPoints && !rule.remembers() && rule.degree_max == 0) {
    launch_few(stream, on);
    return launched();
  }
  if (rule.remembers()) {
    launch(simple_shape(stream, points.most), recall_places, on);
    launch(simple_shape(stream, most), recall_links, on);
  }
  const uint32_t resident = processors() * kTileWarpsMax; // warps
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
