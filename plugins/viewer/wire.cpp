// Writes and reads messages; see wire.h.
#include "plugins/viewer/wire.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

namespace millrace::viewer {

namespace {

using nlohmann::json;

constexpr size_t kAckBytes = 13;
constexpr uint8_t kFlagKey = 1, kFlagStill = 2, kFlagAnswers = 4, kFlagTime = 8;
constexpr double kScaleMax = 1e6; // the largest zoom, value or time; beyond it is a mistake
constexpr int32_t kStepMax = 1 << 30;

template <class T>
void put(std::vector<uint8_t>& bytes, T number) {
  for (size_t byte = sizeof(T); byte-- > 0;) bytes.push_back(static_cast<uint8_t>(number >> (8 * byte)));
}

uint64_t big_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

// The beginning of a text, up to the end of a character.
std::string quoted(const std::string& text) {
  size_t size = std::min<size_t>(text.size(), 40);
  while (size > 0 && size < text.size() && (text[size] & 0xC0) == 0x80) --size;
  return "\"" + text.substr(0, size) + "\"";
}

// One object, whose members are read by name.
class Reader {
 public:
  Reader(const json& object, std::string type) : object_(object), type_(std::move(type)) {}

  bool has(const char* name) const { return object_.contains(name); }
  // Throws Rubbish unless it is a number from `least` to `most`; `otherwise` if it is not there.
  double number(const char* name, double least, double most, double otherwise = 0) const {
    const auto found = object_.find(name);
    if (found == object_.end()) return otherwise;
    const double value = found->is_number() ? found->get<double>() : std::nan("");
    if (!(value >= least && value <= most)) // also if it is no number at all
      throw Rubbish(type_ + ": " + name + " is no number from " + text_of(least) + " to " + text_of(most));
    return value;
  }
  float real(const char* name, double least, double most, double otherwise = 0) const {
    return static_cast<float>(number(name, least, most, otherwise));
  }
  int64_t whole(const char* name, double least, double most, double otherwise = 0) const {
    const double value = number(name, least, most, otherwise);
    if (value != std::floor(value)) throw Rubbish(type_ + ": " + name + " is no whole number");
    return static_cast<int64_t>(value);
  }
  std::optional<float> maybe_real(const char* name, double least, double most) const {
    return has(name) ? std::optional(real(name, least, most)) : std::nullopt;
  }
  std::optional<int32_t> maybe_whole(const char* name, double least, double most) const {
    return has(name) ? std::optional(static_cast<int32_t>(whole(name, least, most))) : std::nullopt;
  }
  // The page's number of what it wishes; 0: it asks for no answer.
  uint32_t wish() const { return has("seq") ? static_cast<uint32_t>(whole("seq", 1, UINT32_MAX)) : 0; }
  bool flag(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) return false;
    if (!found->is_boolean()) throw Rubbish(type_ + ": " + name + " is neither true nor false");
    return found->get<bool>();
  }
  // Two numbers, the lower one first.
  std::optional<std::array<float, 2>> range(const char* name, double least, double most) const {
    const auto found = object_.find(name);
    if (found == object_.end()) return {};
    const auto end = [&](size_t at) {
      const bool is_there = found->is_array() && found->size() == 2 && (*found)[at].is_number();
      return is_there ? (*found)[at].get<double>() : std::nan("");
    };
    const double low = end(0), high = end(1);
    if (!(least <= low && low <= high && high <= most)) // also if one is no number at all
      throw Rubbish(type_ + ": " + name + " is no pair of numbers from " + text_of(least) + " to " + text_of(most) +
                    ", the lower one first");
    return std::array{static_cast<float>(low), static_cast<float>(high)};
  }
  // A text that fits into `size` bytes with a zero at its end; "" leaves the choice to the handler.
  std::optional<std::string> name(const char* name, size_t size) const {
    const auto found = object_.find(name);
    if (found == object_.end()) return {};
    std::string given = found->is_string() ? found->get<std::string>() : std::string(size, ' ');
    if (given.size() >= size || given.find('\0') != std::string::npos)
      throw Rubbish(type_ + ": " + name + " is no name of at most " + std::to_string(size - 1) + " bytes");
    return given;
  }
  std::string text(const char* name) const {
    const auto found = object_.find(name);
    return found != object_.end() && found->is_string() ? found->get<std::string>() : "";
  }
  template <size_t N>
  size_t choice(const char* name, const std::array<std::string_view, N>& choices) const {
    const std::string given = text(name);
    const auto found = std::find(choices.begin(), choices.end(), given);
    if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
    std::string known;
    for (const std::string_view one : choices) known += (known.empty() ? "" : ", ") + std::string(one);
    throw Rubbish(type_ + ": " + name + " is " + quoted(given) + ", and not one of " + known);
  }
  const json& object() const { return object_; }

