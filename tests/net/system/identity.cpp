// A node's key and its list of known peers: made once, kept for their owner alone, whole after every accident.
#include "net/system/identity.h"

#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "net/system/known_peers.h"
#include "net/system/private_file.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "tests/contains.h"
#include "tests/file_bytes.h"

using namespace millrace;
using namespace millrace::net;

namespace {

namespace fs = std::filesystem;

// A folder of this test's own, with one inside that does not exist yet.
class Home {
 public:
  Home() {
    std::string pattern = (fs::temp_directory_path() / "millrace-identity-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
  ~Home() { fs::remove_all(root_); }
  fs::path folder() const { return root_ / "config" / "millrace"; }
  fs::path key() const { return folder() / "key.pem"; }
  fs::path peers() const { return folder() / "peers.txt"; }

 private:
  fs::path root_;
};

unsigned mode_of(const fs::path& path) {
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  return facts.st_mode & 07777;
}

template <class Act>
Error error_of(Act act) {
  try {
    act();
  } catch (const Failure& failure) {
    CHECK(failure.error().code == code::bad_identity);
    return failure.error();
  }
  FAIL("nothing was refused");
  return {};
}

KnownPeer peer_of(unsigned char number, const std::string& name) {
  KnownPeer peer;
  peer.id.bytes.fill(static_cast<std::byte>(number));
  peer.name = name;
  return peer;
}

} // namespace

TEST_CASE("an identity is made on first use, and is the same ever after") {
  const Home home;
  const mode_t before = umask(0); // the modes are ours, whatever the user's mask is
  const Identity first = Identity::open(home.folder());
  umask(before);
  CHECK(mode_of(home.folder()) == 0700);
  CHECK(mode_of(home.key()) == 0600);
  const std::string bytes = bytes_of(home.key());
  const Identity again = Identity::open(home.folder());
  CHECK(again.id() == first.id());
  CHECK(bytes_of(home.key()) == bytes);
  CHECK(X509_cmp(again.certificate(), first.certificate()) == 0);
  CHECK(Identity::generate().id() != first.id());
  CHECK(std::distance(fs::directory_iterator(home.folder()), {}) == 1);
}

TEST_CASE("an id is SHA-256 of the key's SubjectPublicKeyInfo") {
  const Identity identity = Identity::generate();
  std::string der("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12); // RFC 8410, section 4
  unsigned char raw[32];
  size_t size = sizeof raw;
  REQUIRE(EVP_PKEY_get_raw_public_key(identity.key(), raw, &size) == 1);
  der.append(reinterpret_cast<const char*>(raw), size);
  NodeId expected;
  unsigned hash_size = 0;
  REQUIRE(EVP_Digest(der.data(), der.size(), reinterpret_cast<unsigned char*>(expected.bytes.data()), &hash_size,
                     EVP_sha256(), nullptr) == 1);
  CHECK(identity.id() == expected);
  CHECK(node_id_of(X509_get0_pubkey(identity.certificate())) == expected);
}

TEST_CASE("a certificate is signed by its own key, and holds from 1970 to 9999") {
  const Identity identity = Identity::generate();
  CHECK(X509_verify(identity.certificate(), identity.key()) == 1);
  const auto day_of = [](const ASN1_TIME* time) {
    tm broken{};
    REQUIRE(ASN1_TIME_to_tm(time, &broken) == 1);
    return std::pair(broken.tm_year + 1900, broken.tm_yday);
  };
  CHECK(day_of(X509_get0_notBefore(identity.certificate())) == std::pair(1970, 0));
  CHECK(day_of(X509_get0_notAfter(identity.certificate())) == std::pair(9999, 364));
}

TEST_CASE("a key that others may read is refused, and the error says what to do") {
  const Home home;
  Identity::open(home.folder());
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0666}) {
    REQUIRE(chmod(home.key().c_str(), mode) == 0);
    const Error error = error_of([&] { Identity::open(home.folder()); });
    CHECK(contains(error.what, "other users may read or write the file"));
    CHECK(error.edit == "chmod 600 " + home.key().string());
    CHECK(error.place.file == home.key().string());
  }
  REQUIRE(chmod(home.key().c_str(), 0400) == 0);
  CHECK_NOTHROW(Identity::open(home.folder()));
}

TEST_CASE("a folder that others may write to is refused") {
  const Home home;
  Identity::open(home.folder());
  REQUIRE(chmod(home.folder().c_str(), 0770) == 0);
  CHECK(error_of([&] { Identity::open(home.folder()); }).edit == "chmod 700 " + home.folder().string());
  REQUIRE(chmod(home.folder().c_str(), 0755) == 0);
  CHECK_NOTHROW(Identity::open(home.folder()));
}

TEST_CASE("a key of another user is refused") {
  if (geteuid() != 0) {
    MESSAGE("Not tested: only root can give a file away");
    return;
  }
  const Home home;
  Identity::open(home.folder());
  REQUIRE(chown(home.key().c_str(), 65534, 65534) == 0);
  CHECK(contains(error_of([&] { Identity::open(home.folder()); }).what, "another user"));
}

TEST_CASE("a file that a process left half written is ignored") {
  const Home home;
  const NodeId id = Identity::open(home.folder()).id();
  const fs::path unfinished = home.key().string() + ".new";
  put_bytes(unfinished, "-----BEGIN PRIV");
  CHECK(Identity::open(home.folder()).id() == id);
  // Before the first key too; a link of that name is not followed.
  fs::remove(home.key());
  fs::remove(unfinished);
  fs::create_symlink(home.folder() / "elsewhere", unfinished);
  CHECK(Identity::open(home.folder()).id() != id);
  CHECK_FALSE(fs::exists(fs::symlink_status(unfinished)));
  CHECK_FALSE(fs::exists(home.folder() / "elsewhere"));
}

TEST_CASE("a damaged key is refused and kept") {
  const Home home;
  Identity::open(home.folder());
  const std::string good = bytes_of(home.key());
  for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2), std::string("nonsense"),
                                 std::string(5000, 'x'), std::string(4096, '\0')}) {
    put_bytes(home.key(), bad);
    error_of([&] { Identity::open(home.folder()); });
    CHECK(bytes_of(home.key()) == bad);
  }
  put_bytes(home.key(), good);
  CHECK_NOTHROW(Identity::open(home.folder()));
}

