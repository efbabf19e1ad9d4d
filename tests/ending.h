// The end of a process that does what it should not: the act is done in a child process, which the test outlives.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace millrace::test {

// Ends a process by what `act` does; its exit code (128 + signal where one ended it) and what it said on stderr.
struct Ending {
  int code = 0;
  std::string said;
};
template <class Act>
Ending end_of(Act act) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int taken_by_doctest : {SIGABRT, SIGSEGV}) signal(taken_by_doctest, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    act();
    _exit(0);
  }
  close(ends[1]);
  Ending ending;
  char text[256];
  for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;) ending.said.append(text, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ending.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ending;
}

} // namespace millrace::test
