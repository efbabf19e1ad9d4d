// Names of domains as they are read, and the properties of each kind.
#include "plan/domain.h"

#include <doctest/doctest.h>

namespace millrace::plan {

TEST_CASE("a domain's name says its node, its kind and its index") {
  const auto host = parse_domain("cpu"), second = parse_domain("sim:12"), far = parse_domain("edge/cuda:1");
  REQUIRE((host && second && far));
  CHECK(host->name == "cpu");
  CHECK(host->kind == DomainKind::cpu);
  CHECK(host->node == "");
  CHECK(second->kind == DomainKind::sim);
  CHECK(second->index == 12);
  CHECK(far->name == "edge/cuda:1");
  CHECK(far->node == "edge");
  CHECK(far->kind == DomainKind::cuda);
  CHECK(far->index == 1);
  CHECK(parse_domain("edge/cpu")->is_host());
}

TEST_CASE("what is no domain's name is not read as one") {
  for (const char* name : {"", "cpu:0", "cpu ", "sim", "sim:", "sim:x", "sim:-1", "sim:1000", "cuda", "cuda:0x", "gpu",
                           "/cpu", "edge/", "edge/gpu", "a/b/cpu", "Sim:0"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_domain(name));
  }
}

TEST_CASE("a misspelt name still says which kind was meant") {
  CHECK(kind_named("cuda:first") == DomainKind::cuda);
  CHECK(kind_named("sim") == DomainKind::sim);
  CHECK_FALSE(kind_named("simulated:0"));
}

TEST_CASE("a record says how bodies run there and whose memory it is") {
  const std::vector<Domain> all = domains_named({"cpu", "sim:0", "cuda:0"});
  const Domain &host = all[0], &sim = all[1], &gpu = all[2];
  CHECK(host.is_host());
  CHECK(host.host_memory);
  CHECK_FALSE(host.pushes);
  CHECK(sim.bodies == Bodies::simulated);
  CHECK_FALSE(sim.host_memory);
  CHECK_FALSE(sim.records_on_host);
  CHECK_FALSE(sim.pushes);
  CHECK(gpu.bodies == Bodies::enqueued);
  CHECK_FALSE(gpu.host_memory);
  CHECK(gpu.records_on_host);
  CHECK(gpu.pushes);
  for (const Domain& domain : all) CHECK(domain.bytes_limit == 0);
}

TEST_CASE("hosts stand before devices, and a list without one gets this node's") {
  const auto names = [](const std::vector<Domain>& domains) {
    std::string list;
    for (const Domain& domain : domains) list += domain.name + " ";
    return list;
  };
  CHECK(names(with_host(domains_named({"sim:1", "cpu", "cuda:0"}))) == "cpu sim:1 cuda:0 ");
  CHECK(names(with_host(domains_named({"sim:1", "sim:0"}))) == "cpu sim:1 sim:0 ");
  CHECK(names(with_host({})) == "cpu ");
  CHECK(names(with_host(domains_named({"cuda:0", "edge/cpu", "cpu"}))) == "edge/cpu cpu cuda:0 ");
}

TEST_CASE("each device has the host of its node, and a host has itself") {
  const std::vector<Domain> all = domains_named({"cpu", "edge/cpu", "sim:0", "edge/cuda:0"});
  CHECK(host_of(all, 0) == 0);
  CHECK(host_of(all, 1) == 1);
  CHECK(host_of(all, 2) == 0);
  CHECK(host_of(all, 3) == 1);
  CHECK(find_domain(all, "edge/cuda:0") == 3);
  CHECK_FALSE(find_domain(all, "cuda:0"));
}

TEST_CASE(
    "0011: devices submit the copies to and from a host, the target pulls, and of two that push the first pushes") {
  const std::vector<Domain> all = domains_named({"cpu", "sim:0", "sim:1", "cuda:0", "cuda:1"});
  CHECK(submitter_of(all, 0, 1) == 1);
  CHECK(submitter_of(all, 1, 0) == 1);
  CHECK(submitter_of(all, 0, 3) == 3);
  CHECK(submitter_of(all, 3, 0) == 3);
  CHECK(submitter_of(all, 1, 2) == 2);
  CHECK(submitter_of(all, 3, 4) == 3);
  CHECK(submitter_of(all, 1, 3) == 3);
}

} // namespace millrace::plan
