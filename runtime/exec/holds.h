// Handlers hold things of their run: objects that several of them share (rule 4.15), and pages that they serve (rule
// 4.16). A handler holds objects until its stop has returned, and pages until it is called.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "millrace/abi.h"

namespace millrace::plugin {
class Instance;
}

namespace millrace::exec {

class PageServer;

class Holds {
 public:
  // Null: the program has no server.
  explicit Holds(PageServer* server) : server_(server) {}

  using Make = void* (*)(void* context);
  using Drop = void (*)(void* object);
  // The object of this name among the handlers of the holder's plugin. Null if `make` gives none.
  void* share(const plugin::Instance& holder, const std::string& name, Make make, Drop drop, void* context);
  // Throws Failure.
  void serve(const plugin::Instance& holder, const mr_site& site);
  // The holder is about to stop: no function of its pages is called any more.
  void end_pages(const plugin::Instance& holder);
  // The holder has stopped, or has not started.
  void let_go(const plugin::Instance& holder);

 private:
  struct Held {
    std::vector<std::shared_ptr<void>> objects, pages;
  };

  PageServer* const server_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<void>> objects_; // by plugin and name
  std::map<const plugin::Instance*, Held> held_;
};

} // namespace millrace::exec
