#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The programs of examples/ run and tell the truth: each under a load of its own.

    examples.py WEIR LOADS FOLDER
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import cases

FOLDER = sys.argv.pop(3)
import live

TIMES = 200


class Example(live.Child):
    """An example for as long as the block lasts; then what it said."""

    def __init__(self, name):
        self.out = tempfile.TemporaryFile("w+", errors="replace")
        super().__init__([os.path.join(FOLDER, "example_" + name), str(live.PATIENCE_S)],
                         stdout=self.out, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if line != "tracing\n":
            super().__exit__()
            raise AssertionError(line)

    def __exit__(self, *exc):
        self.signal(signal.SIGINT)
        self.ledger = self.process.communicate(timeout=live.PATIENCE_S)[1]
        self.status = self.process.returncode
        super().__exit__(*exc)
        self.out.seek(0)
        self.said = self.out.read()
        self.out.close()


def stamps(text):
    return [int(line.split()[0]) for line in text.splitlines()]


class Examples(unittest.TestCase):
    def assert_in_order(self, example):
        self.assertEqual(example.status, 0, example.ledger)
        at = stamps(example.said)
        self.assertEqual(at, sorted(at))

    def test_agent(self):
        with Example("agent") as agent, live.Child(["sleep", "60"]) as target:
            os.kill(target.pid, signal.SIGSTOP)
            for _ in range(TIMES):
                os.kill(target.pid, signal.SIGWINCH)
        self.assert_in_order(agent)
        mine = re.findall(rf" [^\n]*\[{os.getpid()}\] Window changed [^\n]*\[{target.pid}\]$",
                          agent.said, re.M)
        self.assertEqual(len(mine), TIMES)
        self.assertRegex(agent.ledger, r"produced \d+, delivered \d+, difference 0\n")

    def opens(self, name):
        with Example(name) as example:
            for _ in range(TIMES):
                with open("/dev/null", "rb"):
                    pass
        return example, len(re.findall(rf"\[{os.getpid()}\]$", example.said, re.M))

    def test_before(self):
        example, mine = self.opens("before")
        self.assertEqual(example.status, 0, example.ledger)
        self.assertGreaterEqual(mine, TIMES)

    def test_after(self):
        example, mine = self.opens("after")
        self.assert_in_order(example)
        self.assertGreaterEqual(mine, TIMES)
        self.assertIn("lost 0\n", example.ledger)

    def test_three(self):
        with Example("three") as three:
            ran = []
            for _ in range(TIMES // 4):
                process = subprocess.Popen(["/bin/true"])
                process.wait()
                ran.append(process.pid)
        self.assert_in_order(three)
        for pid in ran:
            told = re.findall(rf"^\d+ (fork \d+ {pid}|exec {pid} {pid}|exit {pid} {pid})$",
                              three.said, re.M)
            self.assertEqual([word.split()[0] for word in told], ["fork", "exec", "exit"])
        born, retired = map(int, re.search(r"born (\d+), retired (\d+)", three.ledger).groups())
        self.assertGreaterEqual(retired, len(ran))
        self.assertLessEqual(retired, born)


if __name__ == "__main__":
    cases.main()
