// Records damaged by hand: each is refused with its own reason, or is as good as another one.
//
// In the first test the checksums are right, so that the damaged field itself is looked at. In the others they are not.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/net/talk.h"

namespace millrace::net {
namespace {

using test::body_of;
using test::Buffer;
using test::exact;
using test::good_record;
using test::kPairing;
using test::record_of;
using test::Talk;

// Counts the damaged records, and compares what was found with what was expected.
class Tally {
 public:
  void check(Fault found, Fault expected, const std::string& what) {
    ++count_;
    INFO(what << ", expected: " << sentence_of(expected));
    CHECK_MESSAGE(found == expected, sentence_of(found));
  }
  int count() const { return count_; }

 private:
  int count_ = 0;
};

// A field of a body: its first byte and how many there are.
struct Field {
  const char* name;
  size_t at, bytes;
};
Buffer with(Buffer body, const Field& field, uint64_t number) {
  for (size_t i = 0; i < field.bytes; ++i) body[field.at + i] = static_cast<std::byte>(number >> (8 * i));
  return body;
}
struct Try {
  uint64_t number;
  Fault expected;
};
struct FieldTries {
  Field field;
  std::vector<Try> tries;
};

constexpr uint64_t kMost64 = UINT64_MAX, kMost32 = UINT32_MAX, kLeastSigned = uint64_t{1} << 63;
constexpr Fault kGood = Fault::none;

Buffer body_in(const Buffer& record) { return {record.begin() + kHeadBytes, record.end() - kCrcBytes}; }

// The reason for which a session refuses this on one of its connections.
Fault fault_of(Talk& talk, uint32_t lane, const Buffer& record) {
  talk.fault = Fault::none;
  talk.feed(lane, record);
  const bool was_refused = talk.told(EventType::refused);
  return was_refused ? talk.fault : Fault::none;
}

// ---- heads ---------------------------------------------------------------------------------------------------------

struct Type {
  RecordType type;
  uint32_t least, most;
  bool has_crossing, has_number, has_place;
};
// The numbers of mrl/1, said once more; MESSAGE has its own below, and CHANGE in changes.cpp.
constexpr Type kTypes[] = {
    {RecordType::hello, 128, 1152, false, false, false},  {RecordType::welcome, 128, 1152, false, false, false},
    {RecordType::open, 23, 631, true, false, false},      {RecordType::tick, 62, 32'768, true, true, false},
    {RecordType::data, 1, 1'048'576, true, true, true},   {RecordType::end, 62, 134, true, true, false},
    {RecordType::state, 19, 19'456, false, false, false}, {RecordType::ping, 8, 8, false, false, false},
    {RecordType::pong, 88, 88, false, false, false},      {RecordType::go_away, 4, 516, false, false, false},
    {RecordType::refuse, 4, 516, false, false, false},
};

Fault fault_of_head(const Head& head) {
  std::array<std::byte, kHeadBytes> bytes;
  write_head(head, bytes);
  Head read;
  return read_head(bytes, read);
}

void damage_heads(Tally& tally) {
  for (const Type& type : kTypes) {
    const std::string name = name_of(type.type);
    const Head good{type.type, 0, 0, type.least, 0, 0};
    const auto check = [&](auto change, Fault expected, const std::string& what) {
      Head head = good;
      change(head);
      tally.check(fault_of_head(head), expected, name + what);
    };
    for (const uint8_t wrong : std::vector<uint8_t>{0, 14, 15, 255})
      check([&](Head& head) { head.type = static_cast<RecordType>(wrong); }, Fault::type,
            " as type " + std::to_string(wrong));
    for (const uint32_t length : {0u, type.least - 1, type.least, type.most, type.most + 1, 1u << 31, UINT32_MAX})
      check([&](Head& head) { head.length = length; },
            length < type.least || length > type.most ? Fault::length : kGood, ", length " + std::to_string(length));
    for (const uint8_t flags : std::vector<uint8_t>{1, 63, 64, 255})
      check([&](Head& head) { head.flags = flags; },
            !type.has_place ? Fault::flags
            : flags < 64    ? kGood
                            : Fault::which_value,
            ", flags " + std::to_string(flags));
    for (const uint16_t crossing : std::vector<uint16_t>{1, 1023, 1024, 65'535})
      check([&](Head& head) { head.crossing = crossing; }, type.has_crossing ? kGood : Fault::field, ", crossing");
    for (const uint64_t number : {uint64_t{1}, kMost64})
      check([&](Head& head) { head.number = number; }, type.has_number ? kGood : Fault::field, ", number");
    const uint32_t last = 256 * 1024 * 1024 - type.least;
    for (const uint32_t at : {1u, last, last + 1, UINT32_MAX})
      check([&](Head& head) { head.at = at; },
            !type.has_place ? Fault::field
            : at <= last    ? kGood
                            : Fault::place,
            ", at");
  }
}

// ---- greetings -----------------------------------------------------------------------------------------------------

constexpr Field kMagicField{"magic", 0, 4}, kVersionLeastField{"least version", 4, 2},
    kVersionMostField{"most version", 6, 2}, kFeatures{"features", 8, 8}, kMandatory{"mandatory", 16, 8},
    kSession{"session", 56, 8}, kPairingField{"pairing", 64, 8}, kRun{"run", 72, 8}, kRevision{"revision", 80, 4},
    kLaneField{"lane", 116, 4}, kConnection{"connection", 120, 8};
constexpr Field kNode{"node", 24, 32}, kBrief{"brief", 84, 32};

Buffer hello_of(const Hello& hello) {
  return body_of([&](ByteWriter& writer) { write_hello(hello, writer); });
}

// The answer of a session to a HELLO, or its refusal of a WELCOME.
Fault answer_to(const Buffer& body, bool is_welcome) {
  Talk talk(is_welcome);
  if (is_welcome) {
    talk.dial(0);
    return fault_of(talk, 0, record_of(RecordType::welcome, body));
  }
  Hello hello;
  const Fault fault = read_hello(body, hello);
  return fault != Fault::none ? fault : talk.session.accept(hello, true, talk.now);
}

void damage_greetings(Tally& tally) {
  const std::vector<Try> magics{{0, Fault::magic},
                                {1, Fault::magic},
                                {kMagic - 1, Fault::magic},
                                {kMagic + 1, Fault::magic},
                                {kMost32, Fault::magic}};
  const std::vector<Try> any{{0, kGood}, {1, kGood}, {kMost64, kGood}};
  const std::vector<Try> runs{{0, Fault::plan}, {1, Fault::plan}, {9, kGood}, {kMost64, Fault::plan}};
  const std::vector<Try> sessions{{0, Fault::session}, {1, kGood}, {kMost64, kGood}};
  const std::vector<Try> lanes{{0, kGood},       {1, Fault::lane}, {2, Fault::lane},
                               {4, Fault::lane}, {5, Fault::lane}, {kMost32, Fault::lane}};
  const std::vector<Try> connections{{0, kGood}, {1, Fault::lane}, {kMost64, Fault::lane}}; // of control
  const std::vector<Try> mandatory{{0, kGood}, {1, Fault::feature}, {kMost64, Fault::feature}};
  const std::vector<FieldTries> of_hello{
      {kMagicField, magics},
      {kVersionLeastField, {{0, Fault::version}, {1, kGood}, {2, Fault::version}, {0xFFFF, Fault::version}}},
      {kVersionMostField, {{0, Fault::version}, {1, kGood}, {2, kGood}, {0xFFFF, kGood}}},
      {kFeatures, any},
      {kMandatory, mandatory},
      {kSession, sessions},
      {kPairingField, any},
      {kRun, runs},
      {kRevision, any},
      {kLaneField, lanes},
      {kConnection, connections}};
  const std::vector<FieldTries> of_welcome{
      {kMagicField, magics},
      {kVersionLeastField, {{0, Fault::version}, {1, kGood}, {2, Fault::version}, {0xFFFF, Fault::version}}},
      {kVersionMostField, {{0, Fault::version}, {1, kGood}, {2, Fault::version}, {0xFFFF, Fault::version}}},
      {kFeatures, {{0, kGood}, {1, Fault::feature}, {kMost64, Fault::feature}}},
      {kMandatory, mandatory},
      {kSession, sessions},
      {kPairingField, {{0, Fault::session}, {1, kGood}, {kMost64, kGood}}},
      {kRun, runs},
      {kRevision, any},
      {kLaneField, lanes},
      {kConnection, connections}};
  for (const bool is_welcome : {false, true}) {
    const Talk talk(is_welcome);
    const Buffer good = hello_of(talk.hello(0, is_welcome ? kPairing : 0));
    const std::string name = is_welcome ? "WELCOME, " : "HELLO, ";
    for (const auto& [field, tries] : is_welcome ? of_welcome : of_hello)
      for (const Try& one : tries)
        tally.check(answer_to(with(good, field, one.number), is_welcome), one.expected,
                    name + field.name + " " + std::to_string(one.number));
    for (size_t i = 0; i < 32; ++i)
      for (const Field& field : {kNode, kBrief}) {
        Buffer damaged = good;
        damaged[field.at + i] ^= std::byte{0x80};
        tally.check(answer_to(damaged, is_welcome), field.at == kNode.at ? Fault::node : Fault::plan,
                    name + field.name);
      }
    // Nobody has a pairing yet: a sound data connection is stale, or not the one that was dialled.
    const Buffer of_data = with(good, kLaneField, 1);
    for (const uint64_t number : {uint64_t{0}, uint64_t{1}, kMost64})
      tally.check(answer_to(with(of_data, kConnection, number), is_welcome),
                  is_welcome || number == 0 ? Fault::lane : Fault::stale, name + "connection of data");
    tally.check(answer_to(with(with(good, kLaneField, 2), kConnection, 1), is_welcome), Fault::lane, name + "lane 2");
    Buffer longer = good;
    longer.push_back({});
    tally.check(answer_to(longer, is_welcome), Fault::body_long, name + "a byte more");
    if (!is_welcome)
      tally.check(answer_to(with(longer, kVersionMostField, 2), false), kGood, "a later HELLO says more");
    // A feature that this side does not know, and without which the peer cannot work.
    tally.check(answer_to(with(with(good, kFeatures, 3), kMandatory, 1), is_welcome), Fault::feature, name + "feature");
  }
}

// ---- OPEN ----------------------------------------------------------------------------------------------------------

void damage_open(Tally& tally) {
  const Field depth{"depth", 11, 4}, delivery{"delivery", 15, 1}, count{"values", 16, 1}, hash{"hash", 17, 8},
      expected{"expected", 25, 8}, credit{"credit", 33, 8}, name_size{"name's length", 0, 1}, letter{"letter", 5, 1};
  const std::vector<FieldTries> all{
      {name_size,
       {{0, Fault::open_depth},
        {1, Fault::open_depth},
        {9, Fault::open_depth},
        {11, Fault::text},
        {96, Fault::body_short},
        {97, Fault::body_short},
        {255, Fault::body_short}}},
      {letter,
       {{0, Fault::text},
        {1, Fault::text},
        {0x1F, Fault::text},
        {0x20, Fault::open_name},
        {0x7E, Fault::open_name},
        {0x7F, Fault::text},
        {0x80, Fault::open_name},
        {0xFF, Fault::open_name}}},
      {depth,
       {{0, Fault::open_depth},
        {1, Fault::open_depth},
        {4, kGood},
        {64, Fault::open_depth},
        {65, Fault::open_depth},
        {kMost32, Fault::open_depth}}},
      {delivery, {{0, Fault::open_delivery}, {1, kGood}, {2, Fault::delivery}, {255, Fault::delivery}}},
      {count,
       {{0, Fault::body_long},
        {1, kGood},
        {2, Fault::body_short},
        {64, Fault::body_short},
        {65, Fault::open_values},
        {255, Fault::open_values}}},
      {hash, {{0, Fault::open_format}, {1, Fault::open_format}, {kMost64, Fault::open_format}}},
      {expected,
       {{0, kGood},
        {1, Fault::open_expected},
        {4, Fault::open_expected},
        {5, Fault::credit},
        {kMost64, Fault::credit}}},
      {credit, {{0, kGood}, {1, kGood}, {4, kGood}, {kMost64, kGood}}}};
  const auto check = [&](const Buffer& body, uint16_t crossing, Fault wanted, const std::string& what) {
    Talk talk(false);
    talk.come_up(true);
    tally.check(fault_of(talk, 1, record_of({RecordType::open, 0, crossing, 0, 0, 0}, body)), wanted, "OPEN, " + what);
  };
  const Buffer good = body_in(good_record(Talk(false), RecordType::open, 1));
  for (const auto& [field, tries] : all)
    for (const Try& one : tries) check(with(good, field, one.number), 0, one.expected, field.name);
  for (const uint16_t crossing : std::vector<uint16_t>{1, 2, 1023, 1024, 65'535})
    check(good, crossing, Fault::crossing, "crossing");
  Buffer longer = good;
  longer.push_back({});
  check(longer, 0, Fault::body_long, "a byte more");
  check({good.begin(), good.end() - 1}, 0, Fault::body_short, "a byte less");
  Open open = test::some_open();
  for (const size_t size : {size_t{0}, size_t{95}, size_t{96}, size_t{97}, size_t{255}}) {
    const std::string name(size, 'n');
    open.name = name;
    check(body_of([&](ByteWriter& writer) { write_open(open, writer); }), 0,
          size > kCrossingNameBytesMax ? Fault::text : Fault::open_name, "a name of " + std::to_string(size));
  }
}

// ---- TICK, END -----------------------------------------------------------------------------------------------------

// A session that reads crossing 1.
Fault fault_of_tick(RecordType type, const Buffer& body, uint16_t crossing = 1, uint64_t number = 0) {
  Talk talk(false);
  talk.come_up(true);
  return fault_of(talk, 1, record_of({type, 0, crossing, 0, number, 0}, body));
}

void damage_ticks(Tally& tally) {
  const std::vector<Try> any{{0, kGood}, {1, kGood}, {kLeastSigned, kGood}, {kMost64, kGood}};
  const std::vector<FieldTries> all{
      {{"clock", 0, 4}, any},
      {{"epoch", 4, 4}, any},
      {{"index", 8, 8}, {{0, kGood}, {1, Fault::gap}, {kMost64 - 1, Fault::gap}, {kMost64, Fault::index}}},
      {{"media time", 16, 8}, any},
      {{"deadline", 24, 8}, any},
      {{"trace", 32, 8}, any},
      {{"begun", 40, 8}, any},
      {{"its error", 48, 4}, {{0, kGood}, {kMost32, kGood}}},
      {{"previous", 52, 8}, {{0, Fault::index}, {1, Fault::index}, {kMost64 - 1, Fault::index}, {kMost64, kGood}}}};
  const std::vector<FieldTries> of_values{
      {{"gaps", 60, 1}, {{0, kGood}, {1, Fault::gap}, {8, Fault::gap}, {9, Fault::gap}, {255, Fault::gap}}},
      {{"values", 61, 1},
       {{0, Fault::open_values},
        {1, kGood},
        {2, Fault::open_values},
        {64, Fault::open_values},
        {65, Fault::which_value},
        {255, Fault::which_value}}},
      {{"value", 62, 1}, {{0, Fault::body_long}, {1, kGood}, {2, Fault::value}, {255, Fault::value}}},
      {{"schema", 63, 8}, any},
      {{"layout", 71, 8}, any},
      {{"kind", 79, 4},
       {{0, Fault::value},
        {1, Fault::value},
        {MR_KIND_PACKET, kGood},
        {MR_KIND_OBJECT, Fault::value},
        {kMost32, Fault::value}}},
      {{"stream", 83, 4}, any},
      {{"pts", 87, 8}, any},
      {{"duration", 95, 8}, any},
      {{"flags", 103, 4}, {{0, kGood}, {1, kGood}, {2, Fault::value}, {kMost32, Fault::value}}},
      {{"present", 107, 4}, {{0, kGood}, {1, kGood}, {2, Fault::value}, {kMost32, Fault::value}}},
      {{"extent", 111, 8}, {{0, kGood}, {1, kGood}, {10, kGood}, {11, Fault::value}, {kMost64, Fault::value}}}};
  for (const RecordType type : {RecordType::tick, RecordType::end}) {
    const Buffer good = body_in(good_record(Talk(false), type, 1));
    const std::string name = name_of(type);
    const auto check_all = [&](const std::vector<FieldTries>& fields) {
      for (const auto& [field, tries] : fields)
        for (const Try& one : tries)
          tally.check(fault_of_tick(type, with(good, field, one.number)), one.expected,
                      name + ", " + field.name + " " + std::to_string(one.number));
    };
    check_all(all);
    if (type == RecordType::tick) check_all(of_values);
    for (const uint16_t crossing : std::vector<uint16_t>{0, 2, 1023, 1024, 65'535})
      tally.check(fault_of_tick(type, good, crossing), Fault::crossing, name + ", crossing");
    for (const uint64_t number : {uint64_t{1}, uint64_t{4}, kMost64})
      tally.check(fault_of_tick(type, good, 1, number), Fault::number, name + ", number");
    Buffer longer = good;
    longer.push_back({});
    tally.check(fault_of_tick(type, longer), Fault::body_long, name + ", a byte more");
    if (type == RecordType::tick)
      tally.check(fault_of_tick(type, {good.begin(), good.end() - 1}), Fault::value, "TICK, a byte less");
    else
      tally.check(fault_of_tick(type, with(good, {"values", 61, 1}, 1)), Fault::open_values, "END, a value");
  }
}

void damage_gaps(Tally& tally) {
  const auto check = [&](uint64_t index, uint64_t previous, std::vector<Gap> gaps, Fault expected, const char* what) {
    const Buffer body = body_of([&](ByteWriter& writer) {
      Parcel parcel;
      parcel.tick.index = index;
      parcel.previous = previous;
      write_tick(parcel, writer);
    });
    Buffer whole(body.begin(), body.end() - 2);
    whole.push_back(static_cast<std::byte>(gaps.size()));
    for (const Gap& gap : gaps) {
      const Buffer one = body_of([&](ByteWriter& writer) {
        writer.put(gap.cause);
        writer.put(gap.ticks);
      });
      whole.insert(whole.end(), one.begin(), one.end());
    }
    whole.push_back({}); // no values
    tally.check(fault_of_tick(RecordType::end, whole), expected, std::string("a gap, ") + what);
  };
  const std::vector<Gap> eight{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {28, 1}, {29, 1}, {30, 1}, {31, 1}};
  check(8, kNoIndex, eight, kGood, "the most causes");
  check(9, 0, eight, kGood, "the most causes after a tick");
  check(9, kNoIndex, eight, Fault::gap, "a tick less than there are");
  check(7, kNoIndex, eight, Fault::gap, "a tick more than there are");
  check(1, kNoIndex, {{31, 1}}, kGood, "the last cause");
  check(1, kNoIndex, {{32, 1}}, Fault::cause, "a cause after the last");
  check(1, kNoIndex, {{255, 1}}, Fault::cause, "the largest cause");
  check(1, kNoIndex, {{0, 0}}, Fault::gap, "no tick");
  check(1, kNoIndex, {{0, 2}}, Fault::gap, "two ticks for one");
  check(1, kNoIndex, {{0, kMost64}}, Fault::gap, "so many that the sum wraps");
  check(2, kNoIndex, {{0, 2}, {1, 0}}, Fault::gap, "a second of no ticks");
  check(2, kNoIndex, {{0, 1}, {1, kMost64}}, Fault::gap, "a second that wraps");
  check(2, kNoIndex, {{5, 1}, {5, 1}}, Fault::cause, "a cause twice");
  check(2, kNoIndex, {{6, 1}, {5, 1}}, Fault::cause, "causes that fall");
  check(kMost64 - 1, kNoIndex, {{0, kMost64 - 1}}, kGood, "all ticks that there are");
  check(0, kNoIndex, {}, kGood, "none");
  check(1, 0, {}, kGood, "none after a tick");
  check(2, 0, {}, Fault::gap, "one that is not told");
}

// ---- DATA ----------------------------------------------------------------------------------------------------------

void damage_data(Tally& tally) {
  const auto check = [&](const Head& head, size_t bytes, Fault expected, const std::string& what) {
    Talk talk(false);
    talk.come_up(true);
    talk.feed(1, good_record(talk, RecordType::tick, 1)); // ten bytes follow
    tally.check(fault_of(talk, 1, record_of(head, Buffer(bytes))), expected, "DATA, " + what);
    CHECK(talk.taker.arrived() == (expected == kGood && bytes == 10 ? 1 : 0));
  };
  const auto data = [](uint8_t flags, uint16_t crossing, uint64_t number, uint32_t at) {
    return Head{RecordType::data, flags, crossing, 0, number, at};
  };
  for (const size_t bytes : {1u, 9u, 10u}) check(data(0, 1, 0, 0), bytes, kGood, "length");
  for (const size_t bytes : {11u, 65'536u, 1'048'576u}) check(data(0, 1, 0, 0), bytes, Fault::too_many_bytes, "length");
  for (const size_t bytes : {0u, 1'048'577u}) check(data(0, 1, 0, 0), bytes, Fault::length, "length");
  for (const uint8_t flags : std::vector<uint8_t>{1, 62, 63, 64, 255})
    check(data(flags, 1, 0, 0), 10, Fault::which_value, "value");
  for (const uint16_t crossing : std::vector<uint16_t>{0, 2, 1023, 1024, 65'535})
    check(data(0, crossing, 0, 0), 10, Fault::crossing, "crossing");
  for (const uint64_t number : {uint64_t{1}, uint64_t{2}, kMost64})
    check(data(0, 1, number, 0), 10, Fault::number, "number");
  for (const uint32_t at : {1u, 9u, 10u, 1u << 28, UINT32_MAX}) check(data(0, 1, 0, at), 10, Fault::place, "at");
}

// ---- control -------------------------------------------------------------------------------------------------------

Fault fault_on_control(RecordType type, const Buffer& body) {
  Talk talk(false);
  talk.come_up();
  const Fault fault = fault_of(talk, 0, record_of(type, body));
  return type == RecordType::refuse && fault == Fault::none && talk.session.is_connected(0) ? Fault::unexpected : fault;
}

void damage_states(Tally& tally) {
  const std::vector<Try> any{{0, kGood}, {1, kGood}, {kLeastSigned, kGood}, {kMost64, kGood}};
  const std::vector<Try> crossings{
      {1023, Fault::crossing}, {1024, Fault::crossing}, {0xFFFF, Fault::crossing}, {2, Fault::crossing}};
  const std::vector<FieldTries> of_reader{
      {{"crossing", 0, 2}, crossings},
      {{"crossing", 0, 2}, {{0, kGood}, {1, Fault::crossing}}}, // the session reads crossing 1
      {{"side", 2, 1},
       {{0, kGood}, {1, Fault::crossing}, {2, Fault::crossing}, {3, Fault::flags}, {255, Fault::flags}}},
      {{"acknowledged", 3, 8},
       {{0, kGood}, {1, Fault::acknowledged}, {4, Fault::acknowledged}, {kMost64, Fault::acknowledged}}},
      {{"credit", 11, 8}, any}};
  const std::vector<FieldTries> of_sender{
      {{"crossing", 0, 2}, crossings},
      {{"crossing", 0, 2}, {{0, Fault::crossing}, {1, kGood}}},
      {{"side", 2, 1}, {{0, Fault::crossing}, {1, kGood}, {2, kGood}, {3, Fault::flags}, {255, Fault::flags}}},
      {{"passed", 3, 8}, any},
      {{"after", 11, 8}, any}};
  const auto entry = [](const StateEntry& said) {
    return body_of([&](ByteWriter& writer) { write_state_entry(said, writer); });
  };
  for (const bool sender : {false, true}) {
    const Buffer good = entry(sender ? StateEntry{1, true, {}, {5, 0}} : StateEntry{0, false, {0, 4}, {}});
    for (const auto& [field, tries] : sender ? of_sender : of_reader)
      for (const Try& one : tries)
        tally.check(fault_on_control(RecordType::state, with(good, field, one.number)), one.expected,
                    std::string("STATE, ") + field.name + " " + std::to_string(one.number));
  }
  const auto check = [&](std::vector<StateEntry> entries, size_t more, Fault expected, const char* what) {
    Buffer body;
    for (const StateEntry& said : entries) {
      const Buffer one = entry(said);
      body.insert(body.end(), one.begin(), one.end());
    }
    body.resize(body.size() + more);
    tally.check(fault_on_control(RecordType::state, body), expected, std::string("STATE, ") + what);
  };
  const auto passed = [](int64_t ns, uint64_t after) { return StateEntry{1, true, {}, {ns, after}}; };
  check({passed(5, 2), passed(5, 2)}, 0, kGood, "the same twice");
  check({passed(5, 2), passed(6, 3)}, 0, kGood, "rising");
  check({passed(5, 2), passed(4, 2)}, 0, Fault::state_falls, "a time that falls");
  check({passed(5, 2), passed(5, 1)}, 0, Fault::state_falls, "a number that falls");
  check({StateEntry{0, false, {0, 9}, {}}, StateEntry{0, false, {0, 1}, {}}}, 0, kGood, "a credit that comes late");
  check(std::vector<StateEntry>(kStateEntriesMax, passed(1, 1)), 0, kGood, "the most entries");
  check(std::vector<StateEntry>(kStateEntriesMax + 1, passed(1, 1)), 0, Fault::length, "more than the most entries");
  check({}, 0, Fault::length, "none");
  check({passed(5, 2)}, 1, Fault::body_short, "a byte more");
  check({passed(5, 2)}, 18, Fault::body_short, "a byte less than two");
  check({}, 18, Fault::length, "a byte less than one");
}

void damage_farewells(Tally& tally) {
  const std::vector<FieldTries> all{
      {{"code", 0, 2}, {{0, kGood}, {1, kGood}, {42, kGood}, {44, kGood}, {45, kGood}, {0xFFFF, kGood}}},
      {{"sentence's length", 2, 2},
       {{0, Fault::body_long},
        {18, Fault::body_long},
        {19, kGood},
        {20, Fault::body_short},
        {512, Fault::body_short},
        {0xFFFF, Fault::body_short}}},
      {{"letter", 9, 1},
       {{0, Fault::text},
        {0x1B, Fault::text},
        {0x1F, Fault::text},
        {0x20, kGood},
        {0x7F, Fault::text},
        {0x80, kGood},
        {0xFF, kGood}}}};
  const Buffer good = test::some_farewell();
  for (const RecordType type : {RecordType::go_away, RecordType::refuse}) {
    const std::string name = name_of(type);
    for (const auto& [field, tries] : all)
      for (const Try& one : tries)
        tally.check(fault_on_control(type, with(good, field, one.number)), one.expected, name + ", " + field.name);
    for (const size_t size : {size_t{0}, size_t{1}, size_t{512}, size_t{513}}) {
      Buffer body(4 + size, std::byte{'x'});
      body = with(with(body, {"", 0, 2}, 42), {"", 2, 2}, size);
      tally.check(fault_on_control(type, body), size > 512 ? Fault::length : kGood,
                  name + ", a sentence of " + std::to_string(size));
    }
  }
  for (const Field& time : {Field{"t1", 0, 8}, Field{"t2", 8, 8}, Field{"t3", 16, 8}})
    for (const uint64_t number : {uint64_t{0}, uint64_t{1}, kLeastSigned, kLeastSigned - 1, kMost64}) {
      if (time.at == 0)
        tally.check(fault_on_control(RecordType::ping, with(Buffer(8), time, number)), kGood, "PING, a time");
      tally.check(fault_on_control(RecordType::pong, with(Buffer(kPongBytes), time, number)), kGood, "PONG, a time");
    }
  for (const size_t size : {size_t{0}, size_t{7}, size_t{9}, size_t{24}})
    tally.check(fault_on_control(RecordType::ping, Buffer(size)), Fault::length, "PING, length");
  for (const size_t size : {size_t{0}, size_t{24}, size_t{87}, size_t{89}})
    tally.check(fault_on_control(RecordType::pong, Buffer(size)), Fault::length, "PONG, length");
}

// The peer's counts of the bytes of data connections. The link has one, with the number 1.
void damage_counts(Tally& tally) {
  for (const bool dials : {false, true}) {
    const auto check = [&](size_t lane, std::vector<LaneCount> counts, Fault expected, const char* what) {
      Talk talk(dials);
      talk.come_up(true);
      Fault fault{};
      for (const LaneCount& count : counts) {
        Pong said;
        said.lanes[lane - 1] = count;
        REQUIRE(fault == kGood);
        fault = fault_of(talk, 0,
                         record_of(RecordType::pong, body_of([&](ByteWriter& writer) { write_pong(said, writer); })));
      }
      tally.check(fault, expected, std::string("PONG, ") + what);
    };
    Talk sample(dials);
    sample.come_up(true);
    const uint64_t written = sample.written; // OPEN, and WELCOME by the side that accepts
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, written - 1, written})
      check(1, {{1, bytes}}, kGood, "as many bytes as were written, or fewer");
    for (const uint64_t bytes : {written + 1, kLeastSigned, kMost64})
      check(1, {{1, bytes}}, Fault::received, "more bytes than were written");
    check(1, {{1, 2}, {1, 1}}, Fault::state_falls, "a count that falls");
    check(1, {{1, 2}, {1, 2}, {1, written}}, kGood, "a count that rises");
    for (const uint64_t other : {uint64_t{2}, kMost64})
      for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, kMost64})
        check(1, {{1, 2}, {other, bytes}}, kGood, "the bytes of another connection");
    for (const uint64_t bytes : {uint64_t{1}, kMost64}) check(1, {{0, bytes}}, Fault::field, "bytes of no connection");
    for (const size_t lane : {size_t{2}, size_t{3}, size_t{4}}) {
      check(lane, {{1, 0}}, Fault::lane, "a connection that the link does not have");
      check(lane, {{0, 1}}, Fault::field, "bytes of no connection");
    }
  }
}

// A chunk on a connection over which a message and a half have come, by heads alone where `head` has a length.
void damage_messages(Tally& tally) {
  constexpr uint32_t kFull = 16'384, kMost = 4'194'304, kLastAt = kMost - kFull;
  const auto check_head = [&](const Head& head, Fault expected, const std::string& what) {
    tally.check(fault_of_head(head), expected, "MESSAGE, " + what);
  };
  const auto head = [](uint8_t flags, uint32_t length, uint64_t number, uint32_t at) {
    return Head{RecordType::message, flags, 0, length, number, at};
  };
  for (const uint8_t flags : std::vector<uint8_t>{0, 1, 2, 3, 63, 64, 255})
    check_head(head(flags, kFull, 0, 0), flags > 1 ? Fault::flags : kGood, "flags");
  for (const uint32_t length : {0u, 1u, kFull - 1, kFull, kFull + 1, 1u << 31, UINT32_MAX}) {
    const bool is_chunk = length >= 1 && length <= kFull;
    check_head(head(1, length, 0, 0), is_chunk ? kGood : Fault::length, "length of the last chunk");
    check_head(head(0, length, 0, 0), length == kFull ? kGood : Fault::length, "length of a chunk");
  }
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, kMost64}) check_head(head(1, 1, number, 0), kGood, "number");
  for (const uint32_t at : {0u, kFull, 3 * kFull, kLastAt}) check_head(head(1, 1, 0, at), kGood, "at");
  for (const uint32_t at : {1u, kFull - 1, kFull + 1, kLastAt - 1, kLastAt + 1})
    check_head(head(1, 1, 0, at), Fault::place, "a place between chunks");
  for (const uint32_t at : {kMost, kMost + 1, UINT32_MAX})
    check_head(head(1, 1, 0, at), Fault::message, "a place beyond the longest");
  check_head(head(1, kFull, 0, kLastAt), kGood, "the last chunk of the longest");
  check_head(head(0, kFull, 0, kLastAt), Fault::message, "a chunk after which there is no room for the next");
  check_head(head(0, kFull, 0, kLastAt - kFull), kGood, "the chunk before the last of the longest");
  for (const uint16_t crossing : std::vector<uint16_t>{1, 1024, 65'535})
    check_head({RecordType::message, 1, crossing, 1, 0, 0}, Fault::field, "crossing");

  const auto check = [&](uint8_t flags, uint64_t number, uint32_t at, size_t bytes, Fault expected, const char* what) {
    Talk talk(false);
    talk.come_up();
    REQUIRE(fault_of(talk, 0, record_of(head(1, 0, 0, 0), Buffer(5))) == kGood);
    REQUIRE(fault_of(talk, 0, record_of(head(0, 0, 1, 0), Buffer(kFull))) == kGood);
    tally.check(fault_of(talk, 0, record_of(head(flags, 0, number, at), Buffer(bytes))), expected,
                std::string("MESSAGE, ") + what);
    std::string text;
    CHECK(talk.session.take_message(text));
    CHECK(talk.session.take_message(text) == (expected == kGood && flags == 1));
  };
  check(1, 1, kFull, 1, kGood, "the next chunk, the last one");
  check(0, 1, kFull, kFull, kGood, "the next chunk");
  for (const uint64_t number : {uint64_t{0}, uint64_t{2}, kMost64})
    check(1, number, kFull, 1, Fault::number, "another number than the next");
  check(1, 2, 0, 1, Fault::number, "the next message before this one has ended");
  for (const uint32_t at : {0u, 2 * kFull, kLastAt}) check(1, 1, at, 1, Fault::place, "another place than the next");
}

// ---- order ---------------------------------------------------------------------------------------------------------

// The reason for which the second of two good records is refused, after the first was taken.
Fault order_fault(RecordType first, RecordType second) {
  using R = RecordType;
  if (second == R::refuse) return kGood;
  switch (first) {
    case R::open:
      return second == R::open                                              ? Fault::open_expected
             : second == R::tick || second == R::end || second == R::change ? kGood
                                                                            : Fault::unexpected;
    case R::tick: return second == R::open || second == R::data ? kGood : Fault::unexpected;
    default: // END
      return second == R::open                                              ? kGood
             : second == R::tick || second == R::end || second == R::change ? Fault::after_end
                                                                            : Fault::unexpected;
  }
}

void disorder(Tally& tally) {
  for (const RecordType first : {RecordType::open, RecordType::tick, RecordType::end})
    for (uint8_t type = 1; type <= kRecordTypeLast; ++type) {
      const auto second = static_cast<RecordType>(type);
      Talk talk(false);
      talk.come_up(true);
      REQUIRE(fault_of(talk, 1, good_record(talk, first, 1)) == kGood);
      tally.check(fault_of(talk, 1, good_record(talk, second, 1)), order_fault(first, second),
                  std::string(name_of(first)) + ", then " + name_of(second));
    }
  for (const RecordType first :
       {RecordType::state, RecordType::ping, RecordType::pong, RecordType::go_away, RecordType::message})
    for (uint8_t type = 1; type <= kRecordTypeLast; ++type) {
      const auto second = static_cast<RecordType>(type);
      Talk talk(false);
      talk.come_up();
      REQUIRE(fault_of(talk, 0, good_record(talk, first, 0)) == kGood);
      tally.check(fault_of(talk, 0, good_record(talk, second, 0)),
                  second < RecordType::state || second == RecordType::change      ? Fault::unexpected
                  : first == RecordType::message && second == RecordType::message ? Fault::number
                                                                                  : kGood,
                  std::string(name_of(first)) + ", then " + name_of(second));
    }
}

// ---- an exchange ---------------------------------------------------------------------------------------------------

struct Said {
  uint32_t lane;
  Buffer record;
};

// The words of a peer that accepts, to a session that dials: WELCOME, STATE, WELCOME, OPEN, TICK, DATA, END.
std::vector<Said> exchange_with(const Talk& talk) {
  const auto welcome = [&](uint32_t lane) {
    return record_of(RecordType::welcome, hello_of(talk.hello(lane, kPairing)));
  };
  Buffer end = body_in(good_record(talk, RecordType::end, 1));
  end = with(with(end, {"index", 8, 8}, 1), {"previous", 52, 8}, 0);
  end = with(with(end, {"media time", 16, 8}, static_cast<uint64_t>(test::media_of(1))), {"trace", 32, 8},
             test::mixed(1));
  Buffer data(10);
  exact(10).fill(reinterpret_cast<uint8_t*>(data.data()), 0, 0);
  return {{0, welcome(0)},
          {0, good_record(talk, RecordType::state, 0)},
          {1, welcome(1)},
          {1, good_record(talk, RecordType::open, 1)},
          {1, good_record(talk, RecordType::tick, 1)},
          {1, record_of({RecordType::data, 0, 1, 0, 0, 0}, data)},
          {1, record_of({RecordType::end, 0, 1, 0, 1, 0}, end)}};
}

// Hands the exchange to a session; the record `at` is `replaced`, and what comes after it is left out.
Fault listen_to(Talk& talk, const std::vector<Said>& exchange, size_t at, const Buffer& replaced) {
  talk.dial(0);
  for (size_t i = 0; i <= at; ++i) {
    if (exchange[i].lane == 1 && !talk.session.is_connected(1)) {
      talk.dial(1);
      talk.session.gather(1, talk.now);
    }
    if (exchange[i].record[0] == std::byte{4}) talk.hear(1); // OPEN was said before the first TICK
    const Fault fault = fault_of(talk, exchange[i].lane, i == at ? replaced : exchange[i].record);
    if (i == at || fault != kGood) return fault;
  }
  return kGood;
}

} // namespace

TEST_CASE("more than 1000 records damaged by hand are each refused with their reason, or are good ones") {
  Tally tally;
  damage_heads(tally);
  damage_greetings(tally);
  damage_open(tally);
  damage_ticks(tally);
  damage_gaps(tally);
  damage_data(tally);
  damage_states(tally);
  damage_farewells(tally);
  damage_counts(tally);
  damage_messages(tally);
  disorder(tally);
  CHECK(tally.count() > 1000);
}

TEST_CASE("an exchange that is cut at any byte brings the parcels that were whole, and no other") {
  const std::vector<Said> exchange = exchange_with(Talk(true));
  int cuts = 0;
  for (size_t at = 0; at < exchange.size(); ++at)
    for (size_t bytes = 0; bytes <= exchange[at].record.size(); ++bytes, ++cuts) {
      INFO("record " << at << ", " << bytes << " bytes");
      Talk talk(true);
      const Buffer& record = exchange[at].record;
      CHECK(listen_to(talk, exchange, at, {record.begin(), record.begin() + static_cast<ptrdiff_t>(bytes)}) == kGood);
      const bool is_whole = bytes == record.size();
      const uint64_t arrived = at < 5 ? 0 : at == 5 ? (is_whole ? 1 : 0) : is_whole ? 2 : 1;
      CHECK(talk.taker.arrived() == arrived);
      for (const uint32_t lane : {0u, 1u}) talk.session.cut(lane, talk.now);
      CHECK(talk.taker.arrived() == arrived);
      CHECK(talk.taker.broken() == nullptr);
    }
  CHECK(cuts > 600);
}

TEST_CASE("a byte that was changed or lost on the way is found by the checksum of its head or of its body") {
  const std::vector<Said> exchange = exchange_with(Talk(true));
  int damages = 0;
  for (size_t at = 0; at < exchange.size(); ++at)
    for (size_t byte = 0; byte < exchange[at].record.size(); ++byte, ++damages) {
      INFO("record " << at << ", byte " << byte);
      const Buffer& record = exchange[at].record;
      Buffer changed = record;
      changed[byte] ^= static_cast<std::byte>(1 + byte % 255);
      Talk first(true), second(true);
      CHECK(listen_to(first, exchange, at, changed) ==
            (byte < kHeadBytes ? Fault::head_checksum : Fault::body_checksum));
      CHECK(first.taker.arrived() == (at == 6 ? 1 : 0));
      // One of several equal bytes is lost: it could as well be the last.
      size_t last = byte;
      while (last + 1 < record.size() && record[last + 1] == record[byte]) ++last;
      Buffer lost = record;
      lost.erase(lost.begin() + static_cast<ptrdiff_t>(byte));
      lost.push_back(~record.back()); // the next record begins
      CHECK(listen_to(second, exchange, at, lost) == (last < kHeadBytes ? Fault::head_checksum : Fault::body_checksum));
      CHECK(second.taker.arrived() == (at == 6 ? 1 : 0));
      CHECK(second.taker.broken() == nullptr);
    }
  CHECK(damages > 600);
}

} // namespace millrace::net
