#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""weir top against what the kernel itself says: every nanosecond of every CPU is somebody's, idle, or a
gap; and each process has the time that its parent is told."""
import collections
import contextlib
import fcntl
import glob
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import unittest

import cases
import live
from record import Capture

# Of the kernel's own figure, in all.
PART = 0.01
# Of one process more or less: its last steps, which come when its parent is told; what a switch takes,
# of which the kernel's clock and weir's see other halves. A few have more. And in the mean: a busy
# machine switches often.
ONE_NS = 250_000
FEW = 0.02
EACH_NS = 5_000
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def stolen_ns():
    """
    What a hypervisor has taken from all CPUs. The kernel leaves it out of a task's time, and weir, by
    whose clock the task had the CPU, can't. It is told in ticks: a part of one is not.
    """
    with open("/proc/stat", encoding="ascii") as file:
        return (int(file.readline().split()[8]) + 1) * TICK_NS


class Top(live.Weir):
    """`weir top --json`, which counts when this returns."""

    def __init__(self, *args, **popen):
        folder = live.new_folder()
        self.path = os.path.join(folder, "reports")
        with open(self.path, "wb") as reports:
            super().__init__(folder, "counting switches", "top", "--json", "-v", *args,
                             **{"stdout": reports, **popen})

    def reports(self):
        with open(self.path, encoding="utf-8") as reports:
            return [json.loads(line) for line in reports if line.endswith("\n")]


def cgroups():
    """Where they are mounted, by version 2."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        for _, place, kind, *_ in map(str.split, mounts):
            if kind == "cgroup2":
                return place
    raise unittest.SkipTest("there is no hierarchy of cgroups of version 2")


def elapsed_ns(report):
    return int(report["to"]) - int(report["from"])


def time_by_pid(reports):
    """{pid: ns}, of all reports."""
    times = collections.Counter()
    for report in reports:
        for row in report["rows"]:
            if row["kind"] == "tasks":
                times[row["pid"]] += row["time_ns"]
    return times


def truths(told):
    """{pid: ns}, by what a load has printed."""
    times = {pid: us * 1000 for pid, us in told.get("child", [])}
    times.update({pid: ns for pid, ns in told.get("self", [])})
    return times


