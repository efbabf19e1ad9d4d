#!/usr/bin/env python3
"""Changes files of a small tree with a build folder, and looks which tests `./dev test --changed` would run."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import changed  # noqa: E402: found by the line above


class TheTestsThatAreRun(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.build = self.root / "build"
        self.clock = 1_000_000_000
        self.write("README.md", "A tree.")
        self.write("examples/street.yaml", "name: street")
        self.write("tests/plan/chain.cpp", "int main() {}")
        self.write("tests/plan/chain.plan", "a, b")
        self.write("tests/cli/rig.py", "import json")
        self.write("tests/cli/plans.py", "import rig")
        self.write("tests/cli/log.py", "import json")
        self.write("tests/tidy/tidy.py", "import json")
        self.write("build/test_plan", f"\0{self.root}/tests/plan/chain.cpp\0{self.root}/examples/street.yaml\0")
        self.write("build/test_media", f"\0{self.build}/plugins/media.so\0")
        self.write("build/millrace", "")
        self.write("build/plugins/media.so", "")
        command = f"{self.build}/millrace"
        self.commands = {
            "plan": [f"{self.build}/test_plan"],
            "media": [f"{self.build}/test_media", "-sfe=*log*"],
            "cli_plans": ["/usr/bin/python3", f"{self.root}/tests/cli/plans.py", command],
            "cli_log": ["/usr/bin/python3", f"{self.root}/tests/cli/log.py", command],
            "tidy": ["/usr/bin/python3", f"{self.root}/tests/tidy/tidy.py", "--build", str(self.build)],
        }
        self.passed = {}
        self.all_pass()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.clock += 1  # files that are written one after the other may have one time
        os.utime(path, (self.clock, self.clock))

    def look(self):
        return changed.look(self.root, self.build, self.commands)

    def all_pass(self):
        self.passed = self.look()

    def run_after(self, name, text="another"):
        """The tests to run once the file `name` was written; then all pass."""
        self.write(name, text)
        run = sorted(changed.changed(self.look(), self.passed))
        self.all_pass()
        return run

    def test_are_all_of_them_at_first_and_none_once_they_passed(self):
        self.assertEqual(sorted(changed.changed(self.look(), {})), sorted(self.commands))
        self.assertEqual(changed.changed(self.look(), self.passed), {})

    def test_are_those_of_a_program_that_was_linked_anew(self):
        self.assertEqual(self.run_after("build/test_plan"), ["plan"])

    def test_are_those_that_use_a_plugin_or_the_command(self):
        self.assertEqual(self.run_after("build/plugins/media.so"), ["cli_log", "cli_plans", "media", "tidy"])
        self.assertEqual(self.run_after("build/plugins/other.so"), ["cli_log", "cli_plans", "tidy"])
        self.assertEqual(self.run_after("build/millrace"), ["cli_log", "cli_plans", "tidy"])

    def test_are_those_of_a_script_or_of_a_module_that_it_imports(self):
        self.assertEqual(self.run_after("tests/cli/log.py", "import json"), ["cli_log", "tidy"])
        self.assertEqual(self.run_after("tests/cli/rig.py", "import json"), ["cli_plans", "tidy"])

    def test_are_those_that_read_a_file_which_changed(self):
        self.assertEqual(self.run_after("tests/plan/chain.plan"), ["plan", "tidy"])
        self.assertEqual(self.run_after("examples/street.yaml"), ["cli_log", "cli_plans", "plan", "tidy"])

    def test_are_the_checks_of_the_tree_after_each_change_of_it(self):
        self.assertEqual(self.run_after("README.md"), ["tidy"])
        self.assertEqual(self.run_after("docs/page.md"), ["tidy"])
        self.assertEqual(self.run_after("tests/plan/chain.cpp"), ["tidy"])  # the program is not linked anew yet

    def test_are_those_whose_program_is_not_built_and_those_that_never_passed(self):
        self.commands["exec"] = None
        self.assertEqual(changed.changed(self.look(), self.passed), {"exec": ["it has not passed here yet"]})

    def test_are_again_those_that_failed(self):
        self.write("build/test_plan", "another")
        self.write("build/test_media", "another")
        seen = self.look()
        self.write("build/results.xml", '<testsuite><testcase name="plan" status="run"/>'
                   '<testcase name="media" status="fail"><failure message=""/></testcase>'
                   '<testcase name="cli_log" status="notrun"><skipped message=""/></testcase></testsuite>')
        self.assertEqual(changed.passed_tests(self.build / "results.xml"), ["plan"])
        self.passed["plan"] = seen["plan"]
        self.assertEqual(list(changed.changed(self.look(), self.passed)), ["media"])


if __name__ == "__main__":
    unittest.main()
