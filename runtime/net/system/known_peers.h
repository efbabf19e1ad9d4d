// The nodes that this one trusts, in a text file that a person may read and edit.
//
// A line is one peer: "mr:… name address address …", with blanks between. Lines that begin with # are remarks. A line
// that is damaged is told with its number and stays in the file as it is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/node_id.h"

namespace millrace::net {

inline constexpr size_t kKnownPeersMax = 4096;
inline constexpr size_t kPeerNameBytesMax = 64;
inline constexpr size_t kPeerAddressesMax = 8, kPeerAddressBytesMax = 255; // a host name has at most 253 bytes
// An id, a name, the addresses, and a blank each.
inline constexpr size_t kPeerLineBytesMax = 64 + 1 + kPeerNameBytesMax + kPeerAddressesMax * (1 + kPeerAddressBytesMax);
inline constexpr size_t kPeersFileBytesMax = 4 << 20;            // 1 KiB a peer
inline constexpr size_t kPeersFileLinesMax = 2 * kKnownPeersMax; // remarks among them

struct KnownPeer {
  NodeId id;
  std::string name;                   // letters, digits, '_', '-' and '.'
  std::vector<std::string> addresses; // "192.168.1.20:7433"; printable, without blanks
};

// Belongs to one thread. Other processes may change the file at the same time: nothing is lost, and load() sees it.
class KnownPeers {
 public:
  // Nothing is read before load(). The file's folder is made where it is not there.
  explicit KnownPeers(std::filesystem::path file) : file_(std::move(file)) {}

  // Reads the file; without one nobody is known. Throws Failure (MR0815) if it cannot be read, or has too many lines.
  void load();
  // Sentences about lines that cannot be used, each with the file's name and the line's number.
  const std::vector<std::string>& complaints() const { return complaints_; }

  const std::vector<KnownPeer>& peers() const { return peers_; }
  // Null if there is none. Valid until the next load, add or forget.
  const KnownPeer* find(const NodeId& id) const;
  const KnownPeer* find(std::string_view name) const;

  // Reads the file again, adds the peer or replaces the one with the same id, and writes the file. Throws Failure
  // (MR0815): a name or address that is not usable, a name that another peer has, no room.
  void add(const KnownPeer& peer);
  // Reads the file again, removes the peer, and writes the file. False if it is not known. Throws Failure.
  bool forget(const NodeId& id);

 private:
  struct Line {
    std::string text;
    std::optional<size_t> peer; // index into peers_; none for a remark, or if the line is damaged
  };

  [[noreturn]] void refuse(const std::string& sentence) const;
  std::filesystem::path folder() const;
  void read_lines();
  void replace_file(); // by lines_, and reads it again
  void take_line(std::string_view text);
  Line& line_of(const KnownPeer& peer);

  std::filesystem::path file_;
  std::vector<Line> lines_;
  std::vector<KnownPeer> peers_;
  std::vector<std::string> complaints_;
};

} // namespace millrace::net
