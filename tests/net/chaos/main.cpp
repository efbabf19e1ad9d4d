// The command millrace-chaos: a TCP proxy that does to a link what networks do, by a script or at random.
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "proxy.h"

namespace millrace::chaos {

namespace {

// The exit status for a mistake in the command line or in a script.
constexpr int kMistaken = 2;

struct Asked {
  std::string listen = "127.0.0.1:0", to, file, text, mean_interval = "2s";
  std::optional<uint64_t> seed;
  bool prints_port = false, logs = false;
};

int mistaken(const std::string& sentence) {
  std::cerr << "millrace-chaos: " << sentence << "\n";
  return kMistaken;
}

// The script of the command line; a mistake is told, and nothing comes back.
std::optional<Script> read_script_of(const Asked& asked) {
  std::string text = asked.text;
  const std::string name = asked.file.empty() ? "-e" : asked.file;
  if (!asked.file.empty()) {
    std::ifstream file(asked.file);
    std::stringstream content;
    content << file.rdbuf();
    if (!file) {
      mistaken("the script " + asked.file + " cannot be read");
      return std::nullopt;
    }
    text = content.str();
  }
  const auto read = read_script(text);
  if (const auto* mistake = std::get_if<Mistake>(&read)) {
    mistaken(name + " line " + std::to_string(mistake->line) + ": " + mistake->sentence);
    return std::nullopt;
  }
  return std::get<Script>(read);
}

void log(const Event& event) {
  std::fprintf(stderr, "%.6f %s\n", static_cast<double>(event.at_ns) * 1e-9, text_of(event.fault).c_str());
}

int run(const Asked& asked) {
  const auto listen = read_address(asked.listen), to = read_address(asked.to);
  if (!listen) return mistaken("--listen expects HOST:PORT, found '" + asked.listen + "'");
  if (!to) return mistaken("--to expects HOST:PORT, found '" + asked.to + "'");
  const auto mean = read_time_ns(asked.mean_interval);
  if (!mean || *mean < kPeriodLeastNs)
    return mistaken("--mean-interval expects a time from 1ms, found '" + asked.mean_interval + "'");
  const auto script = read_script_of(asked);
  if (!script) return kMistaken;

  const bool at_random = asked.seed && asked.file.empty() && asked.text.empty();
  const uint64_t seed = asked.seed.value_or(std::random_device{}());
  ProxyOptions options{.listen = *listen, .to = *to, .seed = seed, .told = {}};
  if (asked.logs) options.told = log;

  boost::asio::io_context io(1);
  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  Proxy proxy(io, options, at_random ? Schedule::at_random(seed, *mean) : Schedule(*script, seed));
  if (asked.prints_port) {
    std::cout << proxy.endpoint().port() << "\n";
  } else {
    std::cout << "listens on " << proxy.endpoint() << "\n";
  }
  std::cout << "seed " << seed << std::endl; // flushed: a script waits for the port
  signals.async_wait([&](const boost::system::error_code&, int) { proxy.stop(); });
  proxy.start();
  io.run();
  std::cout << proxy.totals().json() << std::endl;
  return 0;
}

} // namespace

int run_command(int count, char** words) {
  Asked asked;
  CLI::App app(
      "Passes TCP connections on to a server, with faults on the way. SIGTERM or SIGINT ends it, and it prints\n"
      "its totals as a line of JSON.",
      "millrace-chaos");
  app.add_option("--listen", asked.listen, "HOST:PORT to listen on; port 0 takes a free one (127.0.0.1:0)");
  app.add_option("--to", asked.to, "HOST:PORT of the server")->required();
  app.add_option("--seed", asked.seed, "seed of all draws; without a script, faults of all kinds are drawn");
  auto* file = app.add_option("--script", asked.file, "file of faults");
  app.add_option("-e", asked.text, "faults, as a script has them")->excludes(file);
  app.add_option("--mean-interval", asked.mean_interval, "mean time between two drawn faults (2s)");
  app.add_flag("--print-port", asked.prints_port, "the first line is the port alone");
  app.add_flag("--log", asked.logs, "prints each fault to stderr as it begins: seconds, fault");
  app.footer(grammar_help());
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : (app.exit(error), kMistaken);
  }
  try {
    return run(asked);
  } catch (const std::exception& error) {
    std::cerr << "millrace-chaos: " << error.what() << "\n";
    return 1;
  }
}

} // namespace millrace::chaos

int main(int count, char** words) { return millrace::chaos::run_command(count, words); }
