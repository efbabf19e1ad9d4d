#!/usr/bin/env python3
"""Feeds tidy.py and rules.py small trees, each with one fault, and sees them complain; a clean tree must pass."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import prose  # noqa: E402: found by the line above
import reach  # noqa: E402
import readme_test  # noqa: E402
import rules  # noqa: E402
import sum_results  # noqa: E402
import tidy  # noqa: E402

HEAD = "// Adds two numbers, so that there is something to check.\n"
CLEAN = HEAD + '#include "observe/error.h"\n\nint add(int a, int b) { return a + b; }\n'


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def complaints(self, **more):
        return "\n".join(tidy.complaints(self.root, **more))


class ATree(Tree):
    def test_that_is_clean_passes(self):
        self.write("runtime/memory/add.cpp", CLEAN)
        self.assertEqual(self.complaints(), "")

    def test_with_a_long_line_is_refused(self):
        self.write("runtime/memory/add.cpp", HEAD + "// " + "a" * 118 + "\n")
        self.assertIn("add.cpp:2: 121 columns", self.complaints())

    def test_with_a_long_line_of_prose_is_refused_and_of_code_a_heading_or_a_table_is_not(self):
        long = "word " * 24 + "end"
        self.write("docs/page.md", f"# A page of {long}\n\n{long}\n\n| {long} |\n|---|\n\n```sh\n{long}\n```\n\n{'x' * 120}\n")
        self.assertEqual([line.split(": ")[1][:11] for line in self.complaints().splitlines()], ["123 columns"])
        page = prose.wrapped(f"- {long} `some code that is kept whole`\n")
        self.assertEqual(page, f"- {('word ' * 23).rstrip()}\n  word end `some code that is kept whole`\n")
        self.assertEqual(prose.wrapped(f"**Bold** {long}\n"), f"**Bold** {('word ' * 22).rstrip()}\nword word end\n")
        self.assertEqual(prose.wrapped(f"### {long}\n"), f"### {long}\n")

    def test_with_a_filter_that_no_test_case_passes_is_refused(self):
        self.write("tests/cuda/runtime.cu", HEAD + 'TEST_CASE("4.9: a kernel that never ends") {}\n')
        self.write("dev", "# Runs tests.\n" + 'run -tc="*never ends*"\nrun -ns -tce="*never ends*,*given up*"\n')
        self.assertEqual(self.complaints(), "dev:3: no test case is called *given up*")

    def test_with_a_file_of_which_nothing_says_where_it_is_tested_is_refused(self):
        for name in ("tested", "listed", "forgotten"):
            self.write(f"runtime/plan/{name}.cpp", CLEAN)
        self.write("tests/plan/tested.cpp", CLEAN)
        self.write("tests/plan/README.md", "# Tests\n\n| `listed.cpp` | `tested.cpp` |\n| `gone.cpp` | `no.cpp` |\n")
        found = self.complaints()
        self.assertIn("runtime/plan/forgotten.cpp:1: has no test of its name", found)
        self.assertIn("gone.cpp needs no line", found)
        self.assertIn("there is no no.cpp", found)
        self.assertEqual(len(found.splitlines()), 3)

    def test_with_a_declaration_that_nobody_uses_is_refused(self):
        self.write("runtime/memory/add.h", HEAD + """
namespace m {
enum class Sign : uint8_t { plus, minus = 2 };
struct Sum final : Base<int> {
  explicit Sum(int a) : a_(a) {}
  virtual int value(int scale = twice()) const;
  int unread = 0, read = 1;
  std::atomic<int> count{0}, calls{0};
  void (*release)(void* context) = nullptr;
  // `value` and `orphan` in a comment, or in "orphan", are no use
 private:
  int a_;
};
inline int twice() { return 2; }
std::vector<int> orphan(int a);
constexpr int kLimit = 3;
template <class T, int n = 2>
using Row = std::array<T, n>;
}
""")
        self.write("runtime/memory/add.cpp", HEAD + """#include "memory/add.h"
