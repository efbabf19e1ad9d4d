// Counts waiting strangers, and refuses those beyond the limits; see door.h.
#include "net/door.h"

#include <algorithm>

namespace millrace::net {
namespace {

IpAddress place_of(const IpAddress& address) {
  static constexpr IpAddress kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  IpAddress place = address;
  if (!std::equal(kMapped.begin(), kMapped.begin() + 12, address.begin())) std::fill(place.begin() + 8, place.end(), 0);
  return place;
}

} // namespace

bool Door::is_known(const IpAddress& from) const {
  const auto end = known_.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(known_count_, kKnownMax));
  return std::find(known_.begin(), end, from) != end;
}

uint32_t Door::waiting_from(const IpAddress& from) const {
  return static_cast<uint32_t>(std::count(addresses_.begin(), addresses_.begin() + waiting_, from));
}

// A bucket of tokens, as the time at which it was empty: a token is a part of a second.
bool Door::has_token(int64_t now_ns) {
  constexpr int64_t kTokenNs = kSecond / kStrangersPerSecond;
  tokens_from_ns_ = std::max(tokens_from_ns_, now_ns - kTokenNs * kStrangersBurst);
  if (now_ns - tokens_from_ns_ < kTokenNs) return false;
  tokens_from_ns_ += kTokenNs;
  return true;
}

bool Door::enter(const IpAddress& from, int64_t now_ns) {
  const IpAddress place = place_of(from);
  const bool fits = waiting_ < kStrangersMax && waiting_from(place) < kStrangersOfAddressMax;
  if (!fits || !(is_known(place) || has_token(now_ns))) {
    ++turned_away_;
    return false;
  }
  addresses_[waiting_++] = place;
  return true;
}

void Door::leave(const IpAddress& from, bool became_known) {
  const IpAddress place = place_of(from);
  const auto end = addresses_.begin() + waiting_;
  const auto found = std::find(addresses_.begin(), end, place);
  if (found == end) return;
  *found = addresses_[--waiting_];
  if (became_known && !is_known(place)) known_[known_count_++ % kKnownMax] = place;
}

} // namespace millrace::net
