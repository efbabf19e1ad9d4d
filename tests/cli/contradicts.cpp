// Preloaded into the command: a node that keeps to the records of mrl/1 and contradicts itself. It sees what the
// process writes before TLS encrypts it, and changes, repeats or leaves out records (net/record.h).
//
// CONTRADICTS says how, from the parcel CONTRADICTS_AT on:
//
//   epoch       TICK says a later epoch        number   TICK says another number than the next one
//   gap         TICK says that ticks were left out just before
//   two_ends    END comes twice                after_end   a TICK comes after END
//   no_credit   OPEN gives no credit           no_state, no_pong   the node writes none
#include <dlfcn.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr size_t kHead = 24, kNumberAt = 8, kLengthAt = 4, kCrcAt = 20;                // of a record
constexpr size_t kEpochAt = kHead + 4, kIndexAt = kHead + 8, kPreviousAt = kHead + 52; // of a TICK
constexpr uint8_t kOpen = 3, kTick = 4, kData = 5, kEnd = 6, kState = 7, kPong = 9;

template <class T>
T get(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <class T>
void put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// CRC-32C, bit by bit.
uint32_t crc_of(const std::string& bytes, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= static_cast<uint8_t>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

std::string numbered(std::string record, uint64_t number) {
  put(record, kNumberAt, number);
  put(record, kCrcAt, crc_of(record, kCrcAt));
  return record;
}

std::string word(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// A connection: bytes that are no whole record yet, and its last parcel.
struct Connection {
  std::string bytes, parcel;
};

// The records that are written in place of this one.
std::string contradicted(const std::string& record, Connection& connection) {
  static const std::string how = word("CONTRADICTS");
  static const uint64_t at = std::strtoull(word("CONTRADICTS_AT").c_str(), nullptr, 10);
  const auto type = static_cast<uint8_t>(record[0]);
  const auto number = get<uint64_t>(record, kNumberAt);
  if (type == kPong && how == "no_pong") return "";
  if (type == kState && how == "no_state") return "";
  std::string changed = record;
  if (type == kOpen && how == "no_credit") put(changed, changed.size() - 8, uint64_t{0});
  if (type == kTick && number >= at) {
    if (how == "epoch") put(changed, kEpochAt, get<uint32_t>(record, kEpochAt) + 5);
    if (how == "number") return numbered(record, number + 1);
    if (how == "gap") {
      put(changed, kIndexAt, get<uint64_t>(record, kIndexAt) + 2);
      put(changed, kPreviousAt, get<uint64_t>(record, kIndexAt) + 1);
    }
  }
  if (type == kTick) connection.parcel.clear();
  if (type == kTick || type == kData) connection.parcel += record;
  if (type == kEnd && how == "two_ends") return record + numbered(record, number + 1);
  if (type == kEnd && how == "after_end") {
    std::string tick = connection.parcel.substr(0, kHead + get<uint32_t>(connection.parcel, kLengthAt));
    return record + numbered(tick, number + 1);
  }
  return changed;
}

using Write = int (*)(SSL*, const void*, size_t, size_t*);

// All of it, or the connection is gone.
bool write_all(SSL* ssl, const std::string& bytes) {
  static const Write real = reinterpret_cast<Write>(dlsym(RTLD_NEXT, "SSL_write_ex"));
  for (size_t written = 0; written < bytes.size();) {
    size_t now = 0;
    const int result = real(ssl, bytes.data() + written, bytes.size() - written, &now);
    if (result == 1) {
      written += now;
      continue;
    }
    if (SSL_get_error(ssl, result) != SSL_ERROR_WANT_WRITE) return false;
    pollfd socket{SSL_get_fd(ssl), POLLOUT, 0};
    poll(&socket, 1, 100);
  }
  return true;
}

} // namespace

extern "C" int SSL_write_ex(SSL* ssl, const void* given, size_t size, size_t* written) {
  static std::mutex mutex;
  static std::map<SSL*, Connection> connections;
  const std::lock_guard lock(mutex);
  Connection& connection = connections[ssl];
  std::string& bytes = connection.bytes;
  bytes.append(static_cast<const char*>(given), size);
  *written = size;
  std::string changed;
  while (bytes.size() >= kHead) {
    const size_t length = kHead + get<uint32_t>(bytes, kLengthAt);
    if (bytes.size() < length) break;
    changed += contradicted(bytes.substr(0, length), connection);
    bytes.erase(0, length);
  }
  return write_all(ssl, changed) ? 1 : 0;
}
