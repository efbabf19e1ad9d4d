// The queue between an application and a run; see value_queue.h.
#include "embed/value_queue.h"

namespace millrace::embed {

std::unique_ptr<QueuedValue> ValueQueue::blank() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return std::make_unique<QueuedValue>();
  std::unique_ptr<QueuedValue> parcel = std::move(spare_.back());
  spare_.pop_back();
  return parcel;
}

void ValueQueue::give_back(std::unique_ptr<QueuedValue> parcel) {
  const std::lock_guard lock(mutex_);
  if (spare_.size() <= depth_) spare_.push_back(std::move(parcel)); // one is being filled while `depth` wait
}

void ValueQueue::drop_front() {
  spare_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
}

bool ValueQueue::put(std::unique_ptr<QueuedValue> parcel, WhenFull when_full) {
  std::unique_lock lock(mutex_);
  if (when_full == WhenFull::wait) room_.wait(lock, [&] { return closed_ || relaxed_ || waiting_.size() < depth_; });
  if (closed_) return false;
  if (waiting_.size() >= depth_) {
    if (when_full == WhenFull::drop_newest) {
      spare_.push_back(std::move(parcel));
      return true;
    }
    drop_front();
  }
  waiting_.push_back(std::move(parcel));
  filled_.notify_one();
  return true;
}

bool ValueQueue::has_room() const {
  const std::lock_guard lock(mutex_);
  return !closed_ && waiting_.size() < depth_;
}

std::unique_ptr<QueuedValue> ValueQueue::pop(std::unique_lock<std::mutex>& lock) {
  if (waiting_.empty()) return nullptr;
  std::unique_ptr<QueuedValue> parcel = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  room_.notify_one();
  return parcel;
}

std::unique_ptr<QueuedValue> ValueQueue::take() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
  return pop(lock);
}

std::unique_ptr<QueuedValue> ValueQueue::try_take() {
  std::unique_lock lock(mutex_);
  return pop(lock);
}

std::unique_ptr<QueuedValue> ValueQueue::try_take_newest() {
  std::unique_lock lock(mutex_);
  while (waiting_.size() > 1) drop_front();
  return pop(lock);
}

void ValueQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  room_.notify_all();
  filled_.notify_all();
}

void ValueQueue::relax() {
  const std::lock_guard lock(mutex_);
  relaxed_ = true;
  room_.notify_all();
}

void ValueQueue::abandon() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  waiting_.clear();
  room_.notify_all();
  filled_.notify_all();
}

} // namespace millrace::embed
