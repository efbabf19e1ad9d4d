// The line between two nodes: millrace-chaos on a thread of its own, told by a test what to do next.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "tests/net/chaos/proxy.h"
#include "tests/net/system/ends.h"

namespace millrace::net::test {

class Line {
 public:
  explicit Line(const Endpoint& to, uint64_t seed = 1)
      : work_(boost::asio::make_work_guard(io_)),
        proxy_(io_, options(to, seed), chaos::Schedule(chaos::Script{}, seed)) {
    proxy_.start();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Line() {
    boost::asio::post(io_, [this] { proxy_.stop(); });
    work_.reset();
    thread_.join();
  }

  Endpoint endpoint() const { return parse_endpoint("127.0.0.1:" + std::to_string(proxy_.endpoint().port())); }

  // Puts faults into force, as a script has them, and returns the time from which on they are.
  int64_t begin(const std::string& faults) {
    const auto script = chaos::read_script(faults);
    REQUIRE_MESSAGE(std::holds_alternative<chaos::Script>(script), faults);
    return on_thread<int64_t>([&] {
      for (const chaos::Statement& statement : std::get<chaos::Script>(script)) proxy_.begin(statement.fault);
      return monotonic_ns();
    });
  }
  chaos::Totals totals() {
    return on_thread<chaos::Totals>([&] { return proxy_.totals(); });
  }

 private:
  static chaos::ProxyOptions options(const Endpoint& to, uint64_t seed) {
    chaos::ProxyOptions options;
    options.listen = {"127.0.0.1", "0"};
    options.to = {to.host, std::to_string(to.port)};
    options.seed = seed;
    return options;
  }
  template <class Answer, class Work>
  Answer on_thread(Work work) {
    std::promise<Answer> answer;
    boost::asio::post(io_, [&] { answer.set_value(work()); });
    return answer.get_future().get();
  }

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  chaos::Proxy proxy_;
  std::thread thread_;
};

} // namespace millrace::net::test