TEST_CASE("a key of another kind, or with a password, is refused, and nobody is asked for one") {
  const Home home;
  Identity::open(home.folder());
  const auto write = [&](EVP_PKEY* key, const EVP_CIPHER* cipher) {
    FILE* file = fopen(home.key().c_str(), "w");
    REQUIRE(file != nullptr);
    CHECK(PEM_write_PKCS8PrivateKey(file, key, cipher, "secret", cipher ? 6 : 0, nullptr, nullptr) == 1);
    fclose(file);
  };
  EVP_PKEY* curve = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  REQUIRE(curve != nullptr);
  write(curve, nullptr);
  EVP_PKEY_free(curve);
  CHECK(error_of([&] { Identity::open(home.folder()); }).what == "the key is no Ed25519 key");
  write(Identity::generate().key(), EVP_aes_256_cbc());
  CHECK(error_of([&] { Identity::open(home.folder()); }).what == "the file holds no key that can be read");
}

TEST_CASE("something else than a file in the key's place is refused, and is not waited for") {
  const Home home;
  Identity::open(home.folder());
  fs::rename(home.key(), home.folder() / "other.pem");
  fs::create_symlink(home.folder() / "other.pem", home.key());
  error_of([&] { Identity::open(home.folder()); });
  fs::remove(home.key());
  REQUIRE(mkfifo(home.key().c_str(), 0600) == 0);
  CHECK(error_of([&] { Identity::open(home.folder()); }).what == "this is no plain file");
  fs::remove(home.key());
  fs::create_directory(home.key());
  CHECK(error_of([&] { Identity::open(home.folder()); }).what == "this is no plain file");
}

TEST_CASE("processes that come first at the same time get one key") {
  const Home home;
  const fs::path results = home.folder().parent_path().parent_path();
  constexpr int kProcesses = 8;
  for (int i = 0; i < kProcesses; ++i)
    if (fork() == 0) {
      put_bytes((results / std::to_string(i)).string(), to_text(Identity::open(home.folder()).id()));
      _exit(0);
    }
  for (int i = 0; i < kProcesses; ++i) wait(nullptr);
  const std::string text = to_text(Identity::open(home.folder()).id());
  for (int i = 0; i < kProcesses; ++i) CHECK(bytes_of((results / std::to_string(i)).string()) == text);
}

// ---- known peers
// -----------------------------------------------------------------------------------------------------

TEST_CASE("known peers are added, found, replaced and forgotten, and are in the file") {
  const Home home;
  KnownPeers peers(home.peers());
  peers.load();
  CHECK(peers.peers().empty());
  CHECK_FALSE(fs::exists(home.peers()));
  KnownPeer shelf = peer_of(1, "shelf");
  shelf.addresses = {"192.168.1.20:7433", "[fe80::1]:7433"};
  peers.add(shelf);
  peers.add(peer_of(2, "desk"));
  CHECK(mode_of(home.peers()) == 0600);
  CHECK(bytes_of(home.peers()) ==
        to_text(shelf.id) + " shelf 192.168.1.20:7433 [fe80::1]:7433\n" + to_text(peer_of(2, "").id) + " desk\n");
  KnownPeers others(home.peers());
  others.load();
  REQUIRE(others.find(shelf.id) != nullptr);
  CHECK(others.find(shelf.id)->addresses == shelf.addresses);
  REQUIRE(others.find("desk") != nullptr);
  CHECK(others.find("desk")->id == peer_of(2, "").id);
  CHECK(others.find("nobody") == nullptr);
  shelf.name = "cupboard";
  others.add(shelf);
  CHECK(others.peers().size() == 2);
  CHECK(others.find("shelf") == nullptr);
  CHECK(others.forget(shelf.id));
  CHECK_FALSE(others.forget(shelf.id));
  CHECK(others.find("cupboard") == nullptr);
  CHECK(others.find("desk") != nullptr);
  // The first list did not know of the others; what it adds is added to the file as it is now.
  peers.add(peer_of(3, "roof"));
  CHECK(peers.peers().size() == 2);
  CHECK(peers.find("cupboard") == nullptr);
}

