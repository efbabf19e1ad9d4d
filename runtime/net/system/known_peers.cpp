// Reads and writes the file of known peers.
#include "net/system/known_peers.h"

#include <algorithm>

#include "net/system/private_file.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::net {

namespace {

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// "" if the peer can be kept; else the rest of a sentence.
std::string obstacle(const KnownPeer& peer) {
  const std::string& name = peer.name;
  if (name.empty() || name.size() > kPeerNameBytesMax || !std::all_of(name.begin(), name.end(), is_name_byte))
    return "the name has to be 1 to " + std::to_string(kPeerNameBytesMax) + " letters, digits, '_', '-' and '.'";
  if (peer.addresses.size() > kPeerAddressesMax)
    return "a peer has at most " + std::to_string(kPeerAddressesMax) + " addresses";
  for (const std::string& address : peer.addresses) {
    const bool printable = std::all_of(address.begin(), address.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (address.empty() || address.size() > kPeerAddressBytesMax || !printable) return "an address is not usable";
  }
  return "";
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const size_t size = std::min(text.find_first_of(" \t\r"), text.size());
    words.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
}

// "" if `text` is a peer; else the rest of a sentence.
std::string parse_line(std::string_view text, KnownPeer& peer) {
  if (text.size() > kPeerLineBytesMax) return "the line has more than " + std::to_string(kPeerLineBytesMax) + " bytes";
  const std::vector<std::string_view> words = words_of(text);
  NodeIdFault fault;
  if (!parse_node_id(words[0], peer.id, fault)) return "the id " + describe(fault);
  if (words.size() < 2) return "the name is missing";
  peer.name = words[1];
  peer.addresses.assign(words.begin() + 2, words.end());
  return obstacle(peer);
}

std::string text_of(const KnownPeer& peer) {
  std::string text = to_text(peer.id) + " " + peer.name;
  for (const std::string& address : peer.addresses) text += " " + address;
  return text;
}

} // namespace

const KnownPeer* KnownPeers::find(const NodeId& id) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const KnownPeer& peer) { return peer.id == id; });
  return found == peers_.end() ? nullptr : &*found;
}

const KnownPeer* KnownPeers::find(std::string_view name) const {
  const auto found =
      std::find_if(peers_.begin(), peers_.end(), [&](const KnownPeer& peer) { return peer.name == name; });
  return found == peers_.end() ? nullptr : &*found;
}

void KnownPeers::take_line(std::string_view text) {
  Line& line = lines_.emplace_back(Line{std::string(text), std::nullopt});
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || text[first] == '#') return;
  KnownPeer peer;
  std::string complaint = parse_line(text, peer);
  if (complaint.empty() && find(peer.id)) complaint = "the id has a line of its own already";
  if (complaint.empty() && find(peer.name)) complaint = "another peer has the name " + peer.name;
  if (complaint.empty() && peers_.size() == kKnownPeersMax)
    complaint = "there are more than " + std::to_string(kKnownPeersMax) + " peers";
  if (!complaint.empty()) {
    complaints_.push_back(file_.string() + ":" + std::to_string(lines_.size()) + ": " + complaint);
    return;
  }
  line.peer = peers_.size();
  peers_.push_back(std::move(peer));
}

[[noreturn]] void KnownPeers::refuse(const std::string& sentence) const {
  throw Failure(Error{code::bad_identity, sentence, {file_.string(), 0, 0}, {}, {}, {}});
}

void KnownPeers::read_lines() {
  lines_.clear();
  peers_.clear();
  complaints_.clear();
  std::string bytes;
  if (!read_private_file(file_, kPeersFileBytesMax, bytes)) return;
  for (std::string_view rest = bytes; !rest.empty();) {
    if (lines_.size() == kPeersFileLinesMax)
      refuse("the file has more than " + std::to_string(kPeersFileLinesMax) + " lines");
    const size_t size = std::min(rest.find('\n'), rest.size());
    take_line(rest.substr(0, size));
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
}

void KnownPeers::replace_file() {
  std::string bytes;
  for (const Line& line : lines_) bytes += line.text + "\n";
  if (lines_.size() > kPeersFileLinesMax || bytes.size() > kPeersFileBytesMax)
    refuse("there is no room for another peer");
  write_private_file(file_, bytes);
  read_lines();
}

void KnownPeers::load() {
  make_private_folder(folder());
  const FolderLock lock(folder());
  read_lines();
}

void KnownPeers::add(const KnownPeer& peer) {
  if (const std::string complaint = obstacle(peer); !complaint.empty()) refuse(complaint);
  make_private_folder(folder());
  const FolderLock lock(folder());
  read_lines();
  if (const KnownPeer* other = find(peer.name); other && other->id != peer.id)
    refuse(peer.name + " is the name of another peer, " + short_text(other->id));
  if (const KnownPeer* old = find(peer.id)) {
    line_of(*old).text = text_of(peer);
  } else {
    if (peers_.size() == kKnownPeersMax) refuse("there is no room for another peer");
    lines_.push_back({text_of(peer), std::nullopt}); // read_lines() sets its index
  }
  replace_file();
}

bool KnownPeers::forget(const NodeId& id) {
  make_private_folder(folder());
  const FolderLock lock(folder());
  read_lines();
  const KnownPeer* peer = find(id);
  if (!peer) return false;
  lines_.erase(lines_.begin() + (&line_of(*peer) - lines_.data()));
  replace_file();
  return true;
}

std::filesystem::path KnownPeers::folder() const {
  return file_.has_parent_path() ? file_.parent_path() : std::filesystem::path(".");
}

KnownPeers::Line& KnownPeers::line_of(const KnownPeer& peer) {
  const auto index = static_cast<size_t>(&peer - peers_.data());
  return *std::find_if(lines_.begin(), lines_.end(), [index](const Line& line) { return line.peer == index; });
}

} // namespace millrace::net
