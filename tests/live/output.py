#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where the trace goes: a reader that is slow, stuck or gone, a disk that is full. What did not get out
is counted (G4), memory stays where it was (G5), and Ctrl-C ends it all the same."""
import contextlib
import json
import os
import pty
import resource
import signal
import subprocess
import tempfile
import threading
import unittest

import cases
import live
import proc

CALLS = "sys:getpid"
BUFFER = 1 << 20

# What weir may hold: the stream's bound, and each ring mapped twice; the rest is there at the start.
MEMORY = (64 << 20) + 3 * BUFFER


def flood():
    """Two threads, together 200,000 calls, so 400,000 records: 70 MB of JSON, whatever the machine."""
    return live.Load("calls", "-t", 2, "-n", 100000, "getpid")


class Piped(live.Trace):
    """It writes to a pipe, whose reader is the test."""

    def __init__(self, *args, **popen):
        # Of two -o, the second counts.
        super().__init__("-o", "-", *args, stdout=subprocess.PIPE, **popen)

    def read_events(self):
        """How many there are in what is left in the pipe; each line of it is whole."""
        count = 0
        for line in self.process.stdout:
            count += json.loads(line)["event"] not in ("gap", "clock_step", "watermark")
            assert line.endswith(b"\n"), line
        return count


class Reader(threading.Thread):
    """Takes bytes slowly until told to stop, and keeps them."""

    def __init__(self, pipe, per_tenth):
        super().__init__()
        self.pipe, self.per_tenth, self.bytes = pipe, per_tenth, b""
        self.done = threading.Event()

    def run(self):
        while not self.done.wait(0.1):
            self.bytes += os.read(self.pipe.fileno(), self.per_tenth)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.done.set()
        self.join()


class Slow(unittest.TestCase):
    """L5: pipes and terminals that do not take what they should."""

    def interrupt(self, trace):
        """Ctrl-C; the account is printed and closes."""
        trace.signal(signal.SIGINT)
        self.assertEqual(trace.end(), 0)
        last = json.loads(trace.said().splitlines()[-1])
        self.assertTrue(last["closes"])
        ledger = trace.ledger()
        live.assert_account(self, ledger)
        return ledger

    def test_slow(self):
        """10 KB a second."""
        with flood() as load, \
                Piped("-e", CALLS, "-p", load.pid, "--buffer", BUFFER) as trace:
            at_start = proc.high_water(trace.pid)
            with Reader(trace.process.stdout, 1000) as reader:
                load.run()
                at_end = proc.high_water(trace.pid)
                ledger = self.interrupt(trace)
            rest = reader.bytes + trace.process.stdout.read()
        self.assertTrue(rest.endswith(b"\n"))
        events = [json.loads(line)["event"] for line in rest.splitlines()]
        self.assertEqual(sum(event != "gap" for event in events), ledger["delivered"])
        self.assertGreater(live.lost(ledger, "output"), 0)
        self.assertGreater(live.lost(ledger, "reserve_failed"), 0)
        self.assertLess(at_end, at_start + MEMORY)

    def test_slow_and_only_so_many(self):
        """-n: all of them come, as long as there is somebody who takes them."""
        with flood() as load, \
                Piped("-e", CALLS, "-p", load.pid, "-n", 3000) as trace, \
                Reader(trace.process.stdout, 16000) as reader:
            load.go()
            self.assertEqual(trace.end(), 0)
            ledger = trace.ledger()
            live.wait_until("read", lambda: reader.bytes.count(b"\n") >= 3000)
        self.assertEqual(live.lost(ledger, "output"), 0)
        self.assertEqual(ledger["delivered"], 3000)

    def test_stuck(self):
        """L5: nobody reads at all; Ctrl-C then ends it, though nobody reads yet."""
        with flood() as load, \
                Piped("-e", CALLS, "-p", load.pid, "--buffer", BUFFER) as trace:
            at_start = proc.high_water(trace.pid)
            load.run()
            at_end = proc.high_water(trace.pid)
            ledger = self.interrupt(trace)
            self.assertEqual(trace.read_events(), ledger["delivered"])
        self.assertGreater(live.lost(ledger, "output"), 0)
        self.assertGreater(live.lost(ledger, "reserve_failed"), 0)
        self.assertLess(at_end, at_start + MEMORY)
        print(f"{ledger['produced']} produced, {ledger['delivered']} delivered, "
              f"{at_start >> 10} KiB at the start, {at_end >> 10} KiB at most")

    def test_stuck_and_over(self):
        """-d ends it, though nobody reads."""
        with live.Load("calls", "-m", 60000, "-r", 20000, "getpid") as load:
            load.go()
            with Piped("-e", CALLS, "-p", load.pid, "-d", "1") as trace:
                self.assertEqual(trace.end(), 0)
                ledger = trace.ledger()
                live.assert_account(self, ledger)
                self.assertEqual(trace.read_events(), ledger["delivered"])
        self.assertGreater(live.lost(ledger, "output"), 0)

    def test_stuck_terminal(self):
        """As after Ctrl-S."""
        keyboard, screen = pty.openpty()
        try:
            with flood() as load, \
                    live.Trace("-o", "-", "-e", CALLS, "-p", load.pid, stdout=screen) as trace:
                load.run()
                ledger = self.interrupt(trace)
        finally:
            os.close(keyboard)
            os.close(screen)
        self.assertGreater(live.lost(ledger, "output"), 0)

    def test_stuck_and_read_again(self):
        """All that the rings did not lose comes."""
        with flood() as load, \
                Piped("-e", CALLS, "-p", load.pid, "--buffer", BUFFER) as trace:
            made = sum(count for _, _, count in load.run()["calls"])
            events = trace.read_events()
            self.assertEqual(trace.end(), 0)
            ledger = trace.ledger()
        live.assert_account(self, ledger)
        self.assertEqual(ledger["lost"].keys(), {"reserve_failed"})
        self.assertEqual(events, ledger["delivered"])
        self.assertEqual(live.calls_accounted(ledger), 2 * made)

    def test_closed(self):
        """As by `| head -1`: it has what it wanted. No message, and no trace that goes on."""
        with live.Load("calls", "-m", 60000, "-r", 1000, "getpid") as load:
            load.go()
            with Piped("-e", CALLS, "-p", load.pid) as trace:
                trace.process.stdout.readline()
                trace.process.stdout.close()
                self.assertEqual(trace.end(), 0)
                ledger = trace.ledger()
                said = trace.said().splitlines()
        live.assert_account(self, ledger)
        self.assertGreater(live.lost(ledger, "output"), 0)
        self.assertEqual(len(said), 2, said)
        self.assertIn("tracing", said[0])
        self.assertTrue(json.loads(said[1])["closes"])

    def without(self, descriptor, *args):
        """(status, standard error) of a `weir trace` that begins without it."""
        done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {descriptor}>&-', live.WEIR, "trace",
                               *live.words(args)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False, timeout=live.PATIENCE_S)
        return done.returncode, done.stderr.decode()

    def test_there_is_no_stdout(self):
        """Said before any work, and nothing that weir opens is taken for it."""
        self.assertEqual(self.without(1, "-p", os.getpid()),
                         (1, "weir trace: the output: Bad file descriptor\n"))
        self.assertEqual(self.without(1, "-c", "-f", "none", "-p", os.getpid())[0], 1)
        # Where nothing is written there, it is not missed.
        status, said = self.without(1, "-f", "none", "-d", "20ms")
        self.assertEqual(status, 0, said)
        with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
            there = os.path.join(folder, "there")
            self.assertEqual(self.without(2, "touch", there), (125, ""))
            self.assertFalse(os.path.exists(there))

    def test_that_can_only_be_read(self):
        with open("/dev/null", "rb") as null:
            done = subprocess.run([live.WEIR, "trace", "-d", "20ms"], stdin=null, stdout=null,
                                  stderr=subprocess.PIPE, check=False, timeout=live.PATIENCE_S)
        self.assertEqual((done.returncode, done.stderr),
                         (1, b"weir trace: the output: Bad file descriptor\n"))


@contextlib.contextmanager
def small_disk():
    """A folder with room for 1 MiB, in a mount namespace that goes with its only process."""
    with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
        script = 'mount -t tmpfs -o size=1M none "$0" && echo ready && read wait'
        with live.Child(["unshare", "--mount", "sh", "-c", script, folder],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            if holder.process.stdout.readline() != b"ready\n":
                raise unittest.SkipTest("no file system can be mounted")
            yield f"/proc/{holder.pid}/root{folder}"


class Disk(unittest.TestCase):
    def fill(self, path, error="No space left on device", limit=None):
        """A trace of more than there is room for, by the disk or by RLIMIT_FSIZE: its ledger."""
        with live.Load("calls", "-m", 60000, "-r", 20000, "getpid") as load, \
                live.Trace("-o", path, "-e", CALLS, "-p", load.pid) as trace:
            if limit:
                resource.prlimit(trace.pid, resource.RLIMIT_FSIZE, (limit, limit))
            load.go()
            self.assertEqual(trace.end(), 1)
            ledger, said = trace.ledger(), trace.said().splitlines()
        live.assert_account(self, ledger)
        self.assertEqual(said[1], f"weir trace: {path}: {error}")
        self.assertTrue(json.loads(said[2])["closes"])
        self.assertEqual(len(said), 3)
        self.assertGreater(live.lost(ledger, "output"), 0)
        return ledger

    def assert_whole(self, folder, **why):
        """The file ends with a whole line, and what is not in it is counted."""
        path = os.path.join(folder, "trace")
        ledger = self.fill(path, **why)
        with open(path, "rb") as trace:
            lines = trace.readlines()
        self.assertTrue(lines[-1].endswith(b"\n"))
        events = sum(json.loads(line)["event"] != "gap" for line in lines)
        self.assertGreater(events, 1000)
        self.assertEqual(events, ledger["delivered"])

    def test_full(self):
        with small_disk() as folder:
            self.assert_whole(folder)

    def test_limit(self):
        """As a full disk: SIGXFSZ would end it without an account."""
        with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
            self.assert_whole(folder, error="File too large", limit=1 << 20)

    def test_full_from_the_start(self):
        self.assertEqual(self.fill("/dev/full")["delivered"], 0)

    def test_no_room_for_the_ledger(self):
        with small_disk() as folder:
            path = os.path.join(folder, "ledger")
            with open(os.path.join(folder, "rest"), "wb") as rest, \
                    contextlib.suppress(OSError), contextlib.closing(rest):
                rest.write(bytes(2 << 20))
            status, _, said = live.run("trace", "-f", "none", "-d", "50ms", "--ledger", path)
        self.assertEqual(status, 1)
        self.assertIn(f"weir trace: {path}: No space left on device\n", said)
        self.assertIn("produced ", said)

    def test_no_such_folder(self):
        """Said before any work: nothing was traced that is lost now."""
        for option in ("-o", "--ledger"):
            with self.subTest(option):
                status, out, said = live.run("trace", option, "/nowhere/at/all", "-d", "50ms")
                self.assertEqual((status, out), (1, ""))
                self.assertEqual(said, "weir trace: /nowhere/at/all: No such file or directory\n")


if __name__ == "__main__":
    cases.main()
