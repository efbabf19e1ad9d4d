// Writes one tick's records as one line of JSON, and reads it back; see json_line.h.
#include "handlers/record/json_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>

#include "handlers/record/json_reader.h"

namespace millrace::handlers {

namespace {

template <class T>
void append_number(std::string& text, T number) {
  if constexpr (std::floating_point<T>) {
    if (std::isnan(number)) return void(text += "null");
    if (std::isinf(number)) return void(text += number < 0 ? "-1e999" : "1e999");
  }
  std::array<char, 32> digits; // the longest double takes 24
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

template <class T>
T loaded(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
template <class T>
void store(uint8_t* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

// Calls `use` with each number of a field.
template <class Use>
void each_number(const mr_field& field, const uint8_t* record, Use&& use) {
  const uint8_t* bytes = record + field.offset;
  for (uint32_t i = 0; i < field.count; ++i, bytes += field.dtype_bits / 8) {
    switch (bit_of(DType{field.dtype_code, field.dtype_bits})) {
      case MR_DTYPES_INT8: use(loaded<int8_t>(bytes)); break;
      case MR_DTYPES_INT16: use(loaded<int16_t>(bytes)); break;
      case MR_DTYPES_INT32: use(loaded<int32_t>(bytes)); break;
      case MR_DTYPES_INT64: use(loaded<int64_t>(bytes)); break;
      case MR_DTYPES_UINT8: use(loaded<uint8_t>(bytes)); break;
      case MR_DTYPES_UINT16: use(loaded<uint16_t>(bytes)); break;
      case MR_DTYPES_UINT32: use(loaded<uint32_t>(bytes)); break;
      case MR_DTYPES_UINT64: use(loaded<uint64_t>(bytes)); break;
      case MR_DTYPES_FLOAT32: use(loaded<float>(bytes)); break;
      default: use(loaded<double>(bytes)); break; // no other type can be declared
    }
  }
}

// Bytes of these names are a text, which the first zero ends.
constexpr std::array<std::string_view, 5> kTexts = {"name", "mode", "map", "key", "label"};

bool is_text(const mr_field& field) {
  return field.count > 1 && field.dtype_code == MR_DTYPE_UINT && field.dtype_bits == 8 &&
         std::find(kTexts.begin(), kTexts.end(), field.name) != kTexts.end();
}

void append_text(std::string& text, std::string_view letters) {
  constexpr const char* kHexDigits = "0123456789abcdef";
  text += '"';
  for (const char letter : letters) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') text += '\\';
    if (code >= 0x20)
      text += letter;
    else
      (text += "\\u00") += {kHexDigits[code >> 4], kHexDigits[code & 15]};
  }
  text += '"';
}

void read_text(JsonReader& json, const mr_field& field, uint8_t* bytes) {
  const size_t place = json.position();
  const std::string letters = json.string();
  if (letters.size() > field.count)
    throw JsonError(place + 1, "the text has " + std::to_string(letters.size()) +
                                   " bytes, and the field has room for " + std::to_string(field.count));
  std::memset(bytes, 0, field.count);
  std::memcpy(bytes, letters.data(), letters.size());
}

void append_field(std::string& text, const mr_field& field, const uint8_t* record) {
  if (is_text(field)) {
    const auto* const letters = reinterpret_cast<const char*>(record + field.offset);
    return append_text(text, {letters, ::strnlen(letters, field.count)});
  }
  if (field.count == 1) return each_number(field, record, [&](auto number) { append_number(text, number); });
  char before = '[';
  each_number(field, record, [&](auto number) {
    text += before;
    append_number(text, number);
    before = ',';
  });
  text += ']';
}

// Reads one number of a field.
void read_number(JsonReader& json, const mr_field& field, uint8_t* bytes) {
  const bool real = field.dtype_code == MR_DTYPE_FLOAT, wide = field.dtype_bits == 64;
  const bool null = real && json.take_null();
  if (real && wide) return store(bytes, null ? std::numeric_limits<double>::quiet_NaN() : json.f64());
  if (real) return store(bytes, null ? std::numeric_limits<float>::quiet_NaN() : json.f32());
  if (wide) return store(bytes, json.integer(std::numeric_limits<int64_t>::min()));
  const bool is_signed = field.dtype_code == MR_DTYPE_INT;
  const size_t place = json.position();
  const int64_t value = json.integer(is_signed ? std::numeric_limits<int32_t>::min() : 0);
  if (value >
      (is_signed ? int64_t{std::numeric_limits<int32_t>::max()} : int64_t{std::numeric_limits<uint32_t>::max()}))
    throw JsonError(place + 1, std::to_string(value) + " is too large for 32 bits");
  store(bytes, static_cast<uint32_t>(value));
}

// Numbers that are left out at the end of a list keep their defaults.
void read_field(JsonReader& json, const mr_field& field, uint8_t* record) {
  uint8_t* const bytes = record + field.offset;
  if (is_text(field)) return read_text(json, field, bytes);
  if (field.count == 1) return read_number(json, field, bytes);
  uint32_t count = 0;
  json.array([&] {
    if (count == field.count)
      throw JsonError(json.position() + 1,
                      "\"" + std::string(field.name) + "\" has at most " + std::to_string(field.count) + " numbers");
    read_number(json, field, bytes + count++ * (field.dtype_bits / 8));
  });
}

// The index of the field of this name. Fields mostly come in their order, so the search starts with the one after
// `last`.
size_t find_field(std::span<const mr_field> fields, std::string_view name, size_t last) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t f = (last + 1 + i) % fields.size();
    if (fields[f].name == name) return f;
  }
  return fields.size();
}

void read_record(JsonReader& json, const RecordLayout& layout, uint8_t* record) {
  const size_t place = json.position();
  const std::span<const mr_field> fields = layout.fields;
  uint64_t seen = 0; // a bit for each field; no type that can be read has 64 fields
  size_t last = fields.size() - 1;
  json.object([&](const std::string& key) {
    const size_t f = find_field(fields, key, last);
    if (f == fields.size()) return json.skip();
    read_field(json, fields[f], record);
    seen |= uint64_t{1} << f;
    last = f;
  });
  for (size_t f = 0; f < layout.required_count; ++f)
    if (!(seen >> f & 1)) throw JsonError(place + 1, "the record has no \"" + std::string(fields[f].name) + "\"");
}

void read_records(JsonReader& json, RecordLine& line) {
  line.count = 0;
  line.bytes.clear();
  json.array([&] {
    const size_t size = line.layout->record_size, offset = line.bytes.size();
    line.bytes.resize(offset + size);
    std::memcpy(line.bytes.data() + offset, line.layout->defaults, size);
    read_record(json, *line.layout, line.bytes.data() + offset);
    ++line.count;
  });
}

} // namespace

void append_record_line(std::string& text, uint64_t tick, int64_t time_ns, const RecordLayout& layout,
                        const uint8_t* records, uint64_t count) {
  text += "{\"tick\":";
  append_number(text, tick);
  text += ",\"time_ns\":";
  append_number(text, time_ns);
  text += ",\"schema\":\"";
  text += layout.schema;
  text += "\",\"records\":[";
  for (uint64_t i = 0; i < count; ++i) {
    char before = '{';
    if (i > 0) text += ',';
    for (const mr_field& field : layout.fields) {
      text += before;
      text += '"';
      text += field.name;
      text += "\":";
      append_field(text, field, records + i * layout.record_size);
      before = ',';
    }
    text += '}';
  }
  text += "]}\n";
}

void read_record_line(std::string_view text, std::span<const RecordLayout> layouts, RecordLine& line) {
  line.tick.reset();
  line.time_ns.reset();
  line.layout = nullptr;
  line.count = 0;
  line.bytes.clear();
  JsonReader json(text);
  // If the schema comes after the records, the records are skipped at first and read at the end.
  std::optional<size_t> records_at;
  bool has_records = false;
  json.object([&](const std::string& key) {
    if (key == "tick") {
      line.tick = static_cast<uint64_t>(json.integer(0));
    } else if (key == "time_ns") {
      line.time_ns = json.integer(std::numeric_limits<int64_t>::min());
    } else if (key == "schema") {
      const size_t place = json.position();
      if (line.layout) throw JsonError(place + 1, "the schema is said twice");
      const std::string schema = json.string();
      line.layout = find_layout(layouts, schema);
      if (!line.layout)
        throw JsonError(place + 1, "records of '" + schema + "' are not known, only " + list_layouts(layouts));
    } else if (key == "records") {
      has_records = line.layout != nullptr;
      if (has_records) return read_records(json, line);
      records_at = json.position();
      json.skip();
    } else {
      json.skip();
    }
  });
  json.end();
  if (!line.layout) throw JsonError(1, "the line has no \"schema\"");
  if (has_records) return;
  if (!records_at) throw JsonError(1, "the line has no \"records\"");
  JsonReader records(text, *records_at);
  read_records(records, line);
}

} // namespace millrace::handlers
