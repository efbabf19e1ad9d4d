// Taps of one client: which outputs it watches, how often, and which samples it has not acknowledged.
//
//   tap {output, width, hz}   {"tap": 3}; then samples of the output, hz times a second at most
//   untap {tap}               none of it any more
//   ack {tap}                 the client is done with the last sample
//
// A tap is armed when its client has acknowledged the last sample and a period has passed since it was armed before.
// So a sample is made after its client was ready for it, and a client that does not answer costs the run nothing. A
// transport asks for samples while its client reads (Control::sample).
//
// As a line, for a socket:
//   {"jsonrpc":"2.0","method":"tap","params":{"tap":3,"tick":170,"media_ns":5666666666,"width":1920,"height":1080,
//    "kind":"picture","shown":[480,270],"data":"…"}}
// `kind` is "picture" with rgba8 in base64, "tensor", "records" or "packet" with an object as `data`, or "none": the
// output had no value on that tick.
//
// As bytes, little endian, for a binary message: u32 tap, u32 flags, u64 tick, i64 media_ns, u32 width, u32 height (of
// the original), u16 kind, u16 0, u32 bytes; and then the bytes. Bit 0 of flags: there is no value, and no bytes. Kind
// 1 is a picture: u32 width and u32 height as shown, rows of rgba8. Kinds 2 (tensor), 3 (records) and 4 (packet) are
// JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "exec/tap.h"

namespace millrace::serve {

struct Request;

// A client's memory in the run: 3.7 MB for each of its largest pictures.
inline constexpr size_t kTapsMax = 8;
inline constexpr double kTapHzMin = 0.1, kTapHzMax = 20, kTapHz = 10;

struct Sample {
  uint32_t tap = 0;
  exec::TapSample of;
};
std::string sample_line(const Sample& sample); // without its end
std::string sample_bytes(const Sample& sample);

// Its transport's thread has it, and destroys it with the client.
class ClientTaps {
 public:
  using Make = std::function<std::shared_ptr<exec::Tap>(const std::string& output, const exec::TapOptions&)>;

  // Reads {output, width, hz}, and gives the answer. `wake`: as exec::TapOptions::on_taken. Throws Refused, or Failure
  // if the run does.
  void add(const Request& request, const Make& make, const std::function<void()>& wake, nlohmann::ordered_json& answer);
  // Both read {tap}, and throw Refused.
  void remove(const Request& request);
  void acknowledge(const Request& request);

  int64_t due_ms() const;
  std::optional<Sample> take(int64_t now_ms);

 private:
  struct One {
    uint32_t number = 0;
    int64_t period_ms = 0, due_ms = 0; // when it may be armed
    // It is armed, or its client has not acknowledged the sample that was sent: nothing is due.
    bool waits = false, is_sent = false;
    std::shared_ptr<exec::Tap> tap;
  };
  One& find(const Request& request);

  std::vector<One> taps_; // the one whose turn it is comes first
  uint32_t last_number_ = 0;
};

} // namespace millrace::serve
