// Handlers whose every value follows from their seed, the tick and what they read, for the comparison of random
// pipelines with tests/oracle/rules.py. Each firing adds a line to the file that MILLRACE_ORACLE_RECORD names:
//
//   id index media_time_ns | in, in | opt, opt | out, aux          and ` reset` where reset() was called before it
//
// An input that is empty is `-`, a value of extent 0 `empty`, one that is not what its writer wrote `torn`.
// Lines are whole: each is one write() to a file that is opened for appending.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <millrace/handler.h>

namespace mr = millrace;

namespace {

constexpr int64_t kElements = 4;
constexpr int64_t kValueMask = (int64_t{1} << 48) - 1; // leaves room for the elements that count up from it

// rules.py has the same function.
uint64_t mix(uint64_t a, uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdull;
  return a ^ (a >> 29);
}

bool happens(int64_t percent, uint64_t seed, uint64_t index) {
  return static_cast<int64_t>((mix(seed, index) >> 13) % 100) < percent;
}

// Different lengths of calls, so that threads meet in different orders.
void pass_time(int64_t us_max, uint64_t seed, uint64_t index) {
  if (us_max <= 0) return;
  const uint64_t drawn = mix(seed + 77, index);
  const auto length = std::chrono::microseconds(drawn % static_cast<uint64_t>(us_max + 1));
  if (drawn & 256) return std::this_thread::sleep_for(length);
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
  }
}

struct Read {
  std::string text = "-";
  uint64_t mixed = 0; // what the reader's own value takes from it
};

Read read(const mr_input& input) {
  if (!input.value) return {};
  const mr_tensor& tensor = input.value->as.tensor;
  const mr::DType expected = mr::dtype_of<int64_t>();
  const bool same_type = tensor.dtype_code == expected.code && tensor.dtype_bits == expected.bits && tensor.rank == 1;
  if (!same_type) return {"another-format", 3};
  if (tensor.shape[0] == 0) return {"empty", 1};
  const auto* elements = reinterpret_cast<const int64_t*>(input.data);
  for (int64_t k = 0; k < kElements; ++k)
    if (tensor.shape[0] != kElements || elements[k] != elements[0] + k) return {"torn", 2};
  return {std::to_string(elements[0]), static_cast<uint64_t>(elements[0]) + 4};
}

void write(mr::Output<mr::Tensor>& output, mr::Tick& tick, int64_t value) {
  const int64_t shape[] = {kElements};
  const auto elements = output.allocate(tick, mr::dtype_of<int64_t>(), shape).elements<int64_t>();
  for (int64_t k = 0; k < kElements; ++k) elements[static_cast<size_t>(k)] = value + k;
}

// Ports and parameters of all handlers here, and the record of their firings.
struct Recorded : mr::Handler {
  mr::Param<std::string> id{*this, "id", "", "the name in the record", mr::required};
  mr::Param<int64_t> seed{*this, "seed", 0, "other values for another seed"};
  mr::Param<int64_t> silent{*this, "silent", 0, "how often out stays empty", mr::range(0, 100), mr::unit("%")};
  mr::Param<int64_t> spin{*this, "spin", 0, "the longest call", mr::at_least(0), mr::unit("us")};

  void start() override {
    const char* path = std::getenv("MILLRACE_ORACLE_RECORD");
    if (path) file_ = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (path && file_ < 0) throw std::runtime_error("cannot write the record " + std::string(path));
  }
  void stop() override {
    if (file_ >= 0) close(file_);
    file_ = -1;
  }
  void reset() override { was_reset_ = true; }

 protected:
  bool is_silent(uint64_t index) const { return happens(*silent, static_cast<uint64_t>(*seed) + 9, index); }
  void record(const mr::Tick& tick, const std::string& inputs, const std::string& outputs) {
    std::ostringstream line;
    line << *id << ' ' << tick.index() << ' ' << tick.media_time_ns() << " | " << inputs << " | " << outputs;
    line << (was_reset_ ? " reset\n" : "\n");
    was_reset_ = false;
    const std::string text = line.str();
    if (file_ < 0) return;
    if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("cannot write the record");
  }

