// Options of ports and parameters: small values that a declaration takes after the name, in any order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "millrace/payload.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// For the output of a handler with one input: it may forward its input if both formats are equal.
struct MayRepeat {};
inline constexpr MayRepeat may_repeat{};

// The tensors of all items of a call lie in one piece of memory: Input::all() and Output::allocate_all().
struct Dense {};
inline constexpr Dense dense{};

// The handler fires without a value on this input, and may be left unconnected.
struct Optional {};
inline constexpr Optional optional{};

// Beside `optional`: the input brings what the handler is for. The plan has a note if no such input is connected,
// because then the handler does nothing.
struct IdleWithout {};
inline constexpr IdleWithout idle_without{};

// The input takes the newest value and holds nobody up: where the pipeline gives its edge no policy, that is a queue of
// depth 1 that drops the oldest.
struct Newest {};
inline constexpr Newest newest{};

// The output's values count until a successor comes, which is seldom, or for the whole run: a volume, a table, a
// network's weights. Readers take it by `latest`. A device gets each value once, and has room for one and its
// successor.
struct Lasting {};
inline constexpr Lasting lasting{};

// The parameter may change between two ticks of a run.
struct Live {};
inline constexpr Live live{};

// The pipeline must give the parameter.
struct Required {};
inline constexpr Required required{};

// The port is in host memory, also when a GPU body runs.
struct OnCpu {};
inline constexpr OnCpu on_cpu{};

// The port is in device memory.
struct OnGpu {};
inline constexpr OnGpu on_gpu{};

// The handler still reads the values of the last `count` ticks of this input.
struct Keeps {
  uint32_t count;
};
inline Keeps keeps(uint32_t count) { return {count}; }

// The least and the greatest value of a number.
struct Range {
  double min, max;
};
inline Range range(double min, double max) { return {min, max}; }
inline Range at_least(double min) { return {min, std::numeric_limits<double>::infinity()}; }

// The unit of a number: "px", "s".
struct Unit {
  const char* text;
};
inline Unit unit(const char* text) { return {text}; }

// The only values of a string.
struct Choices {
  std::vector<const char*> names;
};
inline Choices choices(std::initializer_list<const char*> names) { return {names}; }

// The pixel formats that a port takes or makes. The plan chooses the first, in the order of Pixel, that both ends know.
struct Pixels {
  uint64_t bits;
};
inline Pixels pixels(std::initializer_list<Pixel> formats) {
  uint64_t bits = 0;
  for (Pixel pixel : formats) bits |= bit_of(pixel);
  return {bits};
}

// The element types that a tensor port takes or makes: dtypes<float, uint8_t>(); also Float16 and BFloat16.
struct DTypes {
  uint32_t bits;
};
template <class... T>
DTypes dtypes() {
  const uint32_t bits = (bit_of(dtype_of<T>()) | ...); // in the braces of the result nvcc 13.0 would lose the type
  return {bits};
}
// The same, given as a set of MR_DTYPES_*.
inline DTypes dtypes(uint32_t set) { return {set}; }

// The number of dimensions that a tensor port takes or makes: rank(3), or ranks(2, 4) for two to four.
struct Ranks {
  uint32_t bits;
};
inline Ranks rank(uint32_t count) { return {1u << count}; }
inline Ranks ranks(uint32_t min, uint32_t max) { return {(2u << max) - (1u << min)}; }

// The largest number of records in one value.
struct CountMax {
  uint64_t count;
};
inline CountMax count_max(uint64_t count) { return {count}; }

// The input takes square pixels only. The plan adds a step that scales other pictures.
struct SquarePixels {};
inline constexpr SquarePixels square_pixels{};

// The parameter names a file, or files by a pattern. A relative path begins at the folder of the pipeline file. Before
// a run, the paths that its handlers read and write are compared.
struct ReadsPath {};
inline constexpr ReadsPath reads_path{};
struct WritesPath {};
inline constexpr WritesPath writes_path{};

// Used with writes_path: the handler writes numbered pieces instead of one file if the parameter with cuts_paths is not
// empty. The pattern names the pieces; "take.mp4" becomes "take-000.mp4" and so on.
struct InPieces {};
inline constexpr InPieces in_pieces{};
struct CutsPaths {};
inline constexpr CutsPaths cuts_paths{};

// The parameter is how many threads compute one call, the caller among them; the handler's library starts the others.
// The default is 0: then the plan sets a share of the threads that the run was given.
struct CountsThreads {};
inline constexpr CountsThreads counts_threads{};

// The parameter names an object of the run (Handler::share): this handler is the one that owns it, or it joins the
// owner, which is on the same node. The plan refuses a second owner of a name, and a handler that joins none. `kind`
// says what such objects are, as in "viewer".
struct Owns {
  const char* kind;
};
inline Owns owns(const char* kind) { return {kind}; }
struct Joins {
  const char* kind;
};
inline Joins joins(const char* kind) { return {kind}; }

// The parameter is a number of seconds (a double). Its text may have a unit: 500ms, 5s, 10min, 2h.
struct Seconds {};
inline constexpr Seconds seconds{};

// The property of the output picture that this parameter sets, for a handler that converts(); MR_ROLE_*.
struct Role {
  uint32_t role;
};
inline constexpr Role says_pixels{MR_ROLE_PIXELS}, says_matrix{MR_ROLE_MATRIX}, says_range{MR_ROLE_RANGE},
    says_turn{MR_ROLE_TURN}, says_width{MR_ROLE_WIDTH}, says_height{MR_ROLE_HEIGHT};

// One sentence about a port.
struct Help {
  const char* text;
};
inline Help help(const char* text) { return {text}; }

// The relation of an output to an input: like(), forward(), in_place().
struct Relation {
  uint32_t input;
  uint32_t flags;
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
