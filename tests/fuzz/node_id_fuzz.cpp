// libFuzzer: whatever a text holds, it is a node id or refused with a fault; an id comes back from its text form.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/node_id.h"

using namespace millrace::net;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  NodeId id;
  NodeIdFault fault;
  if (!parse_node_id(text, id, fault)) {
    if (fault.kind == NodeIdFault::Kind::none || id != NodeId{}) std::abort();
    if (describe(fault).empty() || fault.position > kNodeIdLetters + 1) std::abort();
    // Bytes of the text as an id: random texts seldom have the right check letters.
    for (size_t i = 0; i < kNodeIdBytes && i < size; ++i) id.bytes[i] = static_cast<std::byte>(data[i]);
  }
  NodeId again;
  const std::string canonical = to_text(id);
  if (!parse_node_id(canonical, again, fault) || again != id || fault.kind != NodeIdFault::Kind::none) std::abort();
  // One letter that is wrong is found.
  std::string wrong = canonical;
  char& letter = wrong[3 + (size > 0 ? data[size - 1] : 0u) % kNodeIdLetters];
  letter = letter == 'A' ? 'B' : 'A';
  if (parse_node_id(wrong, again, fault) || fault.kind != NodeIdFault::Kind::check) std::abort();
  return 0;
}