 private:
  int file_ = -1;
  bool was_reset_ = false;
};

// The inputs of one list as the record has them; `mixed` takes them in.
std::string read_list(const mr::Inputs<mr::Tensor>& inputs, const mr::Tick& tick, uint64_t& mixed) {
  std::string text;
  for (uint32_t i = 0; i < inputs.count(); ++i) {
    const Read value = read(inputs.raw(tick, i));
    text += (i ? "," : "") + value.text;
    mixed = mix(mixed, value.mixed);
  }
  return text;
}

// The inputs of a call as the record has them, and the value that they, the seed and the tick make.
struct Reading {
  std::string inputs;
  int64_t value = 0;
};

// Takes the handler's time, too.
Reading read_all(const Recorded& handler, const mr::Inputs<mr::Tensor>& in, const mr::Inputs<mr::Tensor>& opt,
                 const mr::Tick& tick) {
  const auto own = static_cast<uint64_t>(*handler.seed);
  pass_time(*handler.spin, own, tick.index());
  uint64_t mixed = mix(own, tick.index());
  std::string inputs = read_list(in, tick, mixed);
  inputs += " | " + read_list(opt, tick, mixed);
  return {std::move(inputs), static_cast<int64_t>(mixed) & kValueMask};
}

// Gives what its script says, a word for each call: `12.5` a value at 12.5 ms, `.` one without a time of its own, `-`
// an empty tick, `?` not yet; `!` as a last letter ends the source together with that value.
struct Source final : Recorded {
  mr::Output<mr::Tensor> out{*this, "out"};
  mr::Param<std::string> script{*this, "script", "", "what each call gives"};
  mr::Param<int64_t> rate{*this, "rate", 0, "ticks a second that it says it has; 0: none"};
  std::istringstream words;
  uint64_t given = 0;

  void probe(mr::Facts& facts) override {
    if (*rate > 0) facts.rate(*rate);
  }
  void configure(const mr::Formats& formats) override { formats.tensor(out, mr::dtype_of<int64_t>(), {kElements}); }
  void start() override {
    Recorded::start();
    words.str(*script);
  }
  void process(mr::Tick& tick, mr::Cpu&) {
    std::string word;
    if (!(words >> word)) return tick.end();
    if (word == "?") return tick.not_yet();
    pass_time(*spin, static_cast<uint64_t>(*seed), given);
    const uint64_t number = given++;
    if (word == "-") return record(tick, "|", "-,-");
    const auto value = static_cast<int64_t>(mix(static_cast<uint64_t>(*seed), number)) & kValueMask;
    write(out, tick, value);
    const bool is_last = word.back() == '!';
    if (is_last) word.pop_back();
    if (word != ".") out.header(tick).pts_ns = std::llround(std::stod(word) * 1e6);
    if (is_last) tick.end();
    record(tick, "|", std::to_string(value) + ",-");
  }
};

// The option of a port that has to be connected, or need not.
template <bool kNeeded>
auto needed() {
  if constexpr (kNeeded)
    return mr::help("fires where all have a value");
  else
    return mr::optional;
}

// Mixes all that it reads: what is required, what is optional, its seed and the tick.
template <bool kNeedsInputs, bool kStateless>
struct Mix final : Recorded {
  mr::Inputs<mr::Tensor> in{*this, "in", 8, needed<kNeedsInputs>()};
  mr::Inputs<mr::Tensor> opt{*this, "opt", 8, mr::optional};
  mr::Output<mr::Tensor> out{*this, "out"};
  mr::Output<mr::Tensor> aux{*this, "aux"};
  mr::Param<int64_t> aux_silent{*this, "aux_silent", 0, "how often aux stays empty", mr::range(0, 100)};