class Accounts(unittest.TestCase):
    def setUp(self):
        self.cpus = live.online_cpus()
        self.stolen_ns = stolen_ns()

    def assert_adds_up(self, reports):
        """A13: for each CPU, and for the rows; each interval begins where the one before ends."""
        self.assertTrue(reports)
        before = reports[0]["begin"]
        for report in reports:
            self.assertEqual(set(report["identity"].values()), {0})
            self.assertEqual(report["from"], before)
            before = report["to"]
            for cpu in report["cpus"]:
                self.assertEqual(cpu["tasks_ns"] + cpu["idle_ns"] + cpu["gap_ns"],
                                 elapsed_ns(report))
            of_cpus = sum(cpu["tasks_ns"] + cpu["idle_ns"] + cpu["gap_ns"]
                          for cpu in report["cpus"])
            self.assertEqual(sum(row["time_ns"] for row in report["rows"]), of_cpus)

    def assert_agrees(self, reports, told, each_ns=EACH_NS):
        """A14, one by one and in all. Where there are gaps they may hold what is missing."""
        stolen = stolen_ns() - self.stolen_ns + TICK_NS
        times, truth = time_by_pid(reports), truths(told)
        gap_ns = sum(cpu["gap_ns"] for report in reports for cpu in report["cpus"])
        more = [pid for pid, ns in truth.items() if times[pid] > ns * (1 + PART) + ONE_NS]
        self.assertLessEqual(len(more), 1 + FEW * len(truth) + stolen / ONE_NS)
        for pid, ns in truth.items():
            self.assertGreaterEqual(times[pid], ns * (1 - PART) - ONE_NS - gap_ns, pid)
        in_all, true = sum(times[pid] for pid in truth), sum(truth.values())
        self.assertLessEqual(in_all, true * (1 + PART) + each_ns * len(truth) + stolen)
        self.assertGreaterEqual(in_all, true * (1 - PART) - each_ns * len(truth) - gap_ns)

    def run_loads(self, top_args, *loads):
        """[what each told], and the reports."""
        with contextlib.ExitStack() as stack:
            ready = [stack.enter_context(live.Load("busy", *load)) for load in loads]
            top = stack.enter_context(Top(*top_args))
            for load in ready:
                load.go()
            told = [load.end() for load in ready]
            self.assertEqual(top.stop(), 0)
            reports = top.reports()
        self.assert_adds_up(reports)
        return told, reports

    def test_mixed_load(self):
        """A13, A14: short processes, a loop and a pipe at once."""
        seconds = 60 if live.SOAK else 3
        told, reports = self.run_loads(
            ["-d", 1],
            ("short", 150 * seconds, 2000),
            ("loop", self.cpus[-1], 500 * seconds),
            ("pipe", self.cpus[0], 20000 * seconds))
        for one in told:
            self.assert_agrees(reports, one)

    def test_short_lived(self):
        """A thousand processes of 2 ms: each is there, with its time."""
        (told,), reports = self.run_loads(["-d", 1], ("short", 1000, 2000))
        self.assertEqual(len(told["child"]), 1000)
        self.assert_agrees(reports, told)
        rows = [row for report in reports for row in report["rows"] if row.get("state") == "exited"]
        ended = {row["pid"] for row in rows}
        self.assertLessEqual({pid for pid, _ in told["child"]}, ended)

    def test_loop_without_a_switch(self):
        """Its time is in each report, though nothing happens on its CPU."""
        cpu = self.cpus[-1]
        (told,), reports = self.run_loads(["-d", 0.5], ("loop", cpu, 3000))
        (pid, _), = told["self"]
        self.assert_agrees(reports, told)
        # On a busy machine weir may be late: a short interval makes up for a long one.
        shares = [sum(row["time_ns"] for row in report["rows"] if row.get("pid") == pid)
                  / elapsed_ns(report) for report in reports if elapsed_ns(report) > 400_000_000]
        there = [i for i, share in enumerate(shares) if share > 0]
        # The first and the last are those in which it began and ended.
        for i in range(there[0] + 1, there[-1]):
            self.assertGreater(shares[i], 0.85, shares)

    def test_schedstat(self):
        """A14: of a process that goes on, what the kernel has counted until now; and its waits."""
        with live.Load("busy", "loop", self.cpus[0], 600000) as load, \
                Top("-d", 0.3) as top:
            def stat():
                with open(f"/proc/{load.pid}/schedstat", encoding="ascii") as file:
                    return [int(n) for n in file.read().split()]

            def rows():
                return [row for report in top.reports() for row in report["rows"]
                        if row.get("pid") == load.pid and row["time_ns"]]

            load.go()
            before = stat()
            live.wait_until("three reports", lambda: len(rows()) >= 3)
            load.process.send_signal(signal.SIGSTOP)
            live.wait_until("stopped", lambda: any(
                row["state"] == "stopped" for report in top.reports()[-1:]
                for row in report["rows"] if row.get("pid") == load.pid))
            run_ns, wait_ns, _ = stat()
            self.assertEqual(top.stop(), 0)
            reports = top.reports()
            total = [row["total"] for report in reports for row in report["rows"]
                     if row.get("pid") == load.pid][-1]
        self.assert_adds_up(reports)
        gap_ns = sum(cpu["gap_ns"] for report in reports for cpu in report["cpus"])
        stolen = stolen_ns() - self.stolen_ns + TICK_NS
        self.assertLessEqual(total["time_ns"], run_ns * (1 + PART) + ONE_NS + stolen)
        self.assertGreaterEqual(total["time_ns"],
                                (run_ns - before[0]) * (1 - PART) - ONE_NS - gap_ns)
        # Before the first switch away that was seen, the kernel's total is of an unknown past.
        self.assertLessEqual(total["wait_ns"], wait_ns)

    def test_loss(self):
        """Rings that hold 64 switches: gaps, and nobody has more than the kernel says."""
        told, reports = self.run_loads(
            ["-d", 1, "--buffer", 4096],
            ("pipe", self.cpus[0], 100000), ("pipe", self.cpus[-1], 100000),
            ("short", 200, 1000))
        lost = sum(report["switches"]["lost"] for report in reports[-1:])
        self.assertGreater(lost, 0)
        self.assertGreater(sum(cpu["gap_ns"] for r in reports for cpu in r["cpus"]), 0)
        for one in told:
            self.assert_agrees(reports, one)
        last = reports[-1]["switches"]
        self.assertEqual(last["produced"], last["told"] + last["lost"] + last["pending"])

    def test_switches(self):
        """A13: the machine's own count of switches is that of those told, lost and hidden."""
        def switches():
            with open("/proc/stat", encoding="ascii") as stat:
                return int([line for line in stat if line.startswith("ctxt ")][0].split()[1])

        outside = switches()
        with live.Load("busy", "pipe", self.cpus[0], 100000) as load, Top("-d", 1) as top:
            inside = switches()
            load.run()
            inside = switches() - inside
            self.assertEqual(top.stop(), 0)
            last = top.reports()[-1]["switches"]
        outside = switches() - outside
        self.assertGreaterEqual(inside, 200000)
        self.assertLessEqual(last["told"] + last["lost"], outside)
        # A break in the chain of a CPU hides one switch at least.
        self.assertGreaterEqual((last["told"] + last["lost"] + last["unseen"]) * 1.01, inside)

    def test_ended_has_its_cmdline(self):
        """What was read while it ran is there when it has ended."""
        words = ["sleep", "98765"]
        with subprocess.Popen(words) as child, Top("-d", 0.2, "-p", child.pid) as top:
            def rows():
                return [row for report in top.reports() for row in report["rows"]
                        if row.get("pid") == child.pid]

            live.wait_until("a row", rows)
            child.kill()
            live.wait_until("its end", lambda: rows()[-1]["state"] == "exited")
            self.assertEqual(top.stop(), 0)
            self.assertEqual({tuple(row["cmdline"]) for row in rows()}, {tuple(words)})

    def test_weir_is_a_row(self):
        """What it costs itself is there like anybody's."""
        with Top("-d", 0.2, "-n", 3) as top:
            self.assertEqual(top.end(), 0)
            reports = top.reports()
        self.assertEqual(len(reports), 3)
        self.assertGreater(time_by_pid(reports)[top.pid], 0)


