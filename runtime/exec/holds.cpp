// Keeps objects and pages for handlers; see holds.h.
#include "exec/holds.h"

#include "exec/page_server.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plugin/registry.h"

namespace millrace::exec {

void* Holds::share(const plugin::Instance& holder, const std::string& name, Make make, Drop drop, void* context) {
  const std::lock_guard lock(mutex_); // while it is made too: it is made once
  std::weak_ptr<void>& known = objects_[{holder.info().plugin, name}];
  std::shared_ptr<void> object = known.lock();
  if (!object) {
    void* const made = make(context);
    if (!made) return nullptr;
    known = object = std::shared_ptr<void>(made, drop);
  }
  held_[&holder].objects.push_back(object);
  return object.get();
}

void Holds::serve(const plugin::Instance& holder, const mr_site& site) {
  if (!server_) throw Failure(code::page_not_served, "the program that runs this pipeline serves no pages of handlers");
  std::shared_ptr<void> page = server_->serve(site); // without the lock: the server's thread may be in a handler
  const std::lock_guard lock(mutex_);
  held_[&holder].pages.push_back(std::move(page));
}

void Holds::end_pages(const plugin::Instance& holder) {
  std::vector<std::shared_ptr<void>> pages; // they go once the lock is gone: their handlers are called a last time
  const std::lock_guard lock(mutex_);
  if (const auto found = held_.find(&holder); found != held_.end()) pages.swap(found->second.pages);
}

void Holds::let_go(const plugin::Instance& holder) {
  end_pages(holder); // first: their functions may use the objects
  Held held;
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(&holder);
    if (found == held_.end()) return;
    held = std::move(found->second);
    held_.erase(found);
  }
}

} // namespace millrace::exec
