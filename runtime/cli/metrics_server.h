// Answers Prometheus while a pipeline runs: a small HTTP server with one thread of its own.
//
// It serves GET /metrics and GET /healthz, and closes each connection after its answer. Everything that a peer may do
// is bounded: the size of a request, its time, the number of connections, and how often a report is made for all of
// them together. The run does not know of the server.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace millrace::cli {

class MetricsServer {
 public:
  // Listens on "HOST:PORT". ":PORT" means every IPv4 address of the machine; port 0 means a free port. Throws Failure:
  // MR0105 if the address cannot be read, MR0113 if the server cannot listen on it. Requests wait until serve().
  explicit MetricsServer(const std::string& address);
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