int m::Sum::value(int scale) const { return a_ * scale + read + calls; }
std::vector<int> m::orphan(int a) { return {a}; }
""")
        self.write("runtime/memory/other.h", HEAD + "struct Other : m::Sum {\n  int value(int scale) const override;\n};\n")
        self.write("tests/memory/add.cpp", HEAD + "int main() { Other(m::Sign::plus).release = nullptr; }\n")
        found = self.complaints()
        names = {"minus", "unread", "count", "value", "orphan", "kLimit", "Row"}
        self.assertEqual({line.split()[-1] for line in found.splitlines()}, names)
        self.assertIn("runtime/memory/add.h:8: nobody uses unread\n", found)

    def test_whose_public_headers_declare_what_is_documented_alone_passes(self):
        self.write("runtime/include/millrace/add.h", HEAD + "namespace m {\nint add(int a);\nint subtract(int a);\n}\n")
        self.write("docs/guide.md", "`add(1)` is 2.\n")
        self.assertEqual(self.complaints(), "runtime/include/millrace/add.h:4: nobody uses subtract")

    def test_with_a_long_function_is_refused(self):
        body = "  a += 1;\n" * 79
        self.write("runtime/memory/add.cpp", HEAD + "namespace m {\nvoid add(int a) {\n" + body + "}\n}\n")
        self.assertIn("add.cpp:3: add has 81 lines", self.complaints())

    def test_with_a_function_of_eighty_lines_passes(self):
        body = "  a += 1; // { no brace of the code\n" * 78
        self.write("runtime/memory/add.cpp", HEAD + "class A {\nvoid add(int a) const {\n" + body + "}\n};\n")
        self.assertEqual(self.complaints(), "")

    def test_with_a_marker_of_unfinished_work_is_refused(self):
        self.write("runtime/memory/add.cpp", CLEAN + "// TO" + "DO: subtract\n")
        self.assertIn("add.cpp:5: the marker", self.complaints())

    def test_with_a_vague_name_is_refused(self):
        self.write("runtime/memory/string_utils.cpp", CLEAN)
        self.write("runtime/memory/add.cpp", CLEAN + "class BufferManager {};\n")
        self.assertIn("the name string_utils.cpp", self.complaints())
        self.assertIn("add.cpp:5: the name BufferManager", self.complaints())

    def test_with_a_file_that_does_not_introduce_itself_is_refused(self):
        self.write("runtime/memory/add.cpp", "int add(int a, int b) { return a + b; }\n")
        self.write("tests/add.py", "#!/usr/bin/env python3\nimport sys\n")
        self.assertIn("add.cpp:1: a file begins", self.complaints())
        self.assertIn("add.py:1: a file begins", self.complaints())

    def test_whose_comments_begin_with_a_clause_is_refused(self):
        self.write("runtime/memory/add.cpp", HEAD + "\n// Whether it adds.\nbool adds = true; // of the sum\n// The sum:\n// what else\n"
                   'const char* text = R"(\n// Of a text.\n)";\n')
        found = self.complaints()
        self.assertIn("add.cpp:3: a comment begins with its subject, not with 'Whether'", found)
        self.assertIn("add.cpp:4: a comment begins with its subject, not with 'of'", found)
        self.assertEqual(found.count("begins with its subject"), 2)
        self.write("tests/memory/add.cpp", HEAD + "\n// Whether it adds.\nint add(); // of two\n")
        self.assertEqual(self.complaints().count("tests/memory/add.cpp:"), 1)

    def test_with_a_path_of_one_machine_is_refused(self):
        self.write("docs/guide.md", "Run it in /home" + "/me/millrace.\n")
        self.assertIn("guide.md:1: a path of one machine", self.complaints())

    def test_whose_folders_depend_the_wrong_way_is_refused(self):
        self.write("runtime/memory/add.cpp", HEAD + '#include "plan/plan.h"\n')
        self.write("handlers/image/blur.cpp", HEAD + '#include "memory/pool.h"\n')
        self.write("plugins/torch/run.cpp", HEAD + '#include "plugins/opencv/picture.h"\n')
        self.write("runtime/include/millrace/handler.h", HEAD + '#include "observe/error.h"\n')
        found = self.complaints()
        self.assertIn("add.cpp:2: includes plan/plan.h", found)
        self.assertIn("blur.cpp:2: includes memory/pool.h", found)
        self.assertIn("run.cpp:2: includes plugins/opencv/picture.h", found)
        self.assertIn("handler.h:2: includes observe/error.h", found)

    def test_with_a_file_of_several_ideas_is_refused(self):
        for name in ("runtime/plan/long.h", "runtime/memory/long.h"):
            self.write(name, HEAD + "\n" * 300)
        self.write("runtime/include/millrace/testing/long.h", HEAD + "\n" * 300)
        self.assertEqual(self.complaints(), "runtime/include/millrace/testing/long.h:1: has 301 lines, at most 300\n"
                         "runtime/plan/long.h:1: has 301 lines without its includes, at most 300")

    def test_whose_headers_reach_too_many_files_is_refused(self):
        self.write("runtime/memory/ring.h", HEAD)
        self.write("runtime/memory/pool.h", HEAD + '#include "memory/ring.h"\n')
        for name in ("one", "two"):
            self.write(f"tests/memory/{name}.cpp", HEAD + '#include "memory/pool.h"\n')
        self.write(reach.WEIGHTS, "# commits, header\n10 runtime/memory/ring.h\n1 runtime/memory/pool.h\n")
        self.assertEqual(list(reach.check(self.root, most=22)), [])
        self.assertIn("headers cost 22 (tests/tidy/reach.py), at most 21", "".join(reach.check(self.root, most=21)))
        self.write(reach.WEIGHTS, "1 runtime/memory/rings.h\n")
        self.assertIn("there is no runtime/memory/rings.h", self.complaints())

    def test_with_a_number_that_depends_on_the_locale_is_refused(self):
        self.write("runtime/memory/add.cpp", HEAD + 'double half() { return std::strtod("0.5", nullptr); }\n')
        self.assertIn("add.cpp:2: strtod() depends on the locale", self.complaints())
        self.write("runtime/memory/add.cpp", HEAD + 'void tell(double half) { std::printf("%d, %5.1f\\n", 1, half); }\n')
        self.assertIn("add.cpp:2: printf() writes this number by the locale", self.complaints())
        self.write("runtime/memory/add.cpp", HEAD + 'void tell(double half) { std::printf("%d, %.0f\\n", 1, half); }\n')
        self.assertNotIn("locale", self.complaints())

    def test_that_replaces_operator_new_once_more_is_refused(self):
        code = HEAD + "[[gnu::noinline]] void* operator new(std::size_t bytes) {\n  return std::malloc(bytes);\n}\n"
        self.write("tests/net/memory.cpp", code)
        self.assertIn("tests/net/memory.cpp:2: replaces operator new", self.complaints())
        self.write("tests/net/memory.cpp", HEAD + "int* one() { return static_cast<int*>(::operator new(4)); }\n")
        self.assertNotIn("operator new", self.complaints())

    def test_that_tells_domains_apart_by_their_spelling_is_refused(self):
        for word in ("is_sim(name)", "is_cuda(name)", "step.domain == 0"):
            for name in ("runtime/exec/add.h", "runtime/embed/add.h"):
                self.write(name, HEAD + f"inline bool on_host() {{ return {word}; }}\n")
            found = self.complaints()
            self.assertIn("runtime/exec/add.h:2: ", found)
            self.assertIn("a domain's record says what it is", found)
            self.assertEqual(found.count("record"), 1)

    def test_that_adds_a_revision_to_an_epoch_is_refused(self):
        for words in ("run.planned.revision + pace.over", "over + run->planned.revision", "run.epoch.number + over"):
            self.write("runtime/net/add.h", HEAD + f"inline auto sum() {{ return {words}; }}\n")
            self.assertIn("runtime/net/add.h:2: adds to a plan's revision", self.complaints())
        self.write("runtime/net/add.h", HEAD + "inline void next() { ++revision; a = revision; }\n")
        self.assertNotIn("adds to", self.complaints())

    def test_that_asks_a_device_what_a_step_knows_is_refused(self):
        for name in ("runtime/exec/add.h", "runtime/embed/add.h"):
            self.write(name, HEAD + "inline bool asks(Device& device) { return device.enqueuing() != nullptr; }\n")
        found = self.complaints()
        self.assertIn("runtime/exec/add.h:2: asks a device", found)
        self.assertEqual(found.count("asks a device"), 1)

    def test_with_a_fence_where_none_is_known_is_refused(self):
        for name in ("runtime/exec/add.h", "runtime/device/bells.h"):
            self.write(name, HEAD + "inline void orders() { std::atomic_thread_fence(std::memory_order_seq_cst); }\n")
        found = self.complaints()
        self.assertIn("runtime/exec/add.h:2: a fence", found)
        self.assertEqual(found.count("a fence"), 1)

    def test_whose_public_header_needs_another_first_is_refused(self):
        self.write("runtime/include/millrace/size.h", HEAD + "inline std::size_t size_of_nothing() { return 0; }\n")
        self.assertIn("size.h:1: does not compile alone as c++", self.complaints(compiler="c++"))

    def test_whose_public_header_gives_plugins_less_than_before_is_refused(self):
        needed = tidy.PROMISED_INCLUDES["payload.h"].split()
        lines = [f"#include <{name}>\n" for name in needed]
        self.write("runtime/include/millrace/payload.h", HEAD + "".join(lines))
        self.assertEqual(self.complaints(compiler="c++"), "")
        self.write("runtime/include/millrace/payload.h", HEAD + "#include <cstdint>\n")
        self.assertIn("payload.h:1: includes <vector> no more", self.complaints(compiler="c++"))

    def test_with_a_function_that_tests_alone_use_is_refused(self):
        self.write("runtime/memory/add.h", HEAD + "int add(int a);\nint twice(int a);\nint thrice(int a) { return 3 * a; }\n")
        self.write("runtime/memory/add.cpp", HEAD + "int add(int a) { return twice(a); }\nint twice(int a) { return 2 * a; }\n")
        self.write("tests/memory/add.cpp", HEAD + "int tried() { return add(1) + thrice(2); }\n")
        self.assertEqual([line.split(": ")[1] for line in self.complaints().splitlines()],
                         ["tests alone use add", "tests alone use thrice"])
        self.write("plugins/sum/sum.cpp", HEAD + "int sum() { return add(1) + thrice(2); }\n")
        self.assertEqual(self.complaints(), "")

    def test_with_a_link_that_leads_nowhere_is_refused(self):
        self.write("docs/a.md", "# A page\n\n[b](b.md) [part](b.md#a-part-of-b) [own](#a-page) [far](https://a.b/c#d)\n")
        self.write("docs/b.md", "# B\n\n## A part, of `b`\n\n```\n# No heading [x](no.md)\n```\n")
        self.assertEqual(self.complaints(), "")
        self.write("docs/a.md", "# A page\n\n[b](c.md)\n\n[part](b.md#no-heading) [own](#b)\n")
        self.assertEqual(self.complaints().splitlines(), ["docs/a.md:3: there is no c.md",
                                                          "docs/a.md:5: b.md has no heading #no-heading",
                                                          "docs/a.md:5: a.md has no heading #b"])

    def test_with_a_plugin_that_exports_more_than_its_entry_is_refused(self):
        self.write("plugin.c", "void millrace_plugin(void) {}\nvoid leaked(void) {}\n")
        (self.root / "build" / "plugins").mkdir(parents=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.root / "build/plugins/leaky.so", self.root / "plugin.c"],
                       check=True)
        self.assertIn("leaky.so:1: exports leaked", self.complaints(build=self.root / "build"))

    def test_with_a_simulator_in_an_archive_that_is_installed_is_refused(self):
        build = self.root / "build"
        build.mkdir()
        self.write("process.cc", "namespace net { struct Session { void poll(); }; void Session::poll() {}\n"
                   "namespace sim { struct Process { void go(); }; void Process::go() {} void stop() {} } }\n")
        self.assertIn("libmillrace_net.a:1: was not built", self.complaints(build=build))
        for defines, found in ([], "defines net::sim::Process::go() and 1 more"), (["-Dsim=link"], ""):
            subprocess.run(["c++", *defines, "-c", "-o", build / "process.o", self.root / "process.cc"],
                           check=True)
            (build / "libmillrace_net.a").unlink(missing_ok=True)
            subprocess.run(["ar", "rc", build / "libmillrace_net.a", build / "process.o"], check=True)
            said = self.complaints(build=build)
            self.assertEqual("libmillrace_net.a" in said, bool(found), said)
            self.assertIn(found, said)

    def test_with_a_benchmark_in_the_command_is_refused(self):
        (self.root / "build").mkdir()
        self.write("main.cc", "namespace millrace { namespace part { int run() { return 0; } } }\n"
                   "int main() { return millrace::part::run(); }\n")
        for part, is_refused in (("bench", True), ("cli", False)):
            subprocess.run(["c++", f"-Dpart={part}", "-o", self.root / "build/millrace", self.root / "main.cc"], check=True)
            said = self.complaints(build=self.root / "build")
            self.assertEqual("millrace:1: defines millrace::bench::run()" in said, is_refused, said)


class TheTableOfRules(Tree):
    def test_lists_what_a_test_cites(self):
        self.write("tests/exec/edges.cpp", 'TEST_CASE("2.3, 2.1: latest ignores "\n  "empties [2.8]") {}\n'
                   'TEST_CASE_FIXTURE(Run, "takes 2.5 s: no rule") {}\n')
        tests, unknown = rules.collect(self.root)
        cited = {rule for rule, found in tests.items() if found}
        self.assertEqual(cited, {"2.3", "2.1", "2.8"})
        self.assertEqual(tests["2.3"], [("tests/exec/edges.cpp", "latest ignores empties")])
        self.assertEqual(unknown, [])

    def test_refuses_a_rule_that_does_not_exist(self):
        self.write("tests/exec/edges.cpp", 'TEST_CASE("9.9: nothing") {}\n')
        self.assertIn("cites rule 9.9", rules.collect(self.root)[1][0])


class TheReadme(Tree):
    SHOWN = "ran 100 ticks in 0.31 s\n  blur   p50 412.5 µs\n…\nreport: …\n"

    def matches(self, printed):
        return readme_test.pattern_of(self.SHOWN).fullmatch(printed + "\n") is not None

    def test_allows_other_numbers_and_widths(self):
        self.assertTrue(self.matches("ran 100 ticks in 12 s\n  blur p50 98.25 µs\n  more\n  and more\nreport: x.json\n"))
        self.assertTrue(self.matches("ran 100 ticks in 12 s\n  blur p50 98.25 µs\nreport: x.json\n"))

    def test_refuses_other_words(self):
        self.assertFalse(self.matches("ran 100 ticks in 12 s\n  blur p99 98.25 µs\nreport: x.json\n"))
        self.assertFalse(self.matches("ran 100 ticks in 12 s\n  blur p50 98.25 µs\n"))
        self.assertFalse(self.matches("warning\nran 100 ticks in 12 s\n  blur p50 98.25 µs\nreport: x.json\n"))

    def test_finds_its_commands(self):
        text = "```console\n$ build/millrace plan x.yaml\na\nb\n$ ls\n```\n"
        [block] = readme_test.blocks(text, "console")
        self.assertEqual(list(readme_test.commands(block)), [("build/millrace plan x.yaml", "a\nb\n"), ("ls", "")])


class TheSumOfResults(Tree):
    def test_counts_cases_and_programs_that_died(self):
        self.write("results.xml", """<testsuite>
          <testcase name="a" status="run"><system-out>
            [doctest] test cases: 12 | 12 passed | 0 failed | 3 skipped</system-out></testcase>
          <testcase name="b" status="fail"><system-out>
            [doctest] test cases:  5 |  3 passed | 2 failed | 0 skipped</system-out></testcase>
          <testcase name="c" status="fail"><system-out>terminate called</system-out></testcase>
          <testcase name="d" status="run"><system-out>the tree is tidy</system-out></testcase>
        </testsuite>""")
        self.assertEqual(sum_results.count(self.root / "results.xml"), (12 + 3 + 1, 2 + 1))


if __name__ == "__main__":
    unittest.main()
