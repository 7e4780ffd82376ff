#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A trace in JSON, of all that there is: it keeps to its schema, `weir verify` agrees with it, and notices
what is done to it."""
import calendar
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import live


ALL_KINDS = {
    "fork", "exec", "exit", "sched_switch", "sched_wakeup", "signal", "gap", "watermark",
}


def some_of_all(shell_loops):
    """A shell that makes events of every kind."""
    return ["sh", "-c", f"for i in $(seq {shell_loops}); do kill -URG $$; cat /dev/null; done"]


class Schema(unittest.TestCase):
    def busy_trace(self, *args, kinds):
        """All groups, of the whole machine, with a hole in the middle."""
        with live.Trace("-e", "process,sched,signal,sys", "--watermarks", "--buffer", "256k",
                        *args) as trace:
            subprocess.run(some_of_all(5), check=True)
            trace.signal(signal.SIGSTOP)
            with live.Load("calls", "-n", 10000, "getpid") as load:
                load.run()
            trace.signal(signal.SIGCONT)
            subprocess.run(some_of_all(5), check=True)
            self.assertEqual(trace.stop(), 0)
            live.assert_account(self, trace.ledger())
            trace.verify()
            live.assert_valid(self, "ledger", trace.ledger_path)
            seen = {line["event"] for line in trace.lines()}
            self.assertGreaterEqual(seen, ALL_KINDS | kinds)
            live.assert_valid(self, "trace", trace.head(6000))

    def test_halves_of_calls(self):
        self.busy_trace(kinds={"sys_enter", "sys_exit"})

    def test_whole_calls(self):
        self.busy_trace("--pair", kinds={"syscall"})

    def test_account_among_the_lines(self):
        """COMMAND's trace goes to standard error, and so does the account: verify tells them apart."""
        with tempfile.TemporaryDirectory(prefix="weir-live-") as where:
            path, account_path = os.path.join(where, "trace"), os.path.join(where, "account")
            status, _, said = live.run("trace", "-f", "json", "--", "true")
            self.assertEqual(status, 0)
            with open(path, "w", encoding="utf-8") as trace:
                trace.write(said)
            with open(account_path, "w", encoding="utf-8") as account:
                account.write(said.splitlines()[-1] + "\n")
            self.assertEqual(json.loads(said.splitlines()[-1])["event"], "account")
            live.assert_valid(self, "ledger", account_path)
            status, out, said = live.run("verify", "--ledger", account_path, path)
            self.assertEqual(status, 0, said)
            self.assertIn("the ledger agrees", out)