  Mix() {
    if (kStateless) stateless();
  }
  void configure(const mr::Formats& formats) override {
    formats.tensor(out, mr::dtype_of<int64_t>(), {kElements});
    formats.tensor(aux, mr::dtype_of<int64_t>(), {kElements});
  }
  void process(mr::Tick& tick, mr::Cpu&) {
    const auto own = static_cast<uint64_t>(*seed);
    const auto [inputs, value] = read_all(*this, in, opt, tick);
    const bool makes_out = !is_silent(tick.index());
    const bool makes_aux = !happens(*aux_silent, own + 10, tick.index());
    if (makes_out) write(out, tick, value);
    if (makes_aux && aux.connected()) write(aux, tick, value ^ 1);
    record(tick, inputs,
           (makes_out ? std::to_string(value) : "-") + "," + (makes_aux ? std::to_string(value ^ 1) : "-"));
  }
};

// Reads, and makes nothing.
template <bool kNeedsInputs>
struct Sink final : Recorded {
  mr::Inputs<mr::Tensor> in{*this, "in", 8, needed<kNeedsInputs>()};
  mr::Inputs<mr::Tensor> opt{*this, "opt", 8, mr::optional};

  void process(mr::Tick& tick, mr::Cpu&) { record(tick, read_all(*this, in, opt, tick).inputs, "-,-"); }
};

// Owes up to kPending results, how many after each call follows from its seed, and gives them in later calls or where
// it is drained. With `leaves` it gives none there.
template <uint32_t kPending>
struct Late final : Recorded {
  mr::Inputs<mr::Tensor> in{*this, "in", 8};
  mr::Inputs<mr::Tensor> opt{*this, "opt", 8, mr::optional};
  mr::Output<mr::Tensor> out{*this, "out"};
  mr::Param<bool> leaves{*this, "leaves", false, "drain() gives nothing"};
  std::deque<mr::Tick> owed;

  Late() {
    max_pending(kPending);
    drains_freely();
  }
  void configure(const mr::Formats& formats) override { formats.tensor(out, mr::dtype_of<int64_t>(), {kElements}); }
  void process(mr::Tick& tick, mr::Cpu&) {
    const auto own = static_cast<uint64_t>(*seed);
    const auto [inputs, value] = read_all(*this, in, opt, tick);
    const bool makes_out = !is_silent(tick.index());
    record(tick, inputs, (makes_out ? std::to_string(value) : "-") + ",-");
    if (makes_out) write(out, tick, value);
    give_until(kPending - 1);
    owed.push_back(tick.defer());
    give_until(mix(own + 11, tick.index()) % (kPending + 1));
  }
  void drain() override {
    if (!*leaves) give_until(0);
    owed.clear();
  }
  void give_until(size_t left) {
    while (owed.size() > left) {
      owed.front().publish();
      owed.pop_front();
    }
  }
};

using Ordered = Mix<true, false>;
using Stateless = Mix<true, true>;
using Any = Mix<false, false>;
using Taker = Sink<true>;
using Watcher = Sink<false>;
using LateByOne = Late<1>;
using LateByTwo = Late<2>;
using LateByThree = Late<3>;

} // namespace

MILLRACE_HANDLER(Source, "oracle.source", "Gives what its script says")
MILLRACE_HANDLER(Ordered, "oracle.mix", "Mixes what it reads")
MILLRACE_HANDLER(Stateless, "oracle.stateless", "Mixes what it reads, in several instances")
MILLRACE_HANDLER(Any, "oracle.any", "Mixes what it reads, and needs none of it")
MILLRACE_HANDLER(Taker, "oracle.sink", "Records what it reads")
MILLRACE_HANDLER(Watcher, "oracle.watch", "Records what it reads, and needs none of it")
MILLRACE_HANDLER(LateByOne, "oracle.late1", "Mixes what it reads, and owes one result at most")
MILLRACE_HANDLER(LateByTwo, "oracle.late2", "Mixes what it reads, and owes two results at most")
MILLRACE_HANDLER(LateByThree, "oracle.late3", "Mixes what it reads, and owes three results at most")
MILLRACE_PLUGIN("oracle", "0.1.0")
