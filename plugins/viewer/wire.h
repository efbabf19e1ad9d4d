// The messages between a page and its viewer, in bytes and in text. This file knows neither pages nor pictures.
//
// A picture is one binary message, all numbers big endian:
//
//   0  u32  sequence number, from 1, of this page
//   4  f64  when the picture came to the viewer, in seconds of the viewer's clock
//   12 u32  width    16 u32  height
//   20 u8   codec: 0 H.264 in Annex B, 1 JPEG
//   21 u8   flags: 1 a decoder can begin here, 2 a still, 4 an event's number follows, 8 a time follows
//   22 u16  0
//   24 u32  with flag 4: the page's newest event that the picture knows
//      u32  with flag 8: how long after it came the picture was encoded, in microseconds
//   then the bytes of the codec
//
// A still is the picture before it once more, in high quality, because no other one came for a while.
//
// The page acknowledges each picture by 13 bytes: u32 sequence number, u8 what became of it (1 drawn, 2 passed over, 3
// the decoder failed), f64 the page's clock in seconds. All else that it says is a JSON object with a `type`:
//
//   start {codecs}                       what the page can decode, best first: "h264", "jpeg"
//   ping {at}                            answered by pong {at, seconds}, so that the clocks can be compared
//   event {kind, seq, x, y, …}           a ViewEvent
//   camera {op: pan|zoom|orbit|reset, …} moves it; the viewer keeps it within its bounds
//   look {low, high, gamma, opacity, iso, mode, map, …}
//        contrast, crop_x, crop_y, crop_z: [low, high]; reset: true goes back to what the handlers chose
//   dims {axis, step, shown, level}
//        axis alone is the one across which the slice lies, axis with step a place on that axis, and step alone a
//        place on the axis across which it lies
//   take                                 asks for control
//
// A camera, look or dims with a `seq` is answered, with the values of all controls that are offered:
//
//   ack {seq, values}                    it counts
//   refused {control, message, seq, values}  it does not: the page has no control, or a control does not allow it
//
// The viewer says further:
//
//   welcome {…}                          first, once
//   controls {controls: [{kind, key, label, value, …}]}  those that the pipeline offers: second, and when they change
//   values {values: {key: value, …}}     another page has changed some
//   control {control}                    the page that has control; 0: none
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "millrace/payload/view.h"

namespace millrace::viewer {

// The closing codes of a viewer's page, besides those of every page: it has sent what is no message; there is no codec
// in which it can get pictures.
inline constexpr uint32_t kCloseRubbish = 4003, kCloseNoCodec = 4004;

inline constexpr size_t kAxes = std::size(ViewDims().steps);

enum class Codec : uint8_t { h264 = 0, jpeg = 1 };
inline constexpr std::array<std::string_view, 2> kCodecNames = {"h264", "jpeg"}; // in the order of the enum

struct PictureHead {
  uint32_t seq = 0;
  double seconds = 0;
  uint32_t width = 0, height = 0;
  Codec codec = Codec::jpeg;
  bool is_key = true;
  bool is_still = false;
  uint32_t answers = 0;    // the event; 0: none
  uint32_t encoded_us = 0; // after it came
};
std::vector<uint8_t> bytes_of(const PictureHead& head);

enum class Fate : uint8_t { drawn = 1, passed_over = 2, failed = 3 };
struct Ack {
  uint32_t seq = 0;
  Fate fate = Fate::drawn;
  double page_s = 0;
};

// Something that cannot be a message of a page. The sentence goes to the page, which is cut off then.
class Rubbish : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws Rubbish.
Ack read_ack(std::string_view bytes);

struct Start {
  std::vector<Codec> codecs; // best first; those that this program knows
};
struct Ping {
  double at = 0;
};
struct Take {};
struct CameraChange {
  enum class Op { pan, zoom, orbit, reset } op = Op::reset;
  uint32_t seq = 0;         // as of a LookChange
  float dx = 0, dy = 0;     // pan: pixels of the picture; orbit: degrees
  float factor = 1;         // zoom
  float anchor[2] = {0, 0}; // zoom: the point of the picture that stays where it is, in pixels from its middle
};
// Fields without a value stay as they are. `seq`: the page's number of the wish; 0: it asks for no answer.
struct DimsChange {
  uint32_t seq = 0;
  std::optional<int32_t> axis{};              // across which the slice lies
  std::optional<int32_t> step{}, step_axis{}; // a place, on an axis; without one on the axis across which it lies
  std::optional<int32_t> shown{}, level{};
};
struct LookChange {
  uint32_t seq = 0;
  bool resets = false; // all goes back before the rest is applied
  std::optional<float> low{}, high{}, gamma{}, opacity{}, iso{};
  std::optional<std::string> mode{}, map{};
  std::array<std::optional<std::array<float, 2>>, 3> crop{}; // x, y, z: low, high
};
using Message = std::variant<Start, Ping, Take, ViewEvent, CameraChange, DimsChange, LookChange>;

// The largest coordinate of an event, in pixels: beyond it there is no picture.
inline constexpr double kCoordinateMax = 65536;

// Throws Rubbish: what was said, and what was expected.
Message read_message(std::string_view text);

} // namespace millrace::viewer
