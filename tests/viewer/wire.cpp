// The layouts of a viewer's messages, golden, and a million damaged ones.
#include "plugins/viewer/wire.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "tests/seed.h"

using namespace millrace;
using namespace millrace::viewer;

namespace {

std::string hex(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += "0123456789ABCDEF"[byte >> 4];
    text += "0123456789ABCDEF"[byte & 15];
  }
  return text;
}

std::string ack_of(uint32_t seq, uint8_t fate, const std::string& time = std::string(8, '\0')) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(seq >> shift);
  return bytes + static_cast<char>(fate) + time;
}

template <class T>
T read(const std::string& text) {
  return std::get<T>(read_message(text));
}

} // namespace

TEST_CASE("A picture's head is big endian, and ends with what its flags say") {
  CHECK(hex(bytes_of({7, 1.5, 1920, 1080, Codec::jpeg, true, false, 0, 258})) ==
        "000000073FF80000000000000000078000000438"
        "01"
        "09"
        "0000"
        "00000102");
  CHECK(hex(bytes_of({7, 1.5, 1920, 1080, Codec::jpeg, true, true, 0, 258})).substr(42, 2) == "0B");
  CHECK(hex(bytes_of({7, 1.5, 1920, 1080, Codec::h264, false, false, 9, 1})) ==
        "000000073FF80000000000000000078000000438"
        "00"
        "0C"
        "0000"
        "00000009"
        "00000001");
}

TEST_CASE("An acknowledgement has thirteen bytes") {
  const Ack ack = read_ack(ack_of(0x01020304, 2, std::string("\x3F\xF8\0\0\0\0\0\0", 8)));
  CHECK(ack.seq == 0x01020304);
  CHECK(ack.fate == Fate::passed_over);
  CHECK(ack.page_s == 1.5);
  CHECK_THROWS_AS(read_ack(""), Rubbish);
  CHECK_THROWS_AS(read_ack(ack_of(1, 1) + "x"), Rubbish);
  CHECK_THROWS_AS(read_ack(ack_of(1, 0)), Rubbish);
  CHECK_THROWS_AS(read_ack(ack_of(1, 4)), Rubbish);
  CHECK_THROWS_WITH_AS(read_ack(ack_of(1, 1, std::string("\x7F\xF8\0\0\0\0\0\0", 8))),
                       "the page's clock in an acknowledgement is no number", Rubbish);
}

TEST_CASE("Texts of a page are read field by field") {
  CHECK(read<Start>(R"({"type": "start", "codecs": ["av1", "jpeg", 7, "h264"]})").codecs ==
        std::vector<Codec>{Codec::jpeg, Codec::h264});
  CHECK(read<Ping>(R"({"type": "ping", "at": 2.5})").at == 2.5);
  const auto event =
      read<ViewEvent>(R"({"type": "event", "kind": "wheel", "seq": 3, "x": 1.5, "y": -2, "dy": 7, "buttons": 4,
                                         "modifiers": 9, "sent_s": 12.25, "unknown": []})");
  CHECK(event.kind == static_cast<int32_t>(ViewEventKind::wheel));
  CHECK(event.seq == 3);
  CHECK(event.x == 1.5F);
  CHECK(event.y == -2);
  CHECK(event.dy == 7);
  CHECK(event.buttons == 4);
  CHECK(event.modifiers == 9);
  CHECK(event.sent_s == 12.25);
  const auto key = read<ViewEvent>(R"({"type": "event", "kind": "key_down", "seq": 1, "key": "é"})");
  CHECK(std::string(reinterpret_cast<const char*>(key.name)) == "é");
  const auto camera = read<CameraChange>(R"({"type": "camera", "op": "zoom", "factor": 2, "x": 3})");
  CHECK(camera.op == CameraChange::Op::zoom);
  CHECK(camera.factor == 2);
  CHECK(camera.anchor[0] == 3);
}

TEST_CASE("Wishes for look and slice have the fields that are there") {
  const auto dims = read<DimsChange>(R"({"type": "dims", "axis": 2, "step": -5})");
  CHECK(dims.seq == 0);
  CHECK(dims.step == -5);
  CHECK(dims.step_axis == 2);
  CHECK(!dims.axis);
  CHECK(!dims.shown);
  CHECK(!dims.level);
  const auto across = read<DimsChange>(R"({"type": "dims", "seq": 7, "axis": 1, "level": 3})");
  CHECK(across.seq == 7);
  CHECK(across.axis == 1);
  CHECK(!across.step);
  CHECK(across.level == 3);
  const auto look = read<LookChange>(R"({"type": "look", "low": -1, "mode": "iso", "map": "", "iso": 0.25,
                                         "crop_z": [0.25, 1]})");
  CHECK(look.low == -1);
  CHECK(!look.high);
  CHECK(look.mode == "iso");
  CHECK(look.map == "");
  CHECK(look.iso == 0.25F);
  CHECK(!look.crop[0]);
  CHECK(look.crop[2] == std::array{0.25F, 1.0F});
  CHECK(!look.resets);
  const auto contrast = read<LookChange>(R"({"type": "look", "reset": true, "contrast": [-0.5, 2]})");
  CHECK(contrast.resets);
  CHECK(contrast.low == -0.5F);
  CHECK(contrast.high == 2);
}

