#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/peers/judge: what tools print, each in its own form, with what is wrong in it known.

    test_judge.py JUDGE
"""
import subprocess
import sys
import unittest

import cases

JUDGE = sys.argv[1]


def judged(lines, *args):
    """(lines, steps back, the longest in ns, missing, twice)"""
    out = subprocess.run([JUDGE] + list(args), input="\n".join(lines) + "\n", text=True, check=True,
                         stdout=subprocess.PIPE).stdout
    return tuple(map(int, out.split()))


def call(cpu, number):
    return f"{0xf << 60 | cpu << 40 | number:x}"


class JudgeTest(unittest.TestCase):
    def test_in_order(self):
        self.assertEqual(judged(["1 a", "1 b", "5 c"], "first"), (3, 0, 0, 0, 0))

    def test_steps_back_are_from_the_latest(self):
        self.assertEqual(judged(["10 a", "7 b", "9 c", "11 d"], "first"), (4, 2, 3, 0, 0))

    def test_rounding_is_no_step(self):
        self.assertEqual(judged(["10 a", "7 b", "9 c"], "first", "-s", "2"), (3, 1, 3, 0, 0))

    def test_lines_without_a_time_are_none(self):
        self.assertEqual(judged(["Attaching 2 probes...", "5 a", "lost 3", ""], "first"),
                         (1, 0, 0, 0, 0))

    def test_numbers_missing_and_twice(self):
        lines = [f"1 uname({call(0, 0)})", f"2 uname(0x{call(1, 1)})", f"3 uname({call(1, 1)})",
                 "4 uname(0x7ffe0000f000)"]
        self.assertEqual(judged(lines, "first", "-n", "2", "2"), (3, 0, 0, 2, 1))

    def test_numbers_out_of_bounds_are_nobodys(self):
        lines = [f"1 {call(0, 2)}", f"1 {call(2, 0)}", f"1 {call(0, 0)}0", f"1 {call(0, 1)}"]
        self.assertEqual(judged(lines, "first", "-n", "2", "2"), (1, 0, 0, 3, 0))

    def test_every_form_of_time(self):
        forms = {
            "seconds": ["  16043.061324651 1 work[1] uname()", "16043.061324650 0 work[2] uname()"],
            "second": ["31098 1795989835.500 close(3) = 0", "31097 1795989835.250 close(3) = 0"],
            "json": ['{"ts":"16043509975497","cpu":1}', '{"ts":"16043509975496","cpu":0}'],
            "colon": ["  work 31 [000] 16044.858153060: syscalls:x: name: 0xf0",
                      "a:b 31 [001] 16044.858153059: syscalls:x: name: 0xf0"],
            "bracket": ["[1795989878.500] (+?) vm sys", "[1795989878.250] (+0.1) vm sys"],
        }
        for form, lines in forms.items():
            with self.subTest(form):
                count, back, *_ = judged(lines, form)
                self.assertEqual((count, back), (2, 1))
                self.assertEqual(judged(lines[::-1], form)[:2], (2, 0))

    def test_a_span_is_judged_by_its_end(self):
        lines = ["   10.000 ( 5.000 ms): a/1 read()", "   12.000 ( 1.000 ms): a/2 read()"]
        self.assertEqual(judged(lines, "span"), (2, 1, 2000000, 0, 0))

    def test_only_lines_with_a_text(self):
        lines = [f'{{"ts":"1","event":"sys_enter","name":"0x{call(0, 0)}"}}',
                 f'{{"ts":"2","event":"sys_exit","name":"0x{call(0, 0)}"}}']
        self.assertEqual(judged(lines, "json", "-n", "1", "1", "-m", "sys_enter"), (1, 0, 0, 0, 0))


if __name__ == "__main__":
    cases.main()
