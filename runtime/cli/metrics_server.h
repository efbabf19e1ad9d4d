// Answers Prometheus while a pipeline runs: a small HTTP server with one thread of its own.
//
// It serves /metrics and /healthz to GET and HEAD, and closes each connection after its answer. A request has to name
// the server's address or a name that was given, so that no page in a browser can read the answer. Everything that a
// peer may do is bounded: the size of a request, its time, the number of connections, and how often a report is made
// for all of them together. The run does not know of the server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace::cli {

class MetricsServer {
 public:
  // Listens on "HOST:PORT". ":PORT" means every IPv4 address of the machine; port 0 means a free port. Throws Failure:
  // MR0105 if the address cannot be read, MR0113 if the server cannot listen on it. Requests wait until serve().
  //
  // The Host of a request is the address, HOST as it was given, or one of `names`. If the server listens on the
  // loopback, localhost is one too; if on all addresses, so are localhost and any IP address.
  explicit MetricsServer(const std::string& address, const std::vector<std::string>& names = {});
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // "http://127.0.0.1:9090/metrics"
  std::string url() const;
  // The server's thread calls `text`, at most ten times a second, until stop().
  void serve(std::function<std::string()> text);
  void stop();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

} // namespace millrace::cli
