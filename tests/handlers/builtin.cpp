// The table of built-in handlers, as a registry will read it.
#include "builtin.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

using namespace millrace;
using namespace millrace::handlers;

namespace {

// How many types the files of the built-in handlers make tables of.
size_t types_in_sources() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MILLRACE_SOURCE_DIR "/handlers")) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (size_t at = text.find(">::table("); at != std::string::npos; at = text.find(">::table(", at + 1)) ++count;
  }
  return count;
}

} // namespace

TEST_CASE("the built-in types are sorted, complete, and each is listed once") {
  const mr_plugin& plugin = *millrace_builtin_plugin();
  CHECK(plugin.abi_version == MR_ABI_VERSION);
  CHECK(plugin.type_count == types_in_sources());
  for (uint32_t i = 1; i < plugin.type_count; ++i)
    CHECK(std::string(plugin.types[i - 1]->type) < std::string(plugin.types[i]->type));
  CHECK(millrace_builtin_plugin() == &plugin);
}

TEST_CASE("every manual fits a terminal and ends with a snippet that names its handler") {
  const mr_plugin& plugin = *millrace_builtin_plugin();
  for (uint32_t i = 0; i < plugin.type_count; ++i) {
    const std::string manual = plugin.types[i]->manual, type = plugin.types[i]->type;
    INFO(type);
    const size_t snippet = manual.rfind("\n\n    ");
    REQUIRE(snippet != std::string::npos);
    CHECK(manual.find(type, snippet) != std::string::npos);
    CHECK(manual.find("\n", snippet + 2) == manual.size() - 1);
    CHECK(std::string(plugin.types[i]->summary).back() != '.');
    size_t line = 0;
    for (size_t end = manual.find('\n'); end != std::string::npos; line = end + 1, end = manual.find('\n', line))
      CHECK(end - line <= 100);
  }
}

TEST_CASE("every parameter and every handler says what it is") {
  const mr_plugin& plugin = *millrace_builtin_plugin();
  for (uint32_t i = 0; i < plugin.type_count; ++i) {
    const testing::TableTest handler(*plugin.types[i]);
    INFO(plugin.types[i]->type);
    CHECK(std::string(plugin.types[i]->summary) != "");
    CHECK((handler.declaration().traits & MR_TRAIT_CPU_BODY) != 0);
    for (uint32_t p = 0; p < handler.declaration().param_count; ++p)
      CHECK(std::string(handler.declaration().params[p].help) != "");
  }
}

TEST_CASE("what hands pictures on takes them as decoders give them, so nothing is converted between two codecs") {
  constexpr uint64_t kDecoded = bit_of(Pixel::nv12) | bit_of(Pixel::i420) | bit_of(Pixel::p010);
  // These paint in red, green and blue.
  const std::set<std::string> kInterleaved = {"draw.marker", "draw.marks", "draw.shapes", "draw.trails"};
  const mr_plugin& plugin = *millrace_builtin_plugin();
  size_t looked_at = 0;
  for (uint32_t i = 0; i < plugin.type_count; ++i) {
    const std::string type = plugin.types[i]->type;
    const testing::TableTest handler(*plugin.types[i]);
    const mr_declaration& declaration = handler.declaration();
    std::vector<const mr_port*> inputs, outputs;
    for (uint32_t p = 0; p < declaration.port_count; ++p)
      if (declaration.ports[p].accepts.kind == MR_KIND_IMAGE)
        (declaration.ports[p].direction == MR_INPUT ? inputs : outputs).push_back(&declaration.ports[p]);
    if (inputs.empty() || outputs.empty()) continue;
    INFO(type);
    ++looked_at;
    CHECK((inputs[0]->accepts.pixel_formats & kDecoded) == (kInterleaved.count(type) ? 0 : kDecoded));
  }
  CHECK(looked_at > 12);
}