class Cpus(unittest.TestCase):
    def test_off_and_on_again(self):
        """M2: what a CPU does while it is away is a gap, and it goes on behind it."""
        cpus = live.online_cpus()
        if len(cpus) < 2:
            self.skipTest("there is one CPU")

        def cpu_in(report):
            return next(cpu for cpu in report["cpus"] if cpu["cpu"] == cpus[-1])

        with Top("-d", 0.2) as top:
            live.wait_until("a report", top.reports)
            try:
                with live.offline(cpus[-1]):
                    # A report that is all of it, behind one in which it went.
                    live.wait_until("reports without it", lambda: sum(
                        not cpu_in(report)["online"] for report in top.reports()) >= 3)
            except OSError as error:
                self.skipTest(f"CPU {cpus[-1]} cannot go offline: {error}")
            back = len(top.reports())
            live.wait_until("reports with it", lambda: any(
                cpu_in(report)["online"] and cpu_in(report)["idle_ns"] + cpu_in(report)["tasks_ns"]
                for report in top.reports()[back:]))
            self.assertEqual(top.stop(), 0)
            reports = top.reports()
        Accounts.assert_adds_up(self, reports)
        away = [report for report in reports if not cpu_in(report)["online"]]
        for report in away[1:-1]:
            self.assertEqual(cpu_in(report)["gap_ns"], elapsed_ns(report))


