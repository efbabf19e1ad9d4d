// Preloaded into the command: a system that gives a process so many threads as FEW_THREADS says, and no more.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* given) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  static const char* const number = std::getenv("FEW_THREADS");
  static std::atomic<int> left{number ? std::atoi(number) : 0};
  if (left.fetch_sub(1) <= 0) return EAGAIN;
  return real(thread, attributes, body, given);
}
