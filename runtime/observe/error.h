// The error that a person gets when their input cannot be used: one cause, its place, both sides, a remedy.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/nearest.h"
#include "observe/place.h"

namespace millrace {

// Codes are stable, and named in error_codes.h. The hundreds tell the family: 1 usage, 2 pipeline text, 3 graph, 4
// plan, 5 plugin, 6 run, 7 device, 8 nodes and links.
struct Error {
  int code = 0;                   // code::plan_mismatch, 412, is printed as MR0412
  std::string what;               // one sentence, no full stop
  Place place;                    // position, if the cause is in a text
  std::vector<std::string> notes; // the sides of a conflict, what was expected; a line each
  std::string nearest;            // the nearest valid name, bare; "" if none is near
  std::string edit;               // one suggested edit; "" if there is none
};

// Several lines: "error MR0304: …", then "  at file:line:column", notes, "did you mean", "try".
std::string format_error(const Error& error);
// "MR0304"
std::string format_code(int code);
// The nearest of dotted names such as handler types. If none is near as a whole: the one whose last part equals that of
// `name` or is near it, so that "blur" and "video.blur" find image.blur.
std::string nearest_type(std::string_view name, const std::vector<std::string>& types);
// "cuda:0" if the name is another word for a GPU, such as "gpu" or "cuda"; else "".
std::string gpu_meant(std::string_view name);
// The assignment in the syntax of `place`: "sigma: 2" in a file, "sigma=2" in a one-line pipeline or after --set.
std::string assignment(const Place& place, const std::string& key, const std::string& value);
// "an Image", "a Tensor"
std::string with_article(const std::string& noun);

// Thrown for mistakes in what the user gave; never on the hot path.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)), text_(format_error(error_)) {}
  Failure(int code, std::string what) : Failure(Error{code, std::move(what), {}, {}, {}, {}}) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Error error_;
  std::string text_;
};

// Thrown by a step whose mistakes were all kept by attempt(). It carries no further information.
class MistakesKept : public std::exception {
 public:
  const char* what() const noexcept override { return "mistakes were kept"; }
};

// Runs `part`. If it throws a Failure, adds that to `kept` and returns false; if `kept` is null, lets the Failure
// through.
template <class Part>
bool attempt(std::vector<Error>* kept, const Part& part) {
  if (!kept) return part(), true;
  try {
    part();
    return true;
  } catch (const Failure& failure) {
    kept->push_back(failure.error());
    return false;
  }
}

// Reports a programmer's mistake: prints the sentence and aborts. Release builds keep these checks.
[[noreturn]] void assertion_failed(const char* expression, const char* sentence, const char* file, int line);
#define MR_ASSERT(condition, sentence) \
  ((condition) ? void(0) : ::millrace::assertion_failed(#condition, sentence, __FILE__, __LINE__))

} // namespace millrace
