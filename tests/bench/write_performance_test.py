#!/usr/bin/env python3
"""Tests what write_performance.py makes of the page's tables of a GPU."""
import unittest

from write_performance import GPU_BEGIN, GPU_END, gpu_tables, with_gpu_tables

PRINTED = """
### slope: time added by a handler

| | 8 | a handler |
|---|---|---|
| ours | 13.1 | 0.61 |

### peers: made on cuda:0, read on cuda:1

| bytes | ours |
|---|---|
| 33177600 | 364.0 |
"""


class WithGpuTables(unittest.TestCase):
    def test_a_page_without_tables_gets_all_that_was_printed_behind_what_it_has(self):
        page = with_gpu_tables("# Performance\n\ntext\n", PRINTED, "one machine")
        self.assertTrue(page.startswith("# Performance\n\ntext\n\n" + GPU_BEGIN))
        self.assertEqual(list(gpu_tables(page.split(GPU_END)[0])), ["slope", "peers"])
        self.assertIn("### slope: time added by a handler\n\none machine\n\n| | 8 | a handler |", page)

    def test_a_table_that_is_measured_again_takes_the_place_of_the_old_one_and_the_others_stay(self):
        page = with_gpu_tables("# Performance\n", PRINTED, "one machine")
        again = with_gpu_tables(page + "behind\n", "### slope: anew\n\n| | 8 |\n|---|---|\n| ours | 9 |\n", "another")
        tables = gpu_tables(again.split(GPU_END)[0])
        self.assertEqual(list(tables), ["slope", "peers"])
        self.assertIn("\n\nanother\n\n| | 8 |", tables["slope"])
        self.assertNotIn("13.1", again)
        self.assertEqual(tables["peers"], gpu_tables(page.split(GPU_END)[0])["peers"])
        self.assertTrue(again.endswith("behind\n"))

    def test_the_same_again_changes_nothing(self):
        page = with_gpu_tables("# Performance\n", PRINTED, "one machine")
        self.assertEqual(with_gpu_tables(page, PRINTED, "one machine"), page)

    def test_the_picture_comes_behind_its_table_once(self):
        printed = "### crossover: frames\n\n| size | host |\n|---|---|\n"
        page = with_gpu_tables(with_gpu_tables("# P\n", printed, "m"), printed + PRINTED, "m")
        self.assertEqual(page.count("pictures/crossover.svg"), 1)
        self.assertIn("crossover.svg)", gpu_tables(page)["crossover"])


if __name__ == "__main__":
    unittest.main()
