#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""System calls as people see them: whole, with what their descriptors stand for (-y), counted (-c); and
in JSON, where `weir verify` and the schemas agree with them."""
import collections
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import live



class Case(unittest.TestCase):
    def good(self, *args):
        """(standard output, standard error) of a `weir trace` that has to succeed."""
        status, out, said = live.run("trace", *args)
        self.assertEqual(status, 0, said)
        return out, said


class Pairs(Case):
    """--pair: one object a call, and the account still closes."""

    def test_each_call_once(self):
        with live.Load("calls", "-t", 4, "-n", 5000, "getpid") as load, \
                live.Trace("--pair", "-e", "sys:getpid", "-p", load.pid) as trace:
            told = {tid: calls for tid, _, calls in load.run()["calls"]}
            trace.end()
            self.assertIn("all promises kept, and the ledger agrees", trace.verify())
            got = collections.Counter()
            for line in trace.events("syscall", syscall="getpid"):
                self.assertEqual(line["result"], line["pid"])
                self.assertEqual(line["dur_ns"], int(line["ts"]) - int(line["enter"]))
                got[line["tid"]] += 1
            self.assertEqual(trace.ledger()["delivered"], 2 * sum(told.values()))
        for tid, calls in told.items():
            self.assertEqual(got[tid], calls)

    def test_a_flood(self):
        """What gaps cut off says so; verify finds each half."""
        with live.Load("calls", "-t", 8, "-n", 30000, "getpid") as load, \
                live.Trace("--pair", "-e", "sys:getpid", "-p", load.pid, "--buffer", "64k",
                           "--watermarks") as trace:
            load.run()
            trace.end()
            self.assertIn("the ledger agrees", trace.verify())
            calls, ledger = trace.events("syscall"), trace.ledger()
        self.assertGreater(live.lost(ledger), 0)
        # Enters are the larger records, so it is they that find no room.
        self.assertTrue(any(line["enter"] is None for line in calls))
        self.assertTrue(any(line["dur_ns"] is not None for line in calls))
        halves = sum(("seq" in line) + (line["enter"] is not None) for line in calls)
        self.assertEqual(halves, ledger["delivered"])

    def test_schema(self):
        out, _ = self.good("--pair", "-y", "-f", "json", "-o", "-", "--", "sh", "-c",
                           "cd /; cat etc/hostname | cat >/dev/null; sleep 9 & exec true")
        live.assert_valid(self, "trace", text=out.encode())

    @staticmethod
    def wait_until_asleep(pid):
        """In the call that it is to be found in: it has its own name, and waits."""
        def asleep():
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                return re.search(r"\((sleep|cat)\) S", stat.read())
        live.wait_until("asleep", asleep)

    def test_from_before(self):
        """A call that returns during the trace, of a thread that was in it before."""
        with live.Child(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as cat:
            self.wait_until_asleep(cat.pid)
            with live.Trace("-y", "-e", "sys:read", "-p", cat.pid, form="text") as trace, \
                    live.Trace("--pair", "-e", "sys:read", "-p", cat.pid) as objects:
                cat.process.communicate(b"word\n", timeout=live.PATIENCE_S)
                trace.end()
                objects.end()
                objects.verify()
                with open(trace.path, encoding="ascii") as text:
                    first, second = text.read().splitlines()
                before, after = objects.events("syscall")
                self.assertEqual(objects.ledger()["delivered"], 3)
        self.assertRegex(first, r" read\(fd: 0<pipe:\[[0-9]+\]>, buf: 0x[0-9a-f]+, count: [0-9]+\) = 5 "
                                r"<over [0-9.]+[mu]?s, from before the trace>$")
        self.assertRegex(second, r" = 0 <[0-9.]+[mu]?s>$")
        self.assertEqual((before["before"], before["enter"], before["result"]), (True, None, 5))
        self.assertEqual(before["args"], after["args"])
        self.assertNotIn("before", after)

    def test_unfinished(self):
        """What is still in a call when the trace ends."""
        with subprocess.Popen(["sleep", "60"]) as sleep:
            self.wait_until_asleep(sleep.pid)
            try:
                with live.Trace("--pair", "-e", "sys:clock_nanosleep,nanosleep", "-p",
                                sleep.pid) as trace:
                    trace.stop()
                    trace.verify()
                    call, = trace.events("syscall")
            finally:
                sleep.kill()
        # It was entered before the trace: /proc tells in which call it is, but not since when.
        self.assertEqual((call["before"], call["unfinished"], call["enter"]), (True, True, None))
        self.assertNotEqual(call["args"]["rqtp"], "0x0")
        script = 'sleep 60 & echo $! >&2; until grep -qs "(sleep) S" /proc/$!/stat; do :; done; sleep 0.5'
        with live.Trace("--pair", "-e", "sys:clock_nanosleep", "--no-wait", "--", "sh", "-c",
                        script) as trace:
            trace.end()
            trace.verify()
            unfinished = trace.events("syscall", unfinished=True)
            returned = trace.events("syscall", result=0)
            os.kill(int(re.search(r"^([0-9]+)$", trace.said(), re.MULTILINE)[1]), 9)
        self.assertEqual(len(unfinished), 1)
        self.assertIsNone(unfinished[0]["dur_ns"])
        self.assertNotIn("seq", unfinished[0])
        self.assertEqual(len(returned), 1)
        self.assertGreaterEqual(returned[0]["dur_ns"], 500000000)


class Sentences(Case):
    def test_a_life(self):
        status, _, said = live.run("trace", "--time", "none", "-e", "process,signal", "--", "sh",
                                   "-c", "sh -c 'kill -TERM $$'; exit 3")
        self.assertEqual(status, 3)
        self.assertRegex(said, r"(?m) exec \S*/sh \[\"sh\" \"-c\" \"sh -c ")
        self.assertRegex(said, r"(?m) fork -> [0-9]+$")
        self.assertRegex(said, r"(?m) signal SIGTERM -> sh\[[0-9]+\] SI_USER$")
        # A signal that ends a process is taken by each thread as this one.
        self.assertRegex(said, r"(?m) signal taken: fatal$")
        self.assertRegex(said, r"(?m) killed by SIGTERM$")
        self.assertRegex(said, r"(?m) signal SIGCHLD -> sh\[[0-9]+\] CLD_KILLED")
        self.assertRegex(said, r"(?m) exited 3$")

    def test_nothing_unprintable(self):
        with tempfile.TemporaryDirectory(prefix="weir-live-") as path:
            name = os.path.join(path.encode(), b"\x1b[2J\x9b\xff\n\r\"\\")
            shutil.copy("/bin/true", name)
            done = subprocess.run([live.WEIR, "trace", "-y", "--", name, b"\x1b]0;x\x07", name],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertRegex(done.stderr, rb"^[\x20-\x7e\n]*$")
        self.assertIn(rb"\x1b[2J\x9b\xff\x0a\x0d\"\\", done.stderr)


OPENS = """
import os, socket, sys
os.chdir(sys.argv[1])
fd = os.open("file", os.O_RDWR | os.O_CREAT)
os.write(fd, b"1")
copy = os.dup(fd)
os.close(fd)
os.write(copy, b"2")
s = socket.socket()
s.connect(("127.0.0.1", int(sys.argv[2])))
s.send(b"3")
if not os.fork():
    os.write(copy, b"4")
    os._exit(0)
