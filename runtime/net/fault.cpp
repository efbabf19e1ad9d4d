// The sentences of refusals, in the order of their numbers.
#include "net/fault.h"

#include <iterator>

namespace millrace::net {
namespace {

constexpr const char* kSentences[] = {
    "nothing is wrong",
    "a record's head was damaged on the way: its checksum does not match",
    "a record has a type that mrl/1 does not have",
    "a record is longer or shorter than its type allows",
    "a record has flags that its type does not have",
    "a record has a field that its type does not have",
    "a record's body was damaged on the way: its checksum does not match",
    "a record's body ends before its fields do",
    "a record's body goes on after its fields",
    "a text has control characters, is not UTF-8, or is too long",
    "this is no millrace node: its first record does not begin with mrl1",
    "the two nodes have no protocol version in common",
    "the peer needs a feature that this node does not have",
    "a session's number is 0",
    "a connection's number is not one of this link",
    "the peer says another node id than its key has",
    "the peer runs another plan",
    "a process with this node id is running already",
    "a data connection belongs to a link that has begun anew",
    "a record came that may not come now",
    "a record names a crossing that is not there, or not on this connection",
    "a parcel has another number than the next one",
    "a parcel came for which there was no credit",
    "a crossing has another name on the other side",
    "a crossing has another depth on the other side",
    "a crossing has another delivery on the other side",
    "a crossing has another number of values on the other side",
    "a crossing has a value with another format on the other side",
    "a crossing's reader expects a parcel that was never sent or is gone",
    "a tick's index or epoch does not follow the one before",
    "the ticks that were left out do not add up",
    "a tick was left out for an unknown cause",
    "a value does not have the planned format",
    "bytes came for a value that is not the next one",
    "bytes of a value do not go on where those before ended",
    "more bytes came than the value has",
    "a parcel came after the crossing's end",
    "a parcel was acknowledged that was not sent",
    "an acknowledgement, a credit, a passed time or a count of bytes has fallen",
    "the peer took too long to say who it is",
    "the peer gave a reason that is not in use",
    "the peer gave a reason that is not in use",
    "the node is leaving",
    "a crossing has an unknown delivery",
    "all that the node had to send has arrived",
    "the peer says that more bytes have come than were written",
    "bytes of a data connection have vanished on the way",
    "a message is longer than a link carries",
    "more bytes of messages came in a minute than a link carries",
    "more messages came than the node has taken in",
    "a tick was left out on a clock that leaves none out",
    "an epoch began on a clock that never begins anew",
    "a crossing's reader has room for fewer parcels than it has planned",
    "the peer has got parcels and acknowledges none",
    "the peer does not answer pings",
};
static_assert(std::size(kSentences) == static_cast<size_t>(Fault::count));

} // namespace

const char* sentence_of(Fault fault) {
  return fault < Fault::count ? kSentences[static_cast<size_t>(fault)] : "the peer gave a reason of a later version";
}

// A line damages and loses bytes. The others are told before there is a link, or belong to its end, or say that two
// programs or two plans differ.
bool is_contradiction(Fault fault) {
  switch (fault) {
    case Fault::none:
    case Fault::head_checksum:
    case Fault::body_checksum:
    case Fault::magic:
    case Fault::version:
    case Fault::feature:
    case Fault::session:
    case Fault::lane:
    case Fault::node:
    case Fault::plan:
    case Fault::running_already:
    case Fault::stale:
    case Fault::open_name:
    case Fault::open_depth:
    case Fault::open_delivery:
    case Fault::open_values:
    case Fault::open_format:
    case Fault::slow_greeting:
    case Fault::leaving:
    case Fault::drained:
    case Fault::vanished:
    case Fault::count: return false;
    default: return true;
  }
}

} // namespace millrace::net