TEST_CASE("damaged lines are told with their number, and stay") {
  const Home home;
  KnownPeers peers(home.peers());
  peers.add(peer_of(1, "one"));
  std::string broken = to_text(peer_of(2, "").id);
  broken[10] = broken[10] == 'A' ? 'B' : 'A';
  const std::string id = to_text(peer_of(3, "").id);
  const std::string lines = "# by hand\n" + broken + " two\n\n" + id + "\n" + id + " na/me\n" + id + " one\n" +
                            to_text(peer_of(1, "").id) + " twice\nmr:??? x\n" + id + " three" + std::string(9, ' ') +
                            "host:1\n" + id + " many" + std::string(3000, ' ') + "\n";
  put_bytes(home.peers().string(), bytes_of(home.peers().string()) + lines);
  peers.load();
  const auto complaint = [&](size_t line) {
    for (const std::string& text : peers.complaints())
      if (contains(text, ":" + std::to_string(line) + ": ")) return text.substr(text.find(": ") + 2);
    return std::string();
  };
  CHECK(peers.complaints().size() == 7);
  CHECK(complaint(3) == "the id has a wrong letter, or two that were exchanged");
  CHECK(complaint(5) == "the name is missing");
  CHECK(contains(complaint(6), "the name has to be 1 to 64 letters"));
  CHECK(complaint(7) == "another peer has the name one");
  CHECK(complaint(8) == "the id has a line of its own already");
  CHECK(complaint(9) == "the id is damaged at its 1st letter");
  CHECK(contains(complaint(11), "the line has more than"));
  CHECK(peers.peers().size() == 2);
  const std::string before = bytes_of(home.peers().string());
  peers.add(peer_of(4, "four"));
  CHECK(bytes_of(home.peers().string()) == before + to_text(peer_of(4, "").id) + " four\n");
  CHECK(peers.forget(peer_of(4, "").id));
  CHECK(bytes_of(home.peers().string()) == before);
}

TEST_CASE("a peer that the file could not give back is refused") {
  const Home home;
  KnownPeers peers(home.peers());
  peers.add(peer_of(1, "one"));
  const std::string before = bytes_of(home.peers().string());
  for (const char* name : {"", "a b", "a\n", "a#", "\xC3\xA4"}) error_of([&] { peers.add(peer_of(2, name)); });
  error_of([&] { peers.add(peer_of(2, std::string(65, 'a'))); });
  CHECK(contains(error_of([&] { peers.add(peer_of(2, "one")); }).what, "is the name of another peer"));
  for (const std::string& address : {std::string(), std::string("a b"), std::string("a\n"), std::string(256, 'a')}) {
    KnownPeer peer = peer_of(2, "two");
    peer.addresses = {address};
    error_of([&] { peers.add(peer); });
  }
  KnownPeer many = peer_of(2, "two");
  many.addresses.assign(9, "host:1");
  error_of([&] { peers.add(many); });
  CHECK(bytes_of(home.peers().string()) == before);
  CHECK(peers.peers().size() == 1);
}

TEST_CASE("the list of known peers is bounded") {
  const Home home;
  KnownPeers peers(home.peers());
  peers.add(peer_of(0, "first"));
  std::string lines;
  for (size_t i = 1; i < kKnownPeersMax; ++i) {
    KnownPeer peer = peer_of(9, "");
    peer.id.bytes[0] = static_cast<std::byte>(i);
    peer.id.bytes[1] = static_cast<std::byte>(i >> 8);
    lines += to_text(peer.id) + " n" + std::to_string(i) + "\n";
  }
  put_bytes(home.peers().string(), bytes_of(home.peers().string()) + lines);
  peers.load();
  CHECK(peers.peers().size() == kKnownPeersMax);
  CHECK(peers.complaints().empty());
  CHECK(error_of([&] { peers.add(peer_of(1, "late")); }).what == "there is no room for another peer");
  put_bytes(home.peers().string(), bytes_of(home.peers().string()) + to_text(peer_of(1, "").id) + " late\n");
  peers.load();
  CHECK(peers.peers().size() == kKnownPeersMax);
  CHECK(peers.complaints().size() == 1);
  put_bytes(home.peers().string(), std::string(kPeersFileLinesMax + 1, '\n'));
  CHECK(contains(error_of([&] { peers.load(); }).what, "lines"));
  put_bytes(home.peers().string(), std::string(kPeersFileBytesMax + 1, ' '));
  CHECK(contains(error_of([&] { peers.load(); }).what, "bytes"));
}

TEST_CASE("a list that others may read is refused") {
  const Home home;
  KnownPeers peers(home.peers());
  peers.add(peer_of(1, "one"));
  REQUIRE(chmod(home.peers().c_str(), 0644) == 0);
  CHECK(error_of([&] { peers.load(); }).edit == "chmod 600 " + home.peers().string());
}
