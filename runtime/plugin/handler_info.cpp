// Copies and finds parts of a declaration; see handler_info.h.
#include "plugin/handler_info.h"

#include <algorithm>
#include <cstring>

namespace millrace::plugin {

RecordType::RecordType(const mr_record_type& type)
    : name(type.name), fields(type.fields, type.fields + type.field_count), raw(type) {
  for (const mr_field& field : fields) field_names.emplace_back(field.name);
  for (size_t f = 0; f < fields.size(); ++f) fields[f].name = field_names[f].c_str();
  raw.name = name.c_str();
  raw.fields = fields.data();
}

bool same(const mr_record_type& a, const mr_record_type& b) {
  const auto same_field = [](const mr_field& one, const mr_field& other) {
    return std::strcmp(one.name, other.name) == 0 && one.offset == other.offset && one.count == other.count &&
           one.dtype_code == other.dtype_code && one.dtype_bits == other.dtype_bits;
  };
  return std::strcmp(a.name, b.name) == 0 &&
         std::equal(a.fields, a.fields + a.field_count, b.fields, b.fields + b.field_count, same_field);
}

const HandlerInfo::Port* HandlerInfo::find_port(const std::string& port, uint32_t direction) const {
  const auto found = std::find_if(ports.begin(), ports.end(), [&](const Port& candidate) {
    return candidate.raw.direction == direction && candidate.name == port;
  });
  return found == ports.end() ? nullptr : &*found;
}

const HandlerInfo::Param* HandlerInfo::find_param(const std::string& param) const {
  const auto found =
      std::find_if(params.begin(), params.end(), [&](const Param& candidate) { return candidate.name == param; });
  return found == params.end() ? nullptr : &*found;
}

const HandlerInfo::Param* HandlerInfo::find_role(uint32_t role) const {
  const auto found =
      std::find_if(params.begin(), params.end(), [&](const Param& candidate) { return candidate.raw.role == role; });
  return found == params.end() ? nullptr : &*found;
}

bool HandlerInfo::is_source() const {
  return std::none_of(ports.begin(), ports.end(), [](const Port& port) { return port.is_input(); });
}

} // namespace millrace::plugin