os.wait()
os.set_inheritable(copy, True)
os.execvp("sh", ["sh", "-c", "printf 5 >&%d" % copy])
"""


class Descriptors(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-live-")
        self.addCleanup(self.folder.cleanup)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.port = self.listener.getsockname()[1]
        self.command = [sys.executable, "-c", OPENS, self.folder.name, str(self.port)]

    def test_text(self):
        """Through dup, fork and exec; the calls that -y itself needs are not shown."""
        _, said = self.good("-y", "-e", "sys:write,sendto", "--", *self.command)
        path = re.escape(os.path.join(self.folder.name, "file"))
        written = re.findall(rf" write\(fd: [0-9]+<{path}>, .*, count: 1\) = 1 <", said)
        self.assertEqual(len(written), 4, said)
        self.assertRegex(said, rf" sendto\(fd: [0-9]+<tcp->127\.0\.0\.1:{self.port}>, ")
        self.assertNotRegex(said, r" (openat|close|dup|connect|socket)\(")

    def test_results_and_directories(self):
        _, said = self.good("-y", "-e", "sys:openat,socket", "--", *self.command)
        folder = re.escape(self.folder.name)
        self.assertRegex(said, rf" openat\(dfd: AT_FDCWD<{folder}>, filename: \"file\", .*\)"
                               rf" = [0-9]+<{folder}/file> <")
        self.assertRegex(said, r" socket\(.*\) = [0-9]+<tcp> <")

    def test_pipes(self):
        """Their numbers lie in memory: those that are still open when weir looks have their names."""
        script = ("import os, socket; os.read(0, 1); r, w = os.pipe(); a, b = socket.socketpair();"
                  "os.read(0, 1); os.write(w, b'1'); os.read(r, 1); a.send(b'2')")
        with live.Child(["/usr/bin/python3", "-c", script], stdin=subprocess.PIPE) as child, \
                live.Trace("-y", "-e", "sys:write,read,sendto,pipe2,socketpair", "-p", child.pid,
                           form="text") as trace:
            def lines():
                with open(trace.path, encoding="ascii") as text:
                    return text.read()
            child.process.stdin.write(b"1")
            child.process.stdin.flush()
            live.wait_until("opened", lambda: " socketpair(" in lines())
            child.process.communicate(b"2", timeout=live.PATIENCE_S)
            trace.end()
            lines = lines()
        written, = re.findall(r" write\(fd: [0-9]+<(pipe:\[[0-9]+\])>, buf: 0x[0-9a-f]+, count: 1\)", lines)
        self.assertIn(f"<{written}>, buf: ", lines.partition(" write(")[2].partition(" read(")[2])
        self.assertRegex(lines, r" sendto\(fd: [0-9]+<socket:\[[0-9]+\]>, ")

    def test_json(self):
        out, _ = self.good("-y", "-e", "sys:write,openat", "-f", "json", "-o", "-", "--", *self.command)
        calls = [json.loads(line) for line in out.splitlines()]
        self.assertEqual({call["event"] for call in calls}, {"syscall"})  # -y implies --pair
        path = os.path.join(self.folder.name, "file")
        self.assertEqual(sum(call["syscall"] == "write" and call["fds"] == {"fd": path}
                             for call in calls if "fds" in call), 4)
        self.assertIn({"dfd": self.folder.name, "result": path},
                      [call.get("fds") for call in calls if call["syscall"] == "openat"])

    def test_a_process_that_runs(self):
        """What it has open is looked up once."""
        with open(os.path.join(self.folder.name, "before"), "wb") as file, \
                subprocess.Popen(["sh", "-c", "read x; echo $x; echo $x"], stdin=subprocess.PIPE,
                                 stdout=file) as child:
            live.wait_until("reading", lambda: "pipe" in os.readlink(f"/proc/{child.pid}/fd/0"))
            with live.Trace("-y", "-e", "sys:write", "-p", child.pid, form="text") as trace:
                child.communicate(b"word\n")
                trace.end()
                with open(trace.path, encoding="ascii") as text:
                    lines = text.read()
            self.assertEqual(lines.count(f" write(fd: 1<{file.name}>, "), 2, lines)

    def test_without(self):
        _, said = self.good("-e", "sys:write", "--", *self.command)
        self.assertNotIn("<" + self.folder.name, said)
        self.assertIn(" write(fd: ", said)


CLEAR = b"\x1b[H\x1b[J"


class Counted(Case):
    def rows(self, text):
        """{call: (calls, errors)} of a table."""
        return {name: (int(calls), int(errors)) for calls, errors, name in
                re.findall(r"(?m)^ *[0-9.-]+ +([0-9]+) +([0-9]+) .* (\S+)$", text)}

    def test_against_the_load(self):
        for option in ("-c", "-C"):
            with live.Load("calls", "-t", 2, "-n", 3000, "getpid") as load, \
                    live.Trace(option, "-e", "sys:getpid,openat", "-p", load.pid,
                               form="text") as trace:
                load.run()
                trace.end()
                with open(trace.path, encoding="ascii") as text:
                    lines, _, table = text.read().partition("%time   calls errors ")
                self.assertEqual(trace.ledger()["closes"], True)
            self.assertEqual(self.rows(table)["getpid"], (6000, 0), table)
            self.assertEqual(self.rows(table)[f"calls[{load.pid}]"][0],
                             self.rows(table)["all"][0])
            self.assertEqual(lines.count(" getpid("), 6000 if option == "-C" else 0)

    def test_errors_and_times(self):
        """Against the same calls as lines."""
        command = ["sh", "-c", "sleep 0.2; cat /nope /nope/x"]
        status, _, said = live.run("trace", "-C", "-e", "sys:openat,clock_nanosleep", "--", *command)
        self.assertEqual(status, 1)
        lines, _, table = said.partition("%time   calls errors ")
        opened = re.findall(r" openat\(.*\) = (\S+)", lines)
        self.assertEqual(self.rows(table)["openat"], (len(opened), opened.count("-1")))
        self.assertGreaterEqual(opened.count("-1"), 2)
        slept = re.search(r"(?m)^ *[0-9.]+ +1 +0 +([0-9.]+)(m?s) +\1\2 .* clock_nanosleep$", table)
        self.assertTrue(slept, table)
        self.assertGreaterEqual(float(slept[1]) * {"ms": 1, "s": 1000}[slept[2]], 200)
        self.assertLess(table.index("clock_nanosleep"), table.index("openat"))  # by time
        of_calls, _, of_processes = table.partition("\n\n")
        shares = [float(share) for share in re.findall(r"(?m)^ *([0-9]+\.[0-9]) ", of_calls)]
        self.assertEqual((len(shares), shares[-1]), (3, 100))
        self.assertAlmostEqual(shares[0] + shares[1], 100, delta=0.11)
        shares = re.findall(r"(?m)^ *([0-9]+\.[0-9]) ", of_processes)
        self.assertAlmostEqual(sum(map(float, shares)), 100, delta=0.05 * len(shares) + 0.01)

    def test_json(self):
        out, _ = self.good("-c", "-f", "json", "-o", "-", "--", "cat", "/dev/null")
        live.assert_valid(self, "summary", text=out.encode())
        summary = json.loads(out)
        calls = {row["call"]: row for row in summary["calls"]}
        self.assertEqual(calls["exit_group"]["timed"], 0)
        self.assertIsNone(calls["exit_group"]["total_ns"])
        self.assertLessEqual(calls["openat"]["p50_ns"], calls["openat"]["p99_ns"])
        self.assertLessEqual(calls["openat"]["p99_ns"], calls["openat"]["max_ns"])
        self.assertEqual([row["comm"] for row in summary["processes"]], ["cat"])
        self.assertTrue(summary["ledger"]["closes"])
        self.assertEqual(summary["ledger"]["delivered"],
                         sum(row["calls"] + row["timed"] for row in summary["calls"]))

    def test_lines_and_json(self):
        status, _, said = live.run("trace", "-C", "-f", "json", "--", "true")
        self.assertEqual(status, 2)
        self.assertIn("in JSON there is -c", said)

    def test_live(self):
        """On a terminal it is drawn again each second, and fits."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        with live.Load("calls", "-m", 60000, "-r", 2000, "getpid") as load:
            load.go()
            with subprocess.Popen([live.WEIR, "trace", "-c", "-p", str(load.pid)],
                                  stdout=theirs, stderr=subprocess.DEVNULL) as weir:
                os.close(theirs)
                screens = self.screens(ours, 4, lambda: weir.send_signal(signal.SIGINT))
                self.assertEqual(weir.wait(), 0)
        self.assertEqual(screens[0], "")
        for screen in screens[1:-1]:
            self.assertIn("produced ", screen)  # the account, beside it
            self.assertLessEqual(screen.count("\n"), 24)
        counts = [int(re.search(r" ([0-9]+) +0 .*getpid", screen)[1]) for screen in screens[2:]]
        self.assertEqual(counts, sorted(counts))
        self.assertLess(counts[0], counts[-1])

    @staticmethod
    def screens(fd, enough, stop):
        """All that come until the other end is closed; `stop` is called when there are so many."""
        text, end, stopped = b"", time.monotonic() + live.PATIENCE_S, False
        while time.monotonic() < end:
            if not select.select([fd], [], [], 1)[0]:
                continue
            try:
                text += os.read(fd, 65536)
            except OSError:  # the other end is closed
                break
            if not stopped and text.count(CLEAR) > enough:
                stop()
                stopped = True
        return [screen.decode() for screen in text.split(CLEAR)]


if __name__ == "__main__":
    cases.main()
