#!/usr/bin/env python3
"""Tests what write_performance.py makes of the page's parts that are measured by themselves."""
import unittest

from write_performance import (CODEBOOK_BEGIN, CODEBOOK_END, GPU_BEGIN, GPU_END, MEDIA_BEGIN, MEDIA_END, NET_BEGIN, NET_END,
                               batch_lines, gpu_tables, with_codebook_table, with_gpu_tables, with_media_table, with_net_table)

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


class WithMediaTable(unittest.TestCase):
    def result(self, ratio):
        row = {"bench": "decode", "case": "1080p", "program": "millrace", "metric": "of_ffmpegs", "unit": "ratio", "p50": ratio,
               "p99": ratio, "n": 9}
        return {"rows": [row, {**row, "metric": "copies", "unit": "1/picture", "p50": 0, "p99": 0}], "missing": []}

    def test_the_table_comes_before_that_of_a_gpu_and_says_whether_the_goal_is_met(self):
        page = with_gpu_tables("# Performance\n\ntext\n", PRINTED, "one machine")
        again = with_media_table(page, self.result(1.01), "measured so")
        self.assertLess(again.index(MEDIA_END), again.index(GPU_BEGIN))
        self.assertIn("of_ffmpegs | 1.01 | 1.01 | ratio | ≥ 0.97 | met |", again)
        self.assertIn("copies | 0.00 | 0.00 | 1/picture | ≤ 0 | met |", again)
        self.assertEqual(gpu_tables(again.split(GPU_END)[0]), gpu_tables(page.split(GPU_END)[0]))
        self.assertIn("**missed**", with_media_table(page, self.result(0.9), "measured so"))

    def test_a_table_that_is_measured_again_takes_the_place_of_the_old_one(self):
        page = with_media_table("# Performance\n", self.result(0.5), "measured so")
        again = with_media_table(page, self.result(1.5), "measured so")
        self.assertEqual(again.count(MEDIA_BEGIN), 1)
        self.assertNotIn("0.50", again)
        self.assertEqual(with_media_table(again, self.result(1.5), "measured so"), again)


class WithNetTable(unittest.TestCase):
    def result(self, of_socket_crc, over_socket, missing=()):
        def row(bench, case, metric, unit, value):
            return {"bench": bench, "case": case, "program": "millrace, plain", "metric": metric, "unit": unit, "p50": value, "p99": value,
                    "n": 9}
        return {"rows": [row("transfer", "6.2 MB", "of_socket_crc", "ratio", of_socket_crc),
                         row("transfer", "6.2 MB", "of_socket", "ratio", 0.4),
                         row("one_way", "warm", "over_socket", "µs", over_socket),
                         row("one_way", "idle", "of_socket", "ratio", 1.2)], "missing": list(missing)}

    def test_each_goal_has_its_verdict_and_a_figure_that_is_only_told_has_none(self):
        page = with_net_table("# P\n", self.result(0.85, 20.5), "measured so")
        self.assertIn("of_socket_crc | 0.85 | 0.85 | ratio | ≥ 0.85 | met |", page)
        self.assertIn("over_socket | 20.50 | 20.50 | µs | ≤ 20 | **missed** |", page)
        self.assertIn("| one_way | idle | millrace, plain | of_socket | 1.20 | 1.20 | ratio | ≤ 1.5 | met |", page)
        self.assertIn("| transfer | 6.2 MB | millrace, plain | of_socket | 0.40 | 0.40 | ratio |  |  |", page)

    def test_the_table_stands_after_that_of_films_and_before_that_of_a_gpu(self):
        media = {"rows": self.result(1, 1)["rows"], "missing": []}
        page = with_media_table(with_gpu_tables("# P\n\ntext\n", PRINTED, "one machine"), media, "measured so")
        again = with_net_table(page, self.result(0.9, 1), "measured so")
        self.assertLess(again.index(MEDIA_END), again.index(NET_BEGIN))
        self.assertLess(again.index(NET_END), again.index(GPU_BEGIN))
        self.assertEqual(with_net_table(again, self.result(0.9, 1), "measured so"), again)

    def test_programs_that_are_missing_are_named_until_they_are_measured(self):
        page = with_net_table("# P\n", self.result(0.5, 1, ["ZeroMQ is not measured"]), "measured so")
        self.assertIn("\n- ZeroMQ is not measured\n" + NET_END, page)
        self.assertNotIn("not measured", with_net_table(page, self.result(0.5, 1), "measured so"))


class WithCodebookTable(unittest.TestCase):
    def result(self, of_faiss, of_one_thread, missing=()):
        def row(case, metric, value):
            return {"bench": "fit", "case": case, "program": "millrace", "metric": metric, "unit": "ratio", "p50": value, "p99": value, "n": 5}
        return {"rows": [row("1 thread", "of_faiss", of_faiss), row("2 threads", "of_one_thread", of_one_thread)], "missing": list(missing)}

    def test_each_goal_has_its_verdict(self):
        page = with_codebook_table("# P\n", self.result(1.2, 0.7), "measured so")
        self.assertIn("| fit | 1 thread | millrace | of_faiss | 1.20 | 1.20 | ratio | ≤ 1.2 | met |", page)
        self.assertIn("| fit | 2 threads | millrace | of_one_thread | 0.70 | 0.70 | ratio | ≤ 0.65 | **missed** |", page)

    def test_a_table_that_is_measured_again_takes_the_place_of_the_old_one_before_that_of_a_gpu(self):
        page = with_gpu_tables("# P\n\ntext\n", PRINTED, "one machine")
        page = with_codebook_table(page, self.result(0.5, 0.6, ["FAISS is not measured"]), "measured so")
        self.assertIn("\n- FAISS is not measured\n" + CODEBOOK_END, page)
        self.assertLess(page.index(CODEBOOK_END), page.index(GPU_BEGIN))
        again = with_codebook_table(page, self.result(0.4, 0.6), "measured so")
        self.assertEqual(again.count(CODEBOOK_BEGIN), 1)
        self.assertNotIn("not measured", again)
        self.assertEqual(with_codebook_table(again, self.result(0.4, 0.6), "measured so"), again)


class BatchLines(unittest.TestCase):
    def rows(self, missed):
        rows = []
        for case in ("Poisson, 15 ms, 10 %, ours", "Poisson, 50 ms, 10 %, greedy, drops", "Poisson, 50 ms, 120 %, greedy, drops"):
            share = 0.83 if "120" in case else 0.999
            for metric, p50, p99 in (("wait", 1, 48.96), ("device_use", 0.9, 0.9), ("in_time", share, share)):
                rows.append({"bench": "batch", "case": case, "metric": metric, "p50": p50, "p99": p99, "n": 10})
        rows.append({"bench": "batch", "case": "p99 within the budget", "metric": "missed_cells", "p50": missed, "p99": missed, "n": 96})
        return rows

    def test_the_table_has_one_pattern_and_budget_and_the_goals_say_where_they_are_missed(self):
        lines = batch_lines(self.rows(2))
        self.assertIn("| load | 10 % | 120 % |", lines)
        self.assertIn("| greedy, drops | 49.0/0.90 | 49.0/0.90, 0.83 |", lines)
        self.assertNotIn("| ours", "\n".join(lines))
        self.assertIn("- **missed**: p99 within the budget (94 of 96 cells)", lines)
        self.assertIn("- met: p99 within the budget (96 of 96 cells)", batch_lines(self.rows(0)))

    def test_without_the_benchmark_there_is_no_table(self):
        self.assertEqual(batch_lines([{"bench": "chain", "case": "10", "metric": "tick"}]), [])


if __name__ == "__main__":
    unittest.main()
