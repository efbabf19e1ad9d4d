#!/usr/bin/env python3
"""Adds up the JUnit files that ctest left and prints `N passed, N failed`; a doctest program counts by its cases."""
import argparse
import re
import sys
import xml.etree.ElementTree as xml

DOCTEST_CASES = re.compile(r"test cases:\s*\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed")


def count(path):
    """The passed and the failed of one file. A program that died before its summary counts as one failure."""
    passed = failed = 0
    for case in xml.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        cases = DOCTEST_CASES.search(output)
        case_passed, case_failed = map(int, cases.groups()) if cases else (0, 0)
        if case.get("status") == "run":
            passed += case_passed if cases else 1
            failed += case_failed
        elif case.get("status") != "disabled":
            passed += case_passed
            failed += max(case_failed, 1)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--passed", type=int, default=0, help="checks beside the files that passed")
    parser.add_argument("--failed", type=int, default=0, help="checks beside the files that failed")
    arguments = parser.parse_args()
    passed, failed = arguments.passed, arguments.failed
    for path in arguments.files:
        file_passed, file_failed = count(path)
        passed += file_passed
        failed += file_failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