TEST_CASE("A text that is no message is refused with what was expected") {
  const auto why = [](const std::string& text) {
    try {
      read_message(text);
    } catch (const Rubbish& rubbish) {
      return std::string(rubbish.what());
    }
    return std::string();
  };
  CHECK(why("") == "a message of a page is a JSON object with a type");
  CHECK(why("[1]") == "a message of a page is a JSON object with a type");
  CHECK(why("{\"type\": \"jump\"}").starts_with("there is no message of the type \"jump\"; there are start, ping"));
  CHECK(why(R"({"type": "event", "kind": "hop", "seq": 1})")
            .starts_with("event: kind is \"hop\", and not one of move, down"));
  CHECK(why(R"({"type": "event", "kind": "move", "seq": 1.5})") == "event: seq is no whole number");
  CHECK(why(R"({"type": "event", "kind": "move", "seq": 1, "y": 1e9})") ==
        "event: y is no number from -65536 to 65536");
  CHECK(why(R"({"type": "event", "kind": "key_up", "seq": 1})") == "event: the name of a key has 1 to 15 bytes");
  CHECK(why(R"({"type": "dims", "shown": 4})") == "dims: shown is no number from 2 to 3");
  CHECK(why(R"({"type": "dims", "axis": 8})") == "dims: axis is no number from 0 to 7");
  CHECK(why(R"({"type": "dims", "step": 1, "seq": 0})") == "dims: seq is no number from 1 to 4294967295");
  CHECK(why(R"({"type": "look", "opacity": 2})") == "look: opacity is no number from 0 to 1");
  CHECK(why(R"({"type": "look", "mode": 3})") == "look: mode is no name of at most 15 bytes");
  CHECK(why(R"({"type": "look", "map": "a map of sixteen"})") == "look: map is no name of at most 15 bytes");
  CHECK(why(R"({"type": "look", "map": "a\u0000b"})") == "look: map is no name of at most 15 bytes");
  CHECK(why(R"({"type": "look", "reset": 1})") == "look: reset is neither true nor false");
  for (const char* const range : {"[0.5]", "[0.5, 0.25]", "[0, 2]", "[0, \"1\"]", "0.5", "[0, 0.5, 1]", "[null, 1]"})
    CHECK(why(std::string(R"({"type": "look", "crop_x": )") + range + "}") ==
          "look: crop_x is no pair of numbers from 0 to 1, the lower one first");
}

TEST_CASE("A million damaged messages are read or refused, and nothing else") {
  const std::vector<std::string> sound = {
      R"({"type": "start", "codecs": ["h264", "jpeg"]})",
      R"({"type": "ping", "at": 12.5})",
      R"({"type": "take"})",
      R"({"type": "event", "kind": "move", "seq": 17, "x": 10.5, "y": 20, "dx": 1, "dy": -1, "buttons": 1})",
      R"({"type": "event", "kind": "key_down", "seq": 18, "key": "ArrowLeft"})",
      R"({"type": "camera", "op": "orbit", "dx": 3, "dy": 4})",
      R"({"type": "dims", "axis": 1, "step": 40, "level": 2})",
      R"({"type": "dims", "seq": 3, "step": 7})",
      R"({"type": "look", "low": 0, "high": 255, "gamma": 0.5, "opacity": 1})",
      R"({"type": "look", "seq": 9, "mode": "iso", "map": "fire", "contrast": [0, 1], "crop_y": [0.25, 1]})",
      R"({"type": "look", "seq": 10, "reset": true})",
      ack_of(4, 1)};
  std::mt19937_64 random(random_seed());
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  size_t was_read = 0, was_refused = 0;
  for (int n = 0; n < 1'000'000; ++n) {
    std::string text = sound[below(sound.size())];
    for (size_t damage = below(4); damage > 0 && !text.empty(); --damage) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + below(8)); break;
        case 2: text.insert(at, text.substr(below(text.size()), below(12))); break;
        default: text.insert(at, 1, "{}[]\",:0e-."[below(11)]);
      }
    }
    try {
      text.starts_with('{') ? void(read_message(text)) : void(read_ack(text));
      ++was_read;
    } catch (const Rubbish&) {
      ++was_refused;
    }
  }
  CHECK(was_read > 100'000);
  CHECK(was_refused > 100'000);
}