 private:
  static std::string text_of(double value) {
    std::string text = std::to_string(static_cast<int64_t>(value));
    return text;
  }
  const json& object_;
  const std::string type_;
};

Message read_start(const Reader& in) {
  Start start;
  const auto codecs = in.object().find("codecs");
  if (codecs == in.object().end() || !codecs->is_array()) throw Rubbish("start: codecs is no list of names");
  for (const json& name : *codecs)
    for (size_t c = 0; c < kCodecNames.size(); ++c)
      if (name.is_string() && name.get_ref<const std::string&>() == kCodecNames[c])
        start.codecs.push_back(static_cast<Codec>(c));
  return start;
}

Message read_event(const Reader& in) {
  static constexpr std::array<std::string_view, 7> kKinds = {"move",     "down",   "up",   "wheel",
                                                             "key_down", "key_up", "leave"};
  ViewEvent event;
  event.kind = static_cast<int32_t>(in.choice("kind", kKinds));
  event.seq = static_cast<uint32_t>(in.whole("seq", 1, UINT32_MAX));
  event.buttons = static_cast<uint32_t>(in.whole("buttons", 0, 255));
  event.modifiers = static_cast<uint32_t>(in.whole("modifiers", 0, 15));
  event.x = in.real("x", -kCoordinateMax, kCoordinateMax);
  event.y = in.real("y", -kCoordinateMax, kCoordinateMax);
  event.dx = in.real("dx", -kCoordinateMax, kCoordinateMax);
  event.dy = in.real("dy", -kCoordinateMax, kCoordinateMax);
  event.sent_s = in.number("sent_s", 0, 1e12);
  const std::string key = in.text("key");
  const bool has_key = event.kind == static_cast<int32_t>(ViewEventKind::key_down) ||
                       event.kind == static_cast<int32_t>(ViewEventKind::key_up);
  if (has_key && (key.empty() || key.size() >= sizeof event.name))
    throw Rubbish("event: the name of a key has 1 to " + std::to_string(sizeof event.name - 1) + " bytes");
  if (has_key) std::memcpy(event.name, key.data(), key.size());
  return event;
}

Message read_camera(const Reader& in) {
  static constexpr std::array<std::string_view, 4> kOps = {"pan", "zoom", "orbit", "reset"};
  CameraChange change;
  change.seq = in.wish();
  change.op = static_cast<CameraChange::Op>(in.choice("op", kOps));
  change.dx = in.real("dx", -kCoordinateMax, kCoordinateMax);
  change.dy = in.real("dy", -kCoordinateMax, kCoordinateMax);
  change.factor = in.real("factor", 1 / kScaleMax, kScaleMax, 1);
  change.anchor[0] = in.real("x", -kCoordinateMax, kCoordinateMax);
  change.anchor[1] = in.real("y", -kCoordinateMax, kCoordinateMax);
  return change;
}

Message read_dims(const Reader& in) {
  constexpr double kAxisMax = kAxes - 1, kLevelMax = 63;
  DimsChange change;
  change.seq = in.wish();
  const auto axis = in.maybe_whole("axis", 0, kAxisMax), step = in.maybe_whole("step", -kStepMax, kStepMax);
  change.step = step;
  (step ? change.step_axis : change.axis) = axis;
  change.shown = in.maybe_whole("shown", 2, 3);
  change.level = in.maybe_whole("level", 0, kLevelMax);
  return change;
}

Message read_look(const Reader& in) {
  constexpr double kValueMax = kScaleMax * kScaleMax;
  LookChange change;
  change.seq = in.wish();
  change.resets = in.flag("reset");
  change.low = in.maybe_real("low", -kValueMax, kValueMax);
  change.high = in.maybe_real("high", -kValueMax, kValueMax);
  if (const auto contrast = in.range("contrast", -kValueMax, kValueMax)) {
    change.low = (*contrast)[0];
    change.high = (*contrast)[1];
  }
  change.gamma = in.maybe_real("gamma", 1 / kScaleMax, kScaleMax);
  change.opacity = in.maybe_real("opacity", 0, 1);
  change.iso = in.maybe_real("iso", 0, 1);
  change.mode = in.name("mode", sizeof ViewLook().mode);
  change.map = in.name("map", sizeof ViewLook().map);
  change.crop = {in.range("crop_x", 0, 1), in.range("crop_y", 0, 1), in.range("crop_z", 0, 1)};
  return change;
}

} // namespace

std::vector<uint8_t> bytes_of(const PictureHead& head) {
  std::vector<uint8_t> bytes;
  bytes.reserve(32);
  put(bytes, head.seq);
  put(bytes, std::bit_cast<uint64_t>(head.seconds));
  put(bytes, head.width);
  put(bytes, head.height);
  bytes.push_back(static_cast<uint8_t>(head.codec));
  bytes.push_back(static_cast<uint8_t>((head.is_key ? kFlagKey : 0) | (head.is_still ? kFlagStill : 0) |
                                       (head.answers ? kFlagAnswers : 0) | kFlagTime));
  put(bytes, uint16_t{0});
  if (head.answers) put(bytes, head.answers);
  put(bytes, head.encoded_us);
  return bytes;
}

Ack read_ack(std::string_view bytes) {
  if (bytes.size() != kAckBytes)
    throw Rubbish("a binary message of a page acknowledges a picture and has " + std::to_string(kAckBytes) +
                  " bytes, not " + std::to_string(bytes.size()));
  Ack ack;
  ack.seq = static_cast<uint32_t>(big_endian(bytes.substr(0, 4)));
  const auto fate = static_cast<uint8_t>(bytes[4]);
  if (fate < 1 || fate > 3)
    throw Rubbish("a picture is drawn (1), passed over (2) or failed (3), not " + std::to_string(fate));
  ack.fate = static_cast<Fate>(fate);
  ack.page_s = std::bit_cast<double>(big_endian(bytes.substr(5)));
  if (!std::isfinite(ack.page_s)) throw Rubbish("the page's clock in an acknowledgement is no number");
  return ack;
}

Message read_message(std::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object()) throw Rubbish("a message of a page is a JSON object with a type");
  const Reader named(object, "a message");
  const std::string type = named.text("type");
  const Reader in(object, type);
  if (type == "start") return read_start(in);
  if (type == "ping") return Ping{in.number("at", 0, 1e12)};
  if (type == "take") return Take{};
  if (type == "event") return read_event(in);
  if (type == "camera") return read_camera(in);
  if (type == "dims") return read_dims(in);
  if (type == "look") return read_look(in);
  throw Rubbish("there is no message of the type " + quoted(type) +
                "; there are start, ping, take, event, camera, dims, look");
}

} // namespace millrace::viewer
