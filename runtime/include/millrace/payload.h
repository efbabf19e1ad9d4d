// Payload types as handler authors see them: typed views over the POD records of abi.h. Views own nothing and are
// valid until `process` or `finish` returns; `data` pointers are in the body's own domain.
//
// payload/image.h, tensor.h and records.h have the payloads with a layout. Packets, objects and Any are here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "millrace/abi.h"
#include "millrace/payload/image.h"
#include "millrace/payload/records.h"
#include "millrace/payload/size.h"
#include "millrace/payload/tensor.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

// A piece of a bitstream.
template <class Byte>
struct BasicPacket {
  const mr_value* value = nullptr;
  std::span<Byte> bytes;
  int64_t pts_ns() const { return value->header.pts_ns; }
  int64_t dts_ns() const { return value->as.packet.dts_ns; }
  bool keyframe() const { return value->header.flags & MR_FLAG_KEYFRAME; }
};
using PacketView = BasicPacket<const uint8_t>;
using PacketSpan = BasicPacket<uint8_t>;

// The type of a port that carries a piece of a bitstream: Input<Packet>.
struct Packet {
  using View = PacketView;
  using Span = PacketSpan;
  static constexpr uint32_t kKind = MR_KIND_PACKET;
  static constexpr std::string_view kSchema = "millrace.Packet";
  static std::string type_name() { return "Packet"; }
  static View view(const mr_input& input) {
    return {input.value, {input.data, static_cast<size_t>(input.value->header.extent_bytes)}};
  }
};

// A pointer to a host object of the process. It never crosses to a device or to another machine.
template <class T>
struct Object {
  using View = const T*;
  using Span = T*;
  static constexpr uint32_t kKind = MR_KIND_OBJECT;
  static constexpr std::string_view kSchema = T::kSchema;
  static std::string type_name() { return "Object<" + std::string(T::kSchema) + ">"; }
  static View view(const mr_input& input) { return static_cast<const T*>(input.value->as.object.pointer); }
};

// Any payload: the handler reads the header alone.
struct Any {
  using View = const mr_value*;
  using Span = mr_value*;
  static constexpr uint32_t kKind = MR_KIND_ANY;
  static constexpr std::string_view kSchema = "";
  static std::string type_name() { return "Any"; }
  static View view(const mr_input& input) { return input.value; }
};

// A type that a port may carry.
template <class T>
concept Payload = requires {
  typename T::View;
  typename T::Span;
  T::kKind;
  T::type_name();
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
