// The same transfer in millrace: one crossing of a link of two nodes. Forms: plain, tls, local.
#include "bench/net_pair.h"
#include "tests/peers/net/meter.h"

namespace {

millrace::bench::LinkKind kind_of(const std::string& form) {
  if (form == "tls") return millrace::bench::LinkKind::tls;
  return form == "local" ? millrace::bench::LinkKind::local : millrace::bench::LinkKind::plain;
}

} // namespace

int main(int argc, char** argv) {
  const peers::net::Job job = peers::net::job_of(argc, argv);
  const millrace::bench::LinkKind kind = kind_of(peers::net::form());
  try {
    if (job.is_rate)
      peers::net::print_rate(job, millrace::bench::send_parcels(kind, job.bytes, job.messages));
    else
      peers::net::print_one_way(millrace::bench::send_one_by_one(kind, job.bytes, job.messages, job.idle_ns));
  } catch (const std::exception& failure) {
    peers::net::give_up(failure.what());
  }
}