class Replay(unittest.TestCase):
    def setUp(self):
        self.stolen_ns = stolen_ns()

    def test_capture(self):
        """What was recorded comes to the same as what the kernel told the parents."""
        with live.Load("busy", "short", 100, 2000) as load, \
                Capture("-e", "process,sched") as capture:
            told = load.run()
            self.assertEqual(capture.stop(), 0)
            status, out, said = live.run("top", "--replay", capture.dir, "--json", "-d", 0.5)
            self.assertEqual(status, 0, said)
            reports = [json.loads(line) for line in out.splitlines()]
            Accounts.assert_adds_up(self, reports)
            for report in reports[:-1]:
                self.assertEqual(elapsed_ns(report), 500_000_000)
            # The probes of weir record cost some of each switch.
            Accounts.assert_agrees(self, reports, told, each_ns=50_000)
            waits = sum(row["waits"]["count"] for report in reports for row in report["rows"]
                        if "waits" in row)
            self.assertGreater(waits, 100)
            status, out, _ = live.run("top", "--replay", capture.dir, "-n", 1, "-d", 0.5)
            self.assertEqual((status, out.count("weir top ")), (0, 1))

    def test_idle_end(self):
        """Each report covers the time that was asked for, also where no event comes any more."""
        with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
            capture = os.path.join(folder, "capture")
            status, _, said = live.run("record", "-o", capture, "-e", "process,sched", "-d", 2.5,
                                       "sleep", 4)
            self.assertEqual(status, 0, said)
            status, out, said = live.run("top", "--replay", capture, "--json", "-d", 0.5)
            self.assertEqual(status, 0, said)
            reports = [json.loads(line) for line in out.splitlines()]
            self.assertGreaterEqual(len(reports), 5)
            for report in reports[:-1]:
                self.assertEqual(elapsed_ns(report), 500_000_000)

    def test_damaged(self):
        """A file is gone, and the metadata: both are said, and the reports keep the wall clock."""
        with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
            capture = os.path.join(folder, "capture")
            live.run("record", "-o", capture, "-e", "process,sched", "true")
            ways = ("top", "--replay", capture, "--json", "-d", 60)
            status, whole, said = live.run(*ways)
            self.assertEqual((status, said), (0, ""))
            # Of any CPU: "true" may have run on one alone.
            os.unlink(min(glob.glob(os.path.join(capture, "cpu*.000001"))))
            os.unlink(os.path.join(capture, "metadata"))
            status, out, said = live.run(*ways)
            self.assertEqual(status, 0, said)
            self.assertRegex(said, "(?s)metadata is missing.*damaged in .* place")
            self.assertEqual(*(json.loads(text.splitlines()[-1])["time"][:13]
                               for text in (whole, out)))
            self.assertEqual(live.run(*ways, "--strict", "-n", 1)[0], 3)

    def test_without_switches(self):
        with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
            capture = os.path.join(folder, "capture")
            live.run("record", "-o", capture, "-e", "process", "true")
            status, out, said = live.run("top", "--replay", capture)
            self.assertEqual((status, out), (1, ""))
            self.assertIn("has no switches", said)
            self.assertEqual(live.run("top", "--replay", folder)[0], 1)


class Schema(unittest.TestCase):
    def test_reports(self):
        """Each grouping, with processes that come and go, and a gap."""
        for by in ("process", "thread", "cgroup", "container", "user", "cpu"):
            with live.Load("busy", "short", 100, 1000) as load, \
                    Top("-d", 0.2, "--buffer", 4096, "--by", by) as top:
                load.run()
                self.assertEqual(top.stop(), 0)
                live.assert_valid(self, "top", top.path)
                self.assertTrue(top.reports())


REDRAW = "\x0c"
LEFT, RIGHT = "\x1bOD", "\x1bOC" # as xterm's keypad has them


