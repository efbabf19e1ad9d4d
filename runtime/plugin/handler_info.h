// The declaration of a handler type, as data: it can be copied, compared, written as JSON and read again (info_json.h).
// It has no code of the type, so that a type may be known by its declaration alone, like the types of another node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "millrace/abi.h"

namespace millrace::plugin {

// A record type with its texts. `raw` points into them, so it stays where it is.
struct RecordType {
  explicit RecordType(const mr_record_type& type);
  RecordType(const RecordType&) = delete;

  std::string name;
  std::vector<std::string> field_names;
  std::vector<mr_field> fields;
  mr_record_type raw{};
};
bool same(const mr_record_type& a, const mr_record_type& b);

struct HandlerInfo {
  std::string type, summary, manual;
  std::string plugin; // the plugin's name; "millrace" for built-ins
  std::string path;   // path of the shared library; "" for built-ins
  uint32_t traits = 0;
  uint32_t max_pending = 0;
  uint32_t gap = 0;       // how many ticks without a firing may pass while one is owed (semantics.md 8.12)
  uint32_t items_max = 0; // the most of a call; 0: it takes one tick a call
  bool has_state = false; // that the runtime keeps for it
  std::string thread;
  int64_t cost_hint_ns = 0;

  // The texts of `raw` are copied here, and its pointers to them are null; raw.accepts.records points into `records`.
  struct Port {
    std::string name, help, type_name;
    std::shared_ptr<const RecordType> records{}; // null: not described
    mr_port raw{};
    bool is_input() const { return raw.direction == MR_INPUT; }
    bool optional() const { return raw.flags & MR_PORT_OPTIONAL; }
    bool many() const { return raw.flags & MR_PORT_MANY; }
  };
  struct Param {
    std::string name, help, unit, default_text;
    std::vector<std::string> choices;
    mr_param raw{};
    std::string object{}; // the kind of object that it owns or joins, as in "viewer"; "": none
    bool live() const { return raw.flags & MR_PARAM_LIVE; }
    bool required() const { return raw.flags & MR_PARAM_REQUIRED; }
    bool owns() const { return raw.flags & MR_PARAM_OWNS; }
    bool joins() const { return raw.flags & MR_PARAM_JOINS; }
  };
  std::vector<Port> ports; // in declaration order: the index is the ABI's
  std::vector<Param> params;

  // Null if there is none.
  const Port* find_port(const std::string& name, uint32_t direction) const;
  const Param* find_param(const std::string& name) const;
  const Param* find_role(uint32_t role) const; // MR_ROLE_*
  bool has_cpu() const { return traits & MR_TRAIT_CPU_BODY; }
  bool has_cuda() const { return traits & MR_TRAIT_CUDA_BODY; }
  bool drains_freely() const { return traits & MR_TRAIT_DRAINS_FREELY; }
  bool stateless() const { return traits & MR_TRAIT_STATELESS; }
  bool converts(uint32_t role) const { return (traits & MR_TRAIT_CONVERTS) && find_role(role); }
  bool is_source() const; // no inputs
};

// A type whose code is in this process.
struct RegisteredType : HandlerInfo {
  const mr_handler_type* table = nullptr;
};

} // namespace millrace::plugin
