// The options of each command and the function that runs it; main.cpp reads the command line into these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compose/options.h"

namespace millrace::cli {

struct CalibrateCommand : compose::PipelineOptions {
  uint64_t ticks = 200;
};

struct RunCommand : compose::PipelineOptions {
  uint64_t ticks = 0;
  double duration_s = 0;
  std::string json, trace, metrics, progress;
  std::vector<std::string> metrics_hosts;
  std::string web; // an address, as --web-listen gives it; "": no page
  std::vector<std::string> web_hosts;
  bool tls = false; // pages by https, with a certificate of one's own, unless files are given
  std::string tls_cert, tls_key;
  std::vector<std::string> listen, coordinator; // addresses
  double patience_s = 30, wait_s = 0;           // wait_s 0: for ever
  bool quiet = false, explain = false, sync_devices = false;
  std::string log_level, log_file; // "": not given
  std::string log_format = "text";
  std::string control = "on"; // or "off"
  int verbose = 0;            // how often -v was given
};

struct PlanCommand : compose::PipelineOptions {
  bool json = false, dot = false;
  std::string svg; // a file; "": none
};

struct ListCommand {
  std::string type; // inspect
  bool json = false;
  std::vector<std::string> plugin_paths;
};

struct CheckHandlerCommand {
  std::string type;
  std::vector<std::string> sets; // parameter=value
  std::vector<std::string> plugin_paths;
  bool json = false;
  bool in_process = false; // for a debugger: a crash takes the command with it
  // A check of a slow handler takes seconds, and more under a sanitizer; a check that takes longer than this hangs.
  int seconds_max = 60;
};

struct ExplainCommand {
  std::string code; // "": all
  bool json = false;
};

struct IdentityCommand {
  bool json = false;
};

struct NodesCommand {
  std::string action; // "", "add" or "forget"
  std::string name;   // forget: or an id
  std::string id;
  std::vector<std::string> addresses;
  bool json = false, watch = false;
};

// A run on this machine: -p.
struct RunChoice {
  std::string run; // the name of its pipeline, or its process; "": the only one
  bool json = false;
};

struct GetCommand : RunChoice {
  std::vector<std::string> wanted; // handler or handler.param; empty: all that are live
};

struct SetCommand : RunChoice {
  std::vector<std::string> changes; // handler.param=value
};

struct StreamsCommand : RunChoice {
  std::string action;              // list, add, remove
  std::string name;                // the stream's
  std::string set;                 // "": the only one that has room
  std::vector<std::string> fields; // NAME=VALUE
};

struct DoctorCommand {
  bool json = false;
  std::vector<std::string> plugin_paths;
};

// Each returns the exit code (exit_code.h), and throws Failure for a mistake in what the user gave.
int run(const RunCommand& command);
int plan(const PlanCommand& command);
int check(const compose::PipelineOptions& command);
int handlers(const ListCommand& command);
int inspect(const ListCommand& command);
int explain(const ExplainCommand& command);
int identity(const IdentityCommand& command);
int nodes(const NodesCommand& command);
int set(const SetCommand& command);
int get(const GetCommand& command);
int stop(const RunChoice& command);
int streams(const StreamsCommand& command);
int check_handler(const CheckHandlerCommand& command);
int doctor(const DoctorCommand& command);
int calibrate(const CalibrateCommand& command);

} // namespace millrace::cli