class Screen(live.Child):
    """`weir top` on a terminal of its own."""

    def __init__(self, *args, rows=24, columns=80, stdin=None, **environ):
        self.terminal, self.inside = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.inside)
        self.text = ""
        self.said = tempfile.TemporaryFile()
        super().__init__([live.WEIR, "top", "-d", "0.2"] + live.words(args),
                         stdin=stdin or self.inside, stdout=self.inside, stderr=self.said,
                         env={**os.environ, "TERM": "xterm", **environ})

    def __exit__(self, *exc):
        super().__exit__(*exc)
        os.close(self.terminal)
        os.close(self.inside)
        self.said.close()

    def resize(self, rows, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def key(self, keys):
        os.write(self.terminal, keys.encode())

    def read(self):
        while select.select([self.terminal], [], [], 0)[0]:
            self.text += os.read(self.terminal, 65536).decode(errors="replace")

    def wait_for(self, pattern):
        """Until that has been drawn, behind what was there before."""
        def is_there():
            self.read()
            return re.search(pattern, self.text)

        live.wait_until(pattern, is_there)
        self.text = ""

    def end(self, keys=None, signum=None):
        """(status, what was said, is the terminal as it was?)"""
        if keys:
            self.key(keys)
        if signum:
            self.signal(signum)

        def has_ended():
            self.read()
            return self.process.poll() is not None

        live.wait_until("ended", has_ended)
        self.said.seek(0)
        return (self.process.returncode, self.said.read().decode(),
                termios.tcgetattr(self.inside) == self.before)


class Terminal(unittest.TestCase):
    def assert_ended(self, screen, **how):
        status, said, restored = screen.end(**how)
        self.assertEqual(status, 0, said)
        self.assertIn("switches: produced", said)
        self.assertTrue(restored)
        # The screen that was there before is there again.
        self.assertIn("\x1b[?1049l", screen.text)

    def test_keys(self):
        """Each does something, and q ends it."""
        with Screen() as screen:
            screen.wait_for("sorted by cpu")
            screen.key("h")
            screen.wait_for("any key: back")
            screen.key(" ")
            for keys, shows in (("N", "sorted by pid"), ("M", "sorted by rss"),
                                ("T", "total"), ("P", "cpu"), ("R", "least first"),
                                (">", "total"), ("<", "cpu"), ("i", "without idle"),
                                ("i", "rows"), ("X", "without ended"), ("X", "rows"),
                                ("a", r"\[idle\]"), ("a", "rows"), ("c", "."), ("c", "."), ("Z", "no such key"),
                                ("H", "a row for each thread"), ("b", "cgroup"),
                                ("b", "container"), ("b", "user"), ("b", "by cpu|CPU 0"),
                                ("b", "COMMAND"), ("fpython\n", "only with"), ("f\n", "rows"),
                                ("uroot\n", "of one user"), ("u\n", "rows"),
                                ("uno-such-user\n", "no such user"), ("/python\n", "."),
                                ("/moon on a stick\n", "there is none"), ("d0.05\n", "at least"),
                                ("d0.3\n", "rows"), (" ", "FROZEN"), (" ", "sorted"),
                                ("\x1b[6~", "."), ("\x1b[B", "."), ("V", "."), ("1", ".")):
                # All of the screen: otherwise what has changed is all that is drawn.
                screen.key(keys + REDRAW)
                screen.wait_for(shows)
            self.assert_ended(screen, keys="q")

    def test_signals(self):
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with Screen() as screen:
                screen.wait_for("sorted by cpu")
                self.assert_ended(screen, signum=signum)

    def test_count(self):
        with Screen("-n", 2) as screen:
            self.assert_ended(screen)

    def test_sizes(self):
        """From nearly nothing to a wall."""
        with Screen(rows=24, columns=80) as screen:
            screen.wait_for("sorted by cpu")
            for rows, columns in ((3, 10), (10, 40), (60, 250), (1, 1), (24, 80)):
                screen.resize(rows, columns)
                screen.signal(signal.SIGWINCH)
                screen.wait_for(".")
            screen.key(REDRAW)
            screen.wait_for("sorted")
            self.assert_ended(screen, keys="q")

    def test_small(self):
        """Where there are few lines the head goes, and rows stay."""
        with Screen(rows=8, columns=30) as screen:
            screen.wait_for("sorted by cpu")
            screen.key(REDRAW)
            screen.wait_for("%CPU: tasks(.|\\n)*COMMAND")
            self.assert_ended(screen, keys="q")

    def test_colors(self):
        color = re.compile(r"\x1b\[(\d+;)*3[0-7](;\d+)*m")
        with Screen() as screen:
            screen.wait_for(color)
            self.assert_ended(screen, keys="q")
        for environ, args in (({"NO_COLOR": "1"}, ()), ({}, ("--color", "never"))):
            with Screen(*args, **environ) as screen:
                live.wait_until("a screen", lambda: screen.read() or "sorted" in screen.text)
                self.assertIsNone(color.search(screen.text))
                self.assert_ended(screen, keys="q")

    def test_no_keys(self):
        """Nobody could end a screen whose keys come from a file."""
        with Screen("-n", 1, stdin=subprocess.DEVNULL) as screen:
            status, said, _ = screen.end()
            self.assertEqual(status, 0)
            self.assertIn("the input is no terminal", said)
            self.assertIn("weir top ", screen.text)

    def test_replay(self):
        """A capture's reports go by, stay, come back, and there is a last one."""
        with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
            capture = os.path.join(folder, "capture")
            status, _, said = live.run("record", "-o", capture, "-e", "process,sched",
                                       "--duration", 1)
            self.assertEqual(status, 0, said)
            with Screen("--replay", capture) as screen:
                screen.wait_for("a report; sorted by cpu")
                screen.wait_for("the end of the capture")
                for keys, shows in ((LEFT, "FROZEN"), (20 * RIGHT, "the end of the capture"),
                                    (20 * LEFT, "FROZEN"), (RIGHT, "FROZEN"), ("H", "each thread"),
                                    ("d0.1\n", "FROZEN"), (" ", "a report; sorted"),
                                    ("++-", "a report; sorted|the end")):
                    screen.key(keys + REDRAW)
                    screen.wait_for(shows)
                self.assertEqual(screen.end(keys="q"), (0, "", True))

    def test_unknown_terminal(self):
        for term, why in (("moon", "'moon' is not known"), ("dumb", "'dumb' can't"),
                          ("", "TERM is not set")):
            with Screen(TERM=term) as screen:
                status, said, restored = screen.end()
                self.assertEqual((status, restored), (1, True))
                self.assertIn(why, said)


class Names(unittest.TestCase):
    def test_hostile(self):
        """M4: a name with bytes that a terminal would obey, and that JSON can't have."""
        name = b"\xff\xfe\"\\\n\x1b[31m"
        with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
            path = os.path.join(folder.encode(), name)
            os.symlink(os.path.abspath(os.path.join(live.LOADS, "busy")), path)
            with subprocess.Popen([path, "short", "1", "1"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE) as load:
                load.stdout.readline()
                status, text, _ = live.run("top", "-b", "-n", 1, "-d", 0.2, "-p", load.pid)
                self.assertEqual(status, 0)
                self.assertIn("\\xff\\xfe", text)
                self.assertIn("\\x0a\\x1b[31m", text)
                self.assertNotIn("\x1b", text)
                status, text, _ = live.run("top", "-b", "-n", 1, "-d", 0.2, "-c", "-p", load.pid)
                self.assertIn("\\x0a\\x1b[31m short 1 1", text)
                self.assertNotIn("\x1b", text)
                status, text, _ = live.run("top", "--json", "-n", 1, "-d", 0.2, "-p", load.pid)
                row, = (row for row in json.loads(text)["rows"] if row["kind"] == "tasks")
                self.assertEqual(row["name"], "\\xff\\xfe\"\\\\\n\x1b[31m")
                load.stdin.write(b"\n")
                load.communicate()


class Options(unittest.TestCase):
    """Each option, by what it changes."""

    def report(self, *args):
        status, out, said = live.run("top", "--json", "--once", "-d", 0.3, *args)
        self.assertEqual(status, 0, said)
        return json.loads(out)

    def test_by(self):
        for by in ("process", "thread", "cgroup", "container", "user", "cpu"):
            report = self.report("--by", by)
            self.assertEqual(report["by"], by)
            total = sum(row["time_ns"] for row in report["rows"])
            gaps_and_idle = sum(cpu["idle_ns"] + cpu["gap_ns"] for cpu in report["cpus"])
            tasks = sum(cpu["tasks_ns"] for cpu in report["cpus"])
            self.assertEqual(total, tasks + gaps_and_idle)
        self.assertEqual(self.report("-H")["by"], "thread")

    def test_pid(self):
        report = self.report("-p", f"{os.getpid()},{os.getppid()}")
        self.assertEqual({row["pid"] for row in report["rows"] if row["kind"] == "tasks"},
                         {os.getpid(), os.getppid()})

    def test_no_such_pid(self):
        for pid in (4000000, 9999999):
            status, out, said = live.run("top", "--once", "-p", pid)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(f"there is no process {pid}", said)

    def test_user(self):
        report = self.report("-u", "root")
        self.assertEqual({row["uid"] for row in report["rows"] if row["kind"] == "tasks"}, {0})

    def test_comm(self):
        report = self.report("--comm", "python*")
        self.assertIn(os.getpid(), [row.get("pid") for row in report["rows"]])
        self.assertNotIn(1, [row.get("pid") for row in report["rows"]])

    def test_cgroup(self):
        me, = (row for row in self.report("-p", os.getpid())["rows"] if row["kind"] == "tasks")
        for path in me["cgroup"], cgroups() + me["cgroup"]:
            rows = [row for row in self.report("--cgroup", path)["rows"] if row["kind"] == "tasks"]
            self.assertIn(os.getpid(), [row["pid"] for row in rows])
            self.assertTrue(all(row["cgroup"].startswith(me["cgroup"]) for row in rows))
        rows = self.report("--cgroup", "/no/such/group")["rows"]
        self.assertEqual([row for row in rows if row["kind"] == "tasks"], [])
        out = subprocess.run([live.WEIR, "top", "--once", "-d", "0.2", "--cgroup", "/no/such/group"],
                             stdout=subprocess.PIPE, check=True).stdout
        self.assertIn(b"nobody in cgroup /no/such/group", out)

    def test_container(self):
        """By its id, by how that begins, and nobody else."""
        container = "ab" * 32
        folder = os.path.join(cgroups(), f"docker-{container}.scope")
        try:
            os.mkdir(folder)
        except OSError as error:
            self.skipTest(f"no cgroup can be made: {error}")
        try:
            with subprocess.Popen(["sleep", "1000"]) as child:
                with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as procs:
                    procs.write(str(child.pid))
                for words, pids in ((container, {child.pid}), ("abab", {child.pid}), ("abba", set())):
                    rows = self.report("--container", words)["rows"]
                    self.assertEqual({row["pid"] for row in rows if row["kind"] == "tasks"}, pids)
                child.kill()
        finally:
            os.rmdir(folder)

    def test_exe(self):
        row, = (row for row in self.report("-p", os.getpid())["rows"] if row["kind"] == "tasks")
        self.assertTrue(os.path.samefile(row["exe"], "/proc/self/exe"))

    def test_no_idle(self):
        report = self.report("-i")
        for row in report["rows"]:
            self.assertTrue(row["time_ns"] or row["voluntary"] or row["involuntary"]
                            or row["kind"] == "idle" or row.get("state") == "exited", row)
        self.assertLess(len(report["rows"]), len(self.report()["rows"]))

    def test_rows(self):
        report = self.report("--rows", 3)
        self.assertEqual([row["kind"] in ("idle", "gap") for row in report["rows"]][-3:],
                         [False] * 3)
        self.assertIn(len(report["rows"]), (4, 5))
        self.assertGreater(report["rows_left_out"], 0)

    def test_cmdline(self):
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().decode().rstrip("\0").split("\0")
        row, = (row for row in self.report("-p", os.getpid())["rows"] if row["kind"] == "tasks")
        self.assertEqual(row["cmdline"], words)
        status, out, _ = live.run("top", "--once", "-d", 0.2, "-c", "-p", os.getpid())
        self.assertEqual(status, 0)
        self.assertIn(" ".join(words)[:80], out)

    def test_account(self):
        status, out, _ = live.run("top", "--once", "-d", 0.2, "--account", "--rows", 2)
        self.assertEqual(status, 0)
        self.assertIn("[idle]", out)
        rows = out[out.index("COMMAND"):].splitlines()[1:]
        self.assertEqual(len([row for row in rows if not row.endswith(("[idle]", "[gap]"))]), 2)

    def test_sort(self):
        def column(*args, key):
            return [key(row) for row in self.report(*args)["rows"] if row["kind"] == "tasks"]

        pids = column("-o", "pid", key=lambda row: row["pid"])
        self.assertEqual(pids, sorted(pids))
        times = column(key=lambda row: row["time_ns"])
        self.assertEqual(times, sorted(times, reverse=True))
        sizes = column("--sort", "-rss", key=lambda row: row.get("rss_bytes", 0))
        self.assertEqual(sizes, sorted(sizes))

    def test_count_and_interval(self):
        status, out, said = live.run("top", "--json", "-n", 3, "-d", "0.2")
        self.assertEqual(status, 0)
        reports = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(reports), 3)
        for report in reports:
            self.assertGreaterEqual(elapsed_ns(report), 150_000_000)
        self.assertIn("switches: produced", said)

    def test_batch(self):
        status, out, _ = live.run("top", "-b", "-n", 2, "-d", 0.2, "--tree")
        self.assertEqual(status, 0)
        self.assertEqual(out.count("weir top "), 2)
        self.assertEqual(out.count("adds up to the ns"), 2)
        self.assertNotIn("[idle]", out)
        self.assertIn("COMMAND", out)
        self.assertNotIn("\x1b", out)
        status, out, _ = live.run("top", "--once", "-d", 0.2, "--color", "always")
        self.assertIn("\x1b[", out)

    def test_no_terminal(self):
        status, out, said = live.run("top", "-n", 1, "-d", 0.2)
        self.assertEqual(status, 0)
        self.assertIn("no terminal", said)
        self.assertIn("weir top ", out)

    def test_counters(self):
        """There, or said in a sentence that the machine has none."""
        status, out, said = live.run("top", "--json", "--once", "-d", 0.2, "--counters")
        if status:
            self.assertEqual(status, 1)
            self.assertIn("count", said)
        else:
            self.assertIn("cycles", json.loads(out)["rows"][-1])

    def test_strict(self):
        status, _, said = live.run("top", "--once", "-d", 0.2, "--strict", "--json")
        self.assertIn(status, (0, 3))
        self.assertEqual(status == 3, "lost 0 " not in said or "unseen 0;" not in said)

    def test_wrong(self):
        for args in (["--by", "moon"], ["-o", "moon"], ["-p", "x"], ["-u", "nobody-of-that-name"],
                     ["-d", "0.05"], ["-H", "--by", "cpu"], ["--color", "red"], ["operand"]):
            status, out, said = live.run("top", *args)
            self.assertEqual((status, out), (2, ""), args)
            self.assertTrue(said.startswith("weir top: "), said)

    def test_no_rights(self):
        """One sentence, and nothing else."""
        with live.for_everybody() as weir:
            done = subprocess.run(
                ["setpriv", "--reuid", "65534", "--clear-groups", weir, "top", "--once"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=live.PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)


if __name__ == "__main__":
    cases.main()
