// Reads and checks declarations: all rules about names, ports, parameters and traits are in this file.
#include "plugin/declaration.h"

#include <algorithm>
#include <array>

#include "millrace/param_text.h"
#include "millrace/payload.h"
#include "observe/error_codes.h"

namespace millrace::plugin {
namespace {

// Bounds of a declaration: far above any handler, and far below what would exhaust memory.
constexpr uint32_t kPortsMax = 256;
constexpr uint32_t kParamsMax = 256;
constexpr uint32_t kEdgesMax = 256;   // edges of an input that takes a list
constexpr uint32_t kKeepsMax = 64;    // each kept value is one more slot of memory in its ring
constexpr uint32_t kPendingMax = 256; // each pending firing is one more slot too
constexpr uint32_t kGapMax = 100'000; // and so is each tick of a gap
constexpr uint32_t kFieldsMax = 1024; // fields of a record
constexpr size_t kNameMax = 64;

// The keys of a handler in the pipeline file that are not its parameters.
constexpr std::array<std::string_view, 14> kReservedKeys = {"type",    "input",    "inputs",      "every",   "device",
                                                            "node",    "clock",    "on_error",    "batch",   "budget",
                                                            "isolate", "for_each", "concurrency", "priority"};

constexpr uint32_t kKnownTraits = MR_TRAIT_STATELESS | MR_TRAIT_BLOCKING | MR_TRAIT_CAPTURABLE | MR_TRAIT_HOST_HEAVY |
                                  MR_TRAIT_CPU_BODY | MR_TRAIT_CUDA_BODY | MR_TRAIT_FINISH | MR_TRAIT_NO_ALLOCATION |
                                  MR_TRAIT_ASYNCHRONOUS | MR_TRAIT_DRAINS_FREELY | MR_TRAIT_CONVERTS;

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.empty() || name.size() > kNameMax || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

// "family.name", or more parts: identifiers joined by dots.
bool is_type_name(std::string_view type) {
  size_t parts = 0;
  for (;; ++parts) {
    const size_t dot = type.find('.');
    if (!is_identifier(type.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return parts > 0;
    type.remove_prefix(dot + 1);
  }
}

std::string text_of(const char* text) { return text ? text : ""; }

// The type that is checked; `refuse` throws MR0504 with the type and the plugin named.
struct Subject {
  std::string type, plugin, path;
  [[noreturn]] void refuse(const std::string& sentence) const {
    Error error{code::bad_plugin_table, "handler type '" + type + "': " + sentence, {}, {}, {}, {}};
    error.notes.push_back("plugin '" + plugin + "'" + (path.empty() ? "" : " (" + path + ")"));
    throw Failure(std::move(error));
  }
  void require(bool holds, const std::string& sentence) const {
    if (!holds) refuse(sentence);
  }
};

void check_table(const mr_handler_type& table, const Subject& subject) {
  subject.require(table.size == sizeof(mr_handler_type), "its table is " + std::to_string(table.size) +
                                                             " bytes long, expected " +
                                                             std::to_string(sizeof(mr_handler_type)));
  subject.require(is_type_name(subject.type), "the name is not of the form family.name");
  const bool complete = table.create && table.destroy && table.set_param && table.bind && table.probe &&
                        table.configure && table.start && table.drain && table.stop && table.reset && table.interrupt;
  subject.require(complete, "its table lacks a function that every handler has");
  subject.require(table.process || table.process_cuda, "it has no body: neither process nor process_cuda");
}

// ---- the prototype

// The host of a prototype. It gets the sentence of a constructor that fails; other calls are not legal.
struct PrototypeHost {
  std::string sentence;
  mr_host host = basic_host();
  PrototypeHost() {
    host.fail = [](void* self, const char* text) { static_cast<PrototypeHost*>(self)->sentence = text; };
    host.log = [](void*, uint32_t, const char*) {};
    host.count = [](void*, const char*, int64_t) {};
  }
};

class Prototype {
 public:
  Prototype(const mr_handler_type& table, const Subject& subject) : table_(table) {
    const mr_status status = table.create(&host_.host, &host_, &self_, &declaration_);
    if (status != MR_OK) {
      Error error{code::handler_not_constructed,
                  "handler type '" + subject.type + "' could not be constructed",
                  {},
                  {},
                  {},
                  {}};
      error.notes.push_back("it said: " + (host_.sentence.empty() ? "nothing (out of memory?)" : host_.sentence));
      error.notes.push_back("plugin '" + subject.plugin + "'" +
                            (subject.path.empty() ? "" : " (" + subject.path + ")"));
      throw Failure(std::move(error));
    }
  }
  Prototype(const Prototype&) = delete;
  Prototype& operator=(const Prototype&) = delete;
  ~Prototype() {
    if (self_) table_.destroy(self_);
  }
  const mr_declaration* declaration() const { return self_ ? declaration_ : nullptr; }

 private:
  const mr_handler_type& table_;
  PrototypeHost host_;
  void* self_ = nullptr;
  const mr_declaration* declaration_ = nullptr;
};

// ---- traits, ports, parameters

void check_traits(const mr_declaration& declared, const mr_handler_type& table, const Subject& subject) {
  subject.require(declared.size == sizeof(mr_declaration), "its declaration has an unexpected size");
  subject.require((declared.traits & ~kKnownTraits) == 0, "it declares traits that are not known");
  subject.require(bool(declared.traits & MR_TRAIT_CPU_BODY) == bool(table.process),
                  "the declared CPU body and the table's differ");
  subject.require(bool(declared.traits & MR_TRAIT_CUDA_BODY) == bool(table.process_cuda),
                  "the declared GPU body and the table's differ");
  subject.require(bool(declared.traits & MR_TRAIT_FINISH) == bool(table.finish),
                  "the declared finish and the table's differ");
  subject.require(bool(declared.items_max) == bool(table.process_items),
                  "items() and process(Items&, …) belong together: it has only one of them");
  subject.require(!table.process_items || table.process, "its body for several items lacks the one for a single item");
  subject.require(bool(table.finish_items) == (table.process_items && table.finish),
                  "finish(Items&, …) and process(Items&, …) belong together: it has only one of them");
  subject.require(declared.items_max <= MR_ITEMS_MAX, "it takes " + std::to_string(declared.items_max) +
                                                          " items a call, at most " + std::to_string(MR_ITEMS_MAX) +
                                                          " are possible");
  subject.require(!declared.items_max || declared.max_pending == 0,
                  "it takes items, so it cannot have results pending");
  subject.require(declared.port_count <= kPortsMax, "it declares more than " + std::to_string(kPortsMax) + " ports");
  subject.require(declared.param_count <= kParamsMax,
                  "it declares more than " + std::to_string(kParamsMax) + " parameters");
  subject.require(declared.port_count == 0 || declared.ports, "its list of ports is missing");
  subject.require(declared.param_count == 0 || declared.params, "its list of parameters is missing");
  subject.require(declared.max_pending <= kPendingMax, "max_pending is " + std::to_string(declared.max_pending) +
                                                           ", at most " + std::to_string(kPendingMax) + " is possible");
  subject.require(declared.gap <= kGapMax, "its gap is " + std::to_string(declared.gap) + " ticks, at most " +
                                               std::to_string(kGapMax) + " are possible");
  subject.require(!(declared.traits & MR_TRAIT_STATELESS) || declared.state_bytes == 0,
                  "it is declared stateless, and has a State");
  const bool owes = declared.max_pending > 0;
  subject.require(owes || declared.gap == 0, "it declares a gap, which means nothing without max_pending");
  subject.require(owes || !(declared.traits & MR_TRAIT_DRAINS_FREELY),
                  "it declares that it drains freely, which means nothing without max_pending");
}

// Requires that the fields of a record type lie within its records, and that each is a number of a known type.
void check_records(const mr_port& port, const std::string& who, const Subject& subject) {
  const mr_record_type& type = *port.accepts.records;
  subject.require(port.accepts.kind == MR_KIND_RECORDS && type.size == sizeof(mr_record_type) && type.name &&
                      schema_of(type.name) == port.accepts.schema,
                  who + " describes records that are not its own");
  subject.require(type.field_count <= kFieldsMax && (type.field_count == 0 || type.fields),
                  who + " describes records of more than " + std::to_string(kFieldsMax) + " fields");
  for (uint32_t f = 0; f < type.field_count; ++f) {
    const mr_field& field = type.fields[f];
    subject.require(is_identifier(text_of(field.name)), who + ": the name of a record's field is not an identifier");
    const uint64_t bytes = uint64_t{field.count} * field.dtype_bits / 8;
    const uint32_t plain = MR_DTYPES_ALL & ~uint32_t{MR_DTYPES_FLOAT16 | MR_DTYPES_BFLOAT16};
    subject.require((bit_of(DType{field.dtype_code, field.dtype_bits}) & plain) && field.count >= 1 &&
                        field.offset + bytes <= port.accepts.record_size,
                    who + ": field '" + field.name + "' is no number within the record");
  }
}

// Each port is checked before it is copied; `like` may refer to a port that is checked later.
void check_port(const mr_declaration& declared, uint32_t index, const Subject& subject) {
  const mr_port& port = declared.ports[index];
  subject.require(port.size == sizeof(mr_port) && port.direction <= MR_OUTPUT,
                  "port " + std::to_string(index) + " has an unexpected size or direction");
  const bool input = port.direction == MR_INPUT;
  const std::string name = text_of(port.name);
  const std::string who = std::string(input ? "input" : "output") + " '" + name + "'";
  subject.require(is_identifier(name), who + ": the name is not an identifier");
  for (uint32_t other = 0; other < index; ++other)
    subject.require(declared.ports[other].direction != port.direction || name != declared.ports[other].name,
                    who + " is declared twice");
  subject.require(
      port.accepts.size == sizeof(mr_format) && port.accepts.kind <= MR_KIND_OBJECT && port.memory <= MR_MEMORY_GPU,
      who + " has an unknown kind or memory");
  const bool of_tensors = port.accepts.dtypes || port.accepts.ranks;
  subject.require(!of_tensors || port.accepts.kind == MR_KIND_TENSOR,
                  who + " says element types or a number of dimensions, and carries no tensors");
  subject.require(
      (port.accepts.dtypes & ~uint32_t{MR_DTYPES_ALL}) == 0 && port.accepts.ranks < 2u << MR_RANK_MAX,
      who + " says element types that are not known, or more than " + std::to_string(MR_RANK_MAX) + " dimensions");
  if (port.accepts.records) check_records(port, who, subject);
  const bool may_be_dense = declared.items_max > 0 && port.accepts.kind == MR_KIND_TENSOR &&
                            !(port.flags & (MR_PORT_MANY | MR_PORT_OPTIONAL | MR_PORT_FORWARDS | MR_PORT_IN_PLACE));
  subject.require(!(port.flags & MR_PORT_DENSE) || may_be_dense,
                  who +
                      " is dense: a required tensor of a handler that takes items can be, and no list, and nothing "
                      "that forwards or is written in place");
  subject.require(!(port.flags & MR_PORT_IDLE_WITHOUT) || (port.flags & MR_PORT_OPTIONAL),
                  who + " is idle_without, and not optional");
  subject.require(!(port.flags & MR_PORT_NEWEST) || (input && !(port.flags & MR_PORT_MANY)),
                  who + " takes the newest value: an input can, that is no list");
  subject.require(!(port.flags & MR_PORT_LASTING) ||
                      (!input && !(port.flags & (MR_PORT_FORWARDS | MR_PORT_IN_PLACE | MR_PORT_REPEATS))),
                  who + " is lasting: an output can be, that does not share an input's buffer");
  const uint32_t relations = port.flags & (MR_PORT_FORWARDS | MR_PORT_IN_PLACE);
  if (input) {
    subject.require(relations == 0 && port.like < 0, who + " is related to another port: only outputs can be");
    subject.require(port.keeps <= kKeepsMax,
                    who + " keeps " + std::to_string(port.keeps) + " values, at most " + std::to_string(kKeepsMax));
    const bool list_bounded = port.many_max >= 1 && port.many_max <= kEdgesMax;
    subject.require(!(port.flags & MR_PORT_MANY) || list_bounded,
                    who + " takes a list of 1 to " + std::to_string(kEdgesMax) + " edges");
    return;
  }
  subject.require(!(port.flags & (MR_PORT_OPTIONAL | MR_PORT_MANY)) && port.keeps == 0,
                  who + ": optional, lists and keeps are for inputs");
  subject.require(relations == 0 || port.like >= 0, who + " forwards or writes over an input that it does not name");
  const bool single = std::count_if(declared.ports, declared.ports + declared.port_count, [](const mr_port& other) {
                        return other.direction == MR_INPUT && !(other.flags & MR_PORT_MANY);
                      }) == 1;
  subject.require(!(port.flags & MR_PORT_REPEATS) || single, who + " repeats the input of a handler that has not one");
  if (port.like < 0) return;
  const auto like = static_cast<uint32_t>(port.like);
  subject.require(like < declared.port_count && declared.ports[like].direction == MR_INPUT,
                  who + " is like a port that is no input");
  subject.require(port.accepts.kind == MR_KIND_ANY || declared.ports[like].accepts.kind == MR_KIND_ANY ||
                      declared.ports[like].accepts.kind == port.accepts.kind,
                  who + " is like an input of another payload type");
}

void check_param(const mr_declaration& declared, uint32_t index, const Subject& subject) {
  const mr_param& param = declared.params[index];
  const std::string name = text_of(param.name);
  const std::string who = "parameter '" + name + "'";
  subject.require(param.size == sizeof(mr_param) && param.type <= MR_PARAM_JSON, who + " has an unknown type");
  subject.require(is_identifier(name), who + ": the name is not an identifier");
  subject.require(!is_reserved_key(name), who + ": the pipeline file uses this key itself");
  for (uint32_t other = 0; other < index; ++other)
    subject.require(name != declared.params[other].name, who + " is declared twice");
  subject.require(param.default_value.type == param.type, who + " has a default of another type");
  const bool text = param.type == MR_PARAM_STRING || param.type == MR_PARAM_JSON;
  subject.require(!text || param.default_value.as.text, who + " has no default");
  subject.require(!param.choices || param.type == MR_PARAM_STRING, who + ": choices are for strings");
  const bool is_path = param.flags & (MR_PARAM_READS_PATH | MR_PARAM_WRITES_PATH);
  subject.require(!is_path || param.type == MR_PARAM_STRING, who + " is a path, and no string");
  subject.require(!(param.flags & MR_PARAM_IN_PIECES) || (param.flags & MR_PARAM_WRITES_PATH),
                  who + " is in pieces, and no path that is written");
  subject.require(!(param.flags & MR_PARAM_CUTS_PATHS) || param.type == MR_PARAM_STRING,
                  who + " cuts paths, and is no string");
  subject.require(!(param.flags & MR_PARAM_DURATION) || param.type == MR_PARAM_FLOAT,
                  who + " is a duration, and no number of the type float");
  subject.require(
      !(param.flags & MR_PARAM_THREADS) || (param.type == MR_PARAM_INT && param.default_value.as.integer == 0),
      who + " counts threads, and is no whole number whose default is 0");
  const uint32_t of_object = param.flags & (MR_PARAM_OWNS | MR_PARAM_JOINS);
  subject.require(of_object == 0 || (param.type == MR_PARAM_STRING && !text_of(param.object).empty() &&
                                     of_object != (MR_PARAM_OWNS | MR_PARAM_JOINS)),
                  who + " owns or joins an object: it is a string, does one of the two, and says the object's kind");
  if (param.flags & MR_PARAM_HAS_RANGE)
    subject.require(!text && param.type != MR_PARAM_BOOL && param.min <= param.max,
                    who + " has a range that holds nothing, or is no number");
}

// The form in which a person would write the value.
std::string text_of(const mr_param_value& value) {
  switch (value.type) {
    case MR_PARAM_BOOL: return value.as.boolean ? "true" : "false";
    case MR_PARAM_INT: return std::to_string(value.as.integer);
    case MR_PARAM_FLOAT: return detail::number_text(value.as.real);
    default: return value.as.text;
  }
}

HandlerInfo::Port copy_port(const mr_port& port) {
  HandlerInfo::Port copy{port.name, text_of(port.help), text_of(port.type_name), nullptr, port};
  copy.raw.name = copy.raw.help = copy.raw.type_name = nullptr;
  if (port.accepts.records) {
    copy.records = std::make_shared<RecordType>(*port.accepts.records);
    copy.raw.accepts.records = &copy.records->raw;
  }
  return copy;
}

HandlerInfo::Param copy_param(const mr_param& param) {
  HandlerInfo::Param copy{param.name, text_of(param.help), text_of(param.unit), text_of(param.default_value), {},
                          param};
  for (const char* const* choice = param.choices; choice && *choice; ++choice) copy.choices.emplace_back(*choice);
  copy.object = text_of(param.object);
  copy.raw.name = copy.raw.help = copy.raw.unit = copy.raw.object = nullptr;
  copy.raw.choices = nullptr;
  if (param.type == MR_PARAM_STRING || param.type == MR_PARAM_JSON) copy.raw.default_value.as.text = nullptr;
  return copy;
}

// Requires that the plan can set a parameter with a role: a pixel format or a turn by its name, a size as a number.
void check_role(const mr_declaration& declared, const mr_param& param, const std::string& who, const Subject& subject) {
  if (param.role == MR_ROLE_NONE) return;
  const bool is_size = param.role == MR_ROLE_WIDTH || param.role == MR_ROLE_HEIGHT;
  subject.require(param.role < MR_ROLE_COUNT && param.type == (is_size ? MR_PARAM_INT : MR_PARAM_STRING),
                  who + " has a role that is not known, or is of another type than the role's");
  subject.require(declared.traits & MR_TRAIT_CONVERTS, who + " has a role, and the handler does not say converts()");
  for (uint32_t other = 0; &declared.params[other] != &param; ++other)
    subject.require(declared.params[other].role != param.role, who + " has the role of another parameter");
  const bool is_listed = param.role == MR_ROLE_PIXELS || param.role == MR_ROLE_TURN;
  subject.require(!is_listed || (param.choices && *param.choices),
                  who + " has a role whose choices have to be said: what the handler can make");
  // The plan sets these two only if they differ from this default.
  const char* expected = param.role == MR_ROLE_MATRIX ? "bt601" : param.role == MR_ROLE_RANGE ? "limited" : nullptr;
  subject.require(!expected || text_of(param.default_value) == expected,
                  who + " has another default than its role's, which is " + text_of(expected));
}

// Checks a handler that the plan inserts: the plan sets only the parameters with a role.
void check_converter(const mr_declaration& declared, const Subject& subject) {
  if (!(declared.traits & MR_TRAIT_CONVERTS)) return;
  uint32_t inputs = 0;
  uint64_t reads = 0;
  bool pictures = true;
  for (uint32_t p = 0; p < declared.port_count; ++p) {
    const mr_port& port = declared.ports[p];
    pictures = pictures && port.accepts.kind == MR_KIND_IMAGE;
    if (port.direction != MR_INPUT) continue;
    ++inputs;
    reads = port.accepts.pixel_formats;
  }
  subject.require(pictures && inputs == 1 && declared.port_count == 2,
                  "it says converts(), and has other ports than one input and one output for pictures");
  const auto has = [&](uint32_t role) {
    return std::any_of(declared.params, declared.params + declared.param_count,
                       [&](const mr_param& param) { return param.role == role; });
  };
  const bool pixels = has(MR_ROLE_PIXELS), turn = has(MR_ROLE_TURN), size = has(MR_ROLE_WIDTH) && has(MR_ROLE_HEIGHT);
  subject.require(pixels + turn + size == 1 && has(MR_ROLE_WIDTH) == has(MR_ROLE_HEIGHT),
                  "it says converts(), and its parameters say other than one of: pixels, a turn, width and height");
  subject.require(!pixels || reads != 0, "it converts pixel formats, and its input does not say which it reads");
  for (uint32_t i = 0; i < declared.param_count; ++i)
    subject.require(!(declared.params[i].flags & MR_PARAM_REQUIRED), "it says converts(), and its parameter '" +
                                                                         text_of(declared.params[i].name) +
                                                                         "' is required, which the plan would not set");
}

// Refuses a default that its own declaration would refuse: a mistake of the author. Required parameters have none.
void check_defaults(const HandlerInfo& info, const Subject& subject) {
  for (const HandlerInfo::Param& param : info.params) {
    if (param.required()) continue;
    try {
      parse_param(info, param, param.default_text, {});
    } catch (const Failure& failure) {
      subject.refuse("the default is refused: " + failure.error().what);
    }
  }
}

} // namespace

bool is_reserved_key(std::string_view name) {
  return name.starts_with("x-") || std::find(kReservedKeys.begin(), kReservedKeys.end(), name) != kReservedKeys.end();
}

std::unique_ptr<const RegisteredType> read_declaration(const mr_handler_type& table, const std::string& plugin,
                                                       const std::string& path) {
  const Subject subject{text_of(table.type), plugin, path};
  check_table(table, subject);
  const Prototype prototype(table, subject);
  subject.require(prototype.declaration(), "its create() leaves no declaration");
  const mr_declaration& declared = *prototype.declaration();
  check_traits(declared, table, subject);
  auto info = std::make_unique<RegisteredType>();
  info->type = subject.type;
  info->summary = text_of(table.summary);
  info->manual = text_of(table.manual);
  info->plugin = plugin;
  info->path = path;
  info->table = &table;
  info->traits = declared.traits;
  info->max_pending = declared.max_pending;
  info->gap = declared.gap;
  info->items_max = declared.items_max;
  info->has_state = declared.state_bytes > 0;
  info->thread = text_of(declared.thread);
  info->cost_hint_ns = declared.cost_hint_ns;
  for (uint32_t i = 0; i < declared.port_count; ++i) {
    check_port(declared, i, subject);
    info->ports.push_back(copy_port(declared.ports[i]));
  }
  for (uint32_t i = 0; i < declared.param_count; ++i) {
    check_param(declared, i, subject);
    check_role(declared, declared.params[i], "parameter '" + text_of(declared.params[i].name) + "'", subject);
    info->params.push_back(copy_param(declared.params[i]));
  }
  check_converter(declared, subject);
  check_defaults(*info, subject);
  return info;
}

} // namespace millrace::plugin
