// The properties of each kind of domain, and the parser of domain names; see domain.h.
#include "plan/domain.h"

#include <algorithm>
#include <iterator>

#include "observe/error.h"

namespace millrace::plan {

namespace {

struct Kind {
  const char* word;
  bool indexed; // else a node has only one
  Bodies bodies;
  bool host_memory, records_on_host, pushes;
};

// By DomainKind.
constexpr Kind kKinds[] = {{"cpu", false, Bodies::on_host, true, false, false},
                           {"sim", true, Bodies::simulated, false, false, false},
                           {"cuda", true, Bodies::enqueued, false, true, true}};

// An index of more digits is a typing error.
constexpr size_t kDigitsMax = 3;

std::optional<uint32_t> parse_index(std::string_view digits) {
  const bool all_digits = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits.empty() || digits.size() > kDigitsMax || !all_digits) return std::nullopt;
  uint32_t index = 0;
  for (const char digit : digits) index = index * 10 + static_cast<uint32_t>(digit - '0');
  return index;
}

} // namespace

std::optional<DomainKind> kind_named(std::string_view name) {
  const std::string_view word = name.substr(0, name.find(':'));
  for (size_t k = 0; k < std::size(kKinds); ++k)
    if (word == kKinds[k].word) return static_cast<DomainKind>(k);
  return std::nullopt;
}

std::optional<Domain> parse_domain(std::string_view name) {
  Domain domain;
  domain.name = name;
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    if (slash == 0) return std::nullopt;
    domain.node = name.substr(0, slash);
    name.remove_prefix(slash + 1);
  }
  const std::optional<DomainKind> known = kind_named(name);
  if (!known) return std::nullopt;
  domain.kind = *known;
  const Kind& kind = kKinds[static_cast<size_t>(domain.kind)];
  const size_t colon = name.find(':');
  if (kind.indexed != (colon != std::string_view::npos)) return std::nullopt;
  if (kind.indexed) {
    const std::optional<uint32_t> index = parse_index(name.substr(colon + 1));
    if (!index) return std::nullopt;
    domain.index = *index;
  }
  domain.bodies = kind.bodies;
  domain.host_memory = kind.host_memory;
  domain.records_on_host = kind.records_on_host;
  domain.pushes = kind.pushes;
  return domain;
}

std::string own_name(const Domain& domain) { return domain.name.substr(domain.name.find('/') + 1); }

std::vector<Domain> domains_named(const std::vector<std::string>& names) {
  std::vector<Domain> domains;
  for (const std::string& name : names) {
    const std::optional<Domain> domain = parse_domain(name);
    MR_ASSERT(domain, "a caller that makes records for several names has looked at each");
    domains.push_back(*domain);
  }
  return domains;
}

std::vector<Domain> with_host(const std::vector<Domain>& domains) {
  std::vector<Domain> all;
  for (const Domain& domain : domains)
    if (domain.is_host()) all.push_back(domain);
  if (!host_on(all, "")) all.insert(all.begin(), Domain());
  for (const Domain& domain : domains)
    if (!host_on(all, domain.node)) all.push_back(*parse_domain(domain.node + "/cpu"));
  for (const Domain& domain : domains)
    if (!domain.is_host()) all.push_back(domain);
  return all;
}

std::optional<uint32_t> find_domain(const std::vector<Domain>& domains, std::string_view name) {
  const auto at =
      std::find_if(domains.begin(), domains.end(), [&](const Domain& domain) { return domain.name == name; });
  if (at == domains.end()) return std::nullopt;
  return static_cast<uint32_t>(at - domains.begin());
}

std::optional<uint32_t> host_on(const std::vector<Domain>& domains, std::string_view node) {
  const auto at = std::find_if(domains.begin(), domains.end(),
                               [&](const Domain& domain) { return domain.is_host() && domain.node == node; });
  if (at == domains.end()) return std::nullopt;
  return static_cast<uint32_t>(at - domains.begin());
}

uint32_t host_of(const std::vector<Domain>& domains, uint32_t domain) {
  const std::optional<uint32_t> host = host_on(domains, domains[domain].node);
  MR_ASSERT(host, "every node of a plan has a host");
  return *host;
}

uint32_t submitter_of(const std::vector<Domain>& domains, uint32_t from, uint32_t to) {
  return domains[to].is_host() || (domains[from].pushes && domains[to].pushes) ? from : to;
}

} // namespace millrace::plan