class Verify(unittest.TestCase):
    """G1 to G4 of one trace, and of the same after somebody was at it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="weir-live-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.path = os.path.join(cls.folder, "trace")
        cls.ledger_path = os.path.join(cls.folder, "ledger")
        with live.Load("calls", "-t", 2, "-n", 1000, "getpid") as load, \
                live.Trace("-e", "sys:getpid", "-p", load.pid) as trace:
            load.run()
            trace.end()
            shutil.copy(trace.ledger_path, cls.ledger_path)
            with open(trace.path, "rb") as file:
                cls.lines = file.readlines()

    def verify(self, lines, *args):
        with open(self.path, "wb") as file:
            file.writelines(lines)
        status, out, said = live.run("verify", *args, self.path)
        self.assertEqual(out == "", status != 0)
        return status, out + said

    def good(self, *args):
        status, said = self.verify(self.lines, *args)
        self.assertEqual(status, 0, said)
        return said

    def broken(self, promise, line, lines, *args):
        """Verify says in which line, and which promise."""
        status, said = self.verify(lines, *args)
        self.assertEqual(status, 1)
        self.assertRegex(said, rf"\A{re.escape(self.path)}:{line}: {promise}: [^\n]*\n\Z")

    def not_as_accounted(self, lines):
        status, said = self.verify(lines, "--ledger", self.ledger_path)
        self.assertEqual(status, 1)
        self.assertEqual(said, f"{self.ledger_path}: G4 loss: all: {len(self.lines)} delivered, "
                               f"and {self.path} has {len(lines)} events\n")

    def changed(self, index, **members):
        line = json.loads(self.lines[index])
        line.update(members)
        lines = list(self.lines)
        lines[index] = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        return lines

    def test_as_it_is(self):
        self.assertIn("all promises kept", self.good())
        self.assertIn("the ledger agrees", self.good("--ledger", self.ledger_path))
        self.assertIn("4000 events, 0 gaps, 0 lost", self.good("--complete"))

    def test_two_are_swapped(self):
        lines = list(self.lines)
        lines[1000], lines[1001] = lines[1001], lines[1000]
        self.broken("G1 order", 1002, lines)

    def test_one_is_missing(self):
        """From the middle: it takes --complete, or the account, to notice."""
        lines = self.lines[:1000] + self.lines[1001:]
        self.assertEqual(self.verify(lines)[0], 0)
        status, said = self.verify(lines, "--complete")
        self.assertEqual(status, 1)
        self.assertRegex(said, rf"\A{re.escape(self.path)}:[0-9]+: G4 loss: ")
        # That line is its neighbour in its source, or before it: up to there all numbers are there.
        at = int(re.match(rf"{re.escape(self.path)}:([0-9]+)", said).group(1))
        gone = json.loads(self.lines[1000])
        self.assertIn(gone["source"], said)
        self.assertLessEqual(at, 1001)
        self.not_as_accounted(lines)

    def test_one_comes_twice(self):
        lines = self.lines[:1001] + [self.lines[1000]] + self.lines[1001:]
        self.broken("G4 loss", 1002, lines)

    def test_a_number_is_changed(self):
        stamp = int(json.loads(self.lines[1000])["ts"])
        self.broken("G1 order", 1001, self.changed(1000, ts=str(stamp - 10 ** 9)))
        self.broken("G1 order", 1002, self.changed(1000, ts=str(stamp + 10 ** 9)))
        of_source = [i for i, line in enumerate(map(json.loads, self.lines))
                     if line["source"] == json.loads(self.lines[1000])["source"]]
        before = json.loads(self.lines[of_source[of_source.index(1000) - 5]])
        self.broken("G4 loss", 1001, self.changed(1000, seq=before["seq"]))
        self.broken("format", 1001, self.changed(1000, seq=-1))
        self.broken("format", 1001, self.changed(1000, ts=stamp))

    def test_it_is_cut(self):
        cut = self.lines[:1000] + [self.lines[1000][:-20]]
        self.broken("format", 1001, cut)
        # Between two lines it is whole, but for what the account knows.
        self.assertEqual(self.verify(self.lines[:1000])[0], 0)
        self.not_as_accounted(self.lines[:1000])

    def test_nothing_is_left(self):
        self.not_as_accounted([])


class Bytes(unittest.TestCase):
    """M4: what no text has, from a program's name and from a path, can be had back."""
    NAME = b"\xff\xfe\x22\x5c\x0a"
    SAID = '\\xff\\xfe"\\\\\n'  # each backslash of the data is doubled

    def decode(self, said):
        return re.sub(rb"\\(\\|x..)", lambda m: b"\\" if m[1] == b"\\" else
                      bytes([int(m[1][1:], 16)]), said.encode())

    def test_name_and_path(self):
        script = ("import os, sys\n"
                  "with open('/proc/self/comm', 'wb') as comm: comm.write(%r)\n"
                  "try: os.open(b'/nowhere/\\x80\\x22\\x5c', os.O_RDONLY)\n"
                  "except OSError: pass\n" % self.NAME)
        with live.Trace("-e", "sys:openat", sys.executable, "-c", script) as trace:
            self.assertEqual(trace.end(), 0)
            trace.verify()
            with open(trace.path, "rb") as file:
                raw = file.readlines()
            line, = (line for line in trace.events("sys_enter", comm=self.SAID)
                     if line["args"]["filename"].startswith("/nowhere/"))
        self.assertEqual(self.decode(line["comm"]), self.NAME)
        self.assertEqual(line["args"]["filename"], '/nowhere/\\x80"\\\\')
        self.assertEqual(self.decode(line["args"]["filename"]), b"/nowhere/\x80\x22\x5c")
        for one in raw:
            one.decode("utf-8")
            self.assertTrue(one.endswith(b"\n"))

    def test_digits(self):
        """Stamps keep all of theirs, as text, and wall time has as many."""
        with live.Trace("-e", "sys", "true") as trace:
            self.assertEqual(trace.end(), 0)
            lines = list(trace.lines())
        self.assertGreater(len(lines), 20)
        offsets = []
        for line in lines:
            seconds, digits = re.fullmatch(r"(.{19})\.([0-9]{9})Z", line["time"]).groups()
            wall = calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S"))
            offsets.append(wall * 10 ** 9 + int(digits) - int(line["ts"]))
        # The clock may be slewed meanwhile.
        self.assertLess(max(offsets) - min(offsets), 10 ** 6)


if __name__ == "__main__":
    cases.main()
