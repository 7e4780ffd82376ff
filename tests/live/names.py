#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names belong to a time: of threads that rename themselves, of pids that come again, of files whose
name is not in memory when its call is entered."""
import os
import tempfile
import unittest

import cases
import live


class Comm(unittest.TestCase):
    def test_from_the_prctl_on(self):
        """Each call stands under the name that its thread had then, also long after."""
        threads, count = 4, 500
        with live.Load("names", threads, count) as load, \
                live.Trace("-e", "sys:prctl,getpid", "-p", load.pid) as trace:
            told = load.run()["thread"]
            self.assertEqual(trace.end(), 0)
            ledger = trace.ledger()
            live.assert_account(self, ledger)
            self.assertEqual(live.lost(ledger), 0)
            lines = list(trace.lines())
        for i, tid in told:
            mine = [line for line in lines if line["tid"] == tid]
            names = ["names"] + [f"t{i}-{n}" for n in range(count)]
            want = []
            for old, new in zip(names, names[1:]):
                want += [("prctl", "sys_enter", old), ("prctl", "sys_exit", new),
                         ("getpid", "sys_enter", new), ("getpid", "sys_exit", new)]
            self.assertEqual([(m["syscall"], m["event"], m["comm"]) for m in mine], want)

    def test_a_pid_that_comes_again(self):
        """W6: it is another task: it starts with its parent's name, not with its namesake's."""
        count = 20
        with live.Load("reuse", count) as load, \
                live.Trace("-e", "process", "-e", "sys:getpid", "-p", load.pid) as trace:
            (pid,), = load.run()["pid"]
            self.assertEqual(trace.end(), 0)
            live.assert_account(self, trace.ledger())
            lines = [line for line in trace.lines()
                     if line["pid"] == pid or line["args"].get("child_pid") == pid]
        want = []
        for n in range(count):
            want += [("fork", "reuse")] + [("sys_enter", "reuse"), ("sys_exit", "reuse")]
            want += [("sys_enter", f"life-{n}"), ("sys_exit", f"life-{n}"), ("exit", f"life-{n}")]
        self.assertEqual([(line["event"], line["comm"]) for line in lines], want)


class Paths(unittest.TestCase):
    def test_on_a_page_that_is_not_there(self):
        """M7: what the entry could not read comes with the exit."""
        count = 200
        with tempfile.TemporaryDirectory() as folder, \
                live.Load("paths", os.path.join(folder, "pages"), count) as load, \
                live.Trace("-e", "sys:openat", "-p", load.pid) as trace:
            load.run()
            self.assertEqual(trace.end(), 0)
            ledger = trace.ledger()
            live.assert_account(self, ledger)
            self.assertEqual(live.lost(ledger), 0)
            lines = list(trace.lines())
        enters, exits = lines[::2], lines[1::2]
        self.assertEqual({line["event"] for line in enters}, {"sys_enter"})
        self.assertEqual({line["event"] for line in exits}, {"sys_exit"})
        self.assertEqual(len(exits), count)
        for n, (entered, left) in enumerate(zip(enters, exits)):
            self.assertEqual(entered["unread"], ["filename"])
            self.assertEqual(left["args"]["filename"], f"/nowhere/{n}")
            self.assertNotIn("unread", left)
        # Read in the end: nothing is counted as unread.
        self.assertEqual(ledger["unread"], 0)


if __name__ == "__main__":
    cases.main()
