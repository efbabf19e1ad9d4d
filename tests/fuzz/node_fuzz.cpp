// libFuzzer: whatever another node says, offers, tells, asks or answers, it is refused, or this node goes on with it.
// NODE_FUZZ_SEEDS=FOLDER: first writes there what nodes say themselves.
#include "tests/fuzz/node_fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "handlers/builtin.h"

namespace {

using nlohmann::json;

// JSON that damaged bytes seldom make: numbers at limits, values of other kinds, parts that are missing or doubled.
class Mutation {
 public:
  explicit Mutation(unsigned seed) : random_(seed) {}

  void mutate(json& document) {
    for (uint32_t left = 1 + draw(3); left > 0; --left) change(*pick(document));
  }

 private:
  uint32_t draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  // One of all values of the document.
  json* pick(json& document) {
    std::vector<json*> all;
    collect(document, all);
    return all[draw(static_cast<uint32_t>(all.size()))];
  }
  static void collect(json& value, std::vector<json*>& all) {
    all.push_back(&value);
    if (value.is_structured())
      for (json& child : value) collect(child, all);
  }

  json other() {
    static const std::string long_word(300, 'x');
    static const json kOthers[] = {nullptr,
                                   0,
                                   1,
                                   -1,
                                   64,
                                   true,
                                   INT64_MAX,
                                   INT64_MIN,
                                   1e308,
                                   0.5,
                                   UINT64_MAX,
                                   UINT32_MAX,
                                   "",
                                   "camera",
                                   7,
                                   json::array(),
                                   json::object(),
                                   long_word,
                                   int64_t{1} << 31,
                                   int64_t{1} << 40};
    return kOthers[draw(std::size(kOthers))];
  }

  void change(json& value) {
    const bool is_filled = value.is_structured() && !value.empty();
    if (is_filled && draw(2) == 0) return change_parts(value);
    if (value.is_number_integer() && draw(2) == 0)
      value = value.get<int64_t>() ^ int64_t { 1 } << draw(63);
    else
      value = other();
  }

  void change_parts(json& value) {
    const uint32_t at = draw(static_cast<uint32_t>(value.size()));
    if (value.is_array()) {
      if (draw(2) == 0)
        value.erase(at);
      else
        value.push_back(json(value[at]));
      return;
    }
    const auto part = std::next(value.begin(), at);
    if (draw(2) == 0)
      value.erase(part);
    else
      value["more" + std::to_string(draw(3))] = json(*part);
  }

  std::minstd_rand random_;
};

} // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (size < 2 || seed % 5 == 0) return LLVMFuzzerMutate(data, size, most);
  // The bodies of a statement follow its line of JSON and stay as they are; what it says of them is mutated.
  const std::string_view told(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t json_bytes = data[0] == 's' ? std::min(told.find('\n'), told.size()) : told.size();
  json document = millrace::node::read_json(std::string(told.substr(0, json_bytes)));
  if (document.is_discarded()) return LLVMFuzzerMutate(data, size, most);
  Mutation(seed).mutate(document);
  const std::string text =
      document.dump(-1, ' ', false, json::error_handler_t::replace).append(told.substr(json_bytes));
  if (text.size() + 1 > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data + 1);
  return text.size() + 1;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const folder = std::getenv("NODE_FUZZ_SEEDS");
  if (!folder) return 0;
  int number = 0;
  for (const std::string& input : millrace::node::told_by_nodes())
    std::ofstream(std::string(folder) + "/seed" + std::to_string(number++), std::ios::binary) << input;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* rule = millrace::node::look_at_told({reinterpret_cast<const char*>(data), size});
  if (!rule) return 0;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}

// The runtime's registry begins with the built-in handlers, of which these nodes need none.
const mr_plugin* millrace_builtin_plugin() {
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "builtin", "1", nullptr, 0, 0};
  return &plugin;
}
