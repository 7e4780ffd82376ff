#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/report.py and plot.py: what the programs print is read as it is meant, and put where it belongs.

    test_report.py BENCH
"""
import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, sys.argv[1])

import cases  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402

ORDER = """\
 records  rings  burst              weir          unsorted              heap              sort  weir/uns.  weir-uns.  heap/weir  target
   16384      2      1    11.03 ( 12.09)     5.10 (  5.12)    16.88 ( 17.40)    77.64 ( 92.94)       2.16       5.93       1.53   9.0 MISSED
 1048576   1024     20    14.61 ( 17.07)     5.56 (  5.66)    10.45 ( 10.49)    94.68 (352.18)       2.63       9.05       0.71  15.0 met
"""
LEAN = """\
way               program, ns    reader, ns a record
empty          39.2 (  43.4)          0.0 (   0.0)  an empty program
lane           58.4 (  61.2)          5.4 (   5.5)  the accounting probe
"""
WAKE = """\
     rate   events/s   lost  polls/s   CPU, %   p50, us   p99, us   max, us
     naps          -      -      884    2.085
        0          0      0        2    0.012         -         -         -  CPU < 0.1 %: met
   200000     188235      3      249    5.985    1022.9   10333.9   13021.0  p99 < 2000 us: MISSED
"""


class ParseTest(unittest.TestCase):
    def test_order(self):
        rows = report.order_rows(ORDER)
        self.assertEqual(rows[0], {"records": 16384, "rings": 2, "burst": 1, "weir": 11.03,
                                   "unsorted": 5.10, "heap": 16.88, "sort": 77.64})
        self.assertEqual((len(rows), rows[1]["rings"], rows[1]["weir"]), (2, 1024, 14.61))

    def test_ways(self):
        self.assertEqual(report.ways(LEAN)["lane"], (58.4, 61.2, 5.4, 5.5))
        self.assertEqual(report.way_rows(LEAN)[1], ("the accounting probe", 58.4, 61.2, 5.4, 5.5))
        self.assertEqual(report.way_rows("ring     58.0 ( 63.1)    73.0  a BPF ring buffer\n"),
                         [("a BPF ring buffer", 58.0, 63.1, 73.0)])

    def test_wake(self):
        self.assertEqual(report.wake_rows(WAKE),
                         {0: {"lost": 0, "polls": 2, "cpu": 0.012, "p50": None, "p99": None, "max": None},
                          200000: {"lost": 3, "polls": 249, "cpu": 5.985, "p50": 1022.9, "p99": 10333.9,
                                   "max": 13021.0}})

    def test_table_rows(self):
        self.assertEqual(report.table_rows("reader\trate\nweir\t1000\n"),
                         [{"reader": "weir", "rate": 1000}])
        self.assertEqual(report.table_rows(""), [])


class GoalsTest(unittest.TestCase):
    def rows(self, fill):
        goals = report.Goals()
        fill(goals)
        return [row[1:] for row in goals.rows]

    def test_the_worst_shape_counts(self):
        self.assertEqual(self.rows(lambda goals: goals.order(report.order_rows(ORDER))),
                         [["11.0 to 11.0 ns", "**missed**"], ["14.6 to 14.6 ns", "met"]])

    def test_waiting(self):
        self.assertEqual(self.rows(lambda goals: goals.wake(report.wake_rows(WAKE))),
                         [["0.012 %", "met"], ["10,334 to 10,334 us", "**missed**"],
                          ["6.0 %", "met"]])

    def test_replay_and_top(self):
        def fill(goals):
            goals.replay("  2000000 events to a counter: 40.1 ns each, 24.9 M/s, 300 MiB of memory")
            goals.tracepoints("weir / perf, median of 9 pairs: 1.04 (target 1.1)")
            goals.top("idle        0.150 % of a CPU, 90 switches/s\npipe         60.0 ns of the")
        self.assertEqual(self.rows(fill), [["24.9 M/s", "met"], ["300 MiB", "**missed**"],
                                           ["1.04 times", "met"], ["0.150 %", "met"], ["60.0 ns", "**missed**"]])

    def test_peers_by_both_clocks(self):
        tools = {
            "untraced": {"time_s": 1, "whole_s": 1},
            "weir trace, text": {"time_s": 2, "whole_s": 4, "lost_most": 0, "back": 0},
            "weir record, replay": {"time_s": 2, "whole_s": 3, "lost_most": 0, "back": 0, "after_s": 1,
                                    "lines": 100},
            "perf record, script": {"time_s": 5, "whole_s": 12, "lost_most": 0.1, "back": 0, "after_s": 15,
                                    "lines": 200},
            "perf trace": {"time_s": 60},
        }
        rows = self.rows(lambda goals: goals.peers({"loads": {"dd": {"tools": tools}}}))
        self.assertEqual(rows, [["2.0 times", "met"], ["4.0 times", "**missed**"], ["0", "met"],
                                ["30 times", "met"], ["2.0 times", "met"], ["3.0 times", "met"], ["0", "met"],
                                ["0.25 of it", "met"], ["0.40 of it", "**missed**"],
                                ["7.5 times", "**missed**"], ["15.0 times", "met"],
                                ["0; perf record 10.00 %", "met"], ["0", "met"]])

    def test_reading_torture_and_the_bench_itself(self):
        def fill(goals):
            goals.reading({"weir replay, none, 2 streams": {"per_s": 16e6},
                           "babeltrace2, counter, 2 streams": {"per_s": 1e6}, "perf report": {"per_s": 32e6}})
            goals.torture([{"events": 50_000_000, "late": 0, "ledger_closed": True}, {"events": 1_000_000},
                           {"ledger_closed": False}])
            goals.bench("720\n")
        self.assertEqual(self.rows(fill), [["16.0 and 0.5 times", "**missed**"], ["0 of 51.0 M", "met"],
                                           ["1 of 2", "**missed**"], ["12.0 minutes", "met"]])

    def test_what_was_not_measured_is_no_goal_met(self):
        def fill(goals):
            goals.order([])
            goals.wake({})
            goals.lean({})
            goals.latency(None)
            goals.replay("")
            goals.tracepoints("")
            goals.top("")
            goals.reading({})
            goals.torture(None)
            goals.bench("")
        self.assertEqual(self.rows(fill), [])


class PutTest(unittest.TestCase):
    TEXT = "a\n<!-- bench: goals -->\nold\n<!-- bench: end -->\nb\n<!-- bench: peers -->\n<!-- bench: end -->\n"

    def test_between_the_marks_and_nowhere_else(self):
        self.assertEqual(report.put(self.TEXT, {"goals": "new\n"}), self.TEXT.replace("old", "new"))
        self.assertEqual(report.put(report.put(self.TEXT, {"peers": "x\n"}), {"peers": ""}), self.TEXT)

    def test_no_such_mark(self):
        self.assertRaises(ValueError, report.put, self.TEXT, {"reading": ""})

    def test_the_document_has_every_mark(self):
        path = os.path.join(sys.argv[1], "..", "docs", "performance.md")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(set(re.findall(r"<!-- bench: (\w+) -->", text)),
                         {"machine", "goals", "peers", "reading", "sending", "switch", "waiting", "delay",
                          "end"})


class PlotTest(unittest.TestCase):
    def test_places(self):
        axis = plot.Axis([1000, 5e6], 0, 400)
        self.assertEqual([round(axis.place(x), 6) for x in (1e3, 1e5, 1e7)], [0, 200, 400])
        self.assertEqual(axis.ticks(), [1e3, 1e4, 1e5, 1e6, 1e7])
        axis = plot.Axis([3, 38], 400, 0, None)
        self.assertEqual((axis.place(0), axis.place(40), axis.ticks()[1]), (400, 0, 5))

    def test_short(self):
        self.assertEqual([plot.short(n) for n in (0.5, 100, 1000, 1024, 2500000)],
                         ["0.5", "100", "1 k", "1,024", "2.5 M"])

    def test_names_do_not_cover_each_other(self):
        self.assertEqual(plot.spread([50, 10, 12], 15), [50, 10, 25])

    def test_an_svg_with_all_points_inside(self):
        text = plot.draw("a < b", "x", "y", {"one": [(1, 5), (1024, 900)], "none": [(4, 0)]}, x_base=2)
        root = xml.etree.ElementTree.fromstring(text.encode())
        circles = root.findall(".//{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(circles), 2)
        for circle in circles:
            self.assertTrue(plot.LEFT <= float(circle.get("cx")) <= plot.WIDTH - plot.RIGHT)
            self.assertTrue(plot.TOP <= float(circle.get("cy")) <= plot.HEIGHT - plot.BOTTOM)
        self.assertNotIn(">none<", text)

    def test_nothing_measured_nothing_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(report.plots(folder), {})
            self.assertIn("goals", report.sections(folder))


if __name__ == "__main__":
    cases.main()
