// Answers Prometheus while a pipeline runs: a small HTTP server with one thread of its own.
//
// It serves GET /metrics and GET /healthz, and closes each connection behind its answer. Everything that a peer may do
// is bounded: the size of a request, the time it takes, the connections at one time, and how often a report is made for
// all of them together. The run knows nothing of it.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace millrace::cli {

class MetricsServer {
 public:
  // Listens on "HOST:PORT"; ":PORT" means every IPv4 address of the machine, port 0 one that is free. Throws Failure:
  // MR0105 where that cannot be read, MR0113 where it cannot be listened on. Nobody is answered before serve().
  explicit MetricsServer(const std::string& address);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // "http://127.0.0.1:9090/metrics"
  std::string url() const;
  // `text` is asked by the server's thread, at most ten times a second, until stop().
  void serve(std::function<std::string()> text);
  void stop();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

} // namespace millrace::cli
