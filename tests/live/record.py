#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""weir record: what was produced is in the capture, or accounted for; other readers open it; and what
happens to the disk, the process or the terminal costs no more than it has to."""
import contextlib
import json
import os
import pty
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import cases
import ctf
import live
from output import small_disk

CALLS = "sys:getpid"

# weir's own events.
OWN = {"task", "mark", "part", "account", "file", "gap", "clock_step"}


class Capture(live.Accounted):
    """`weir record`, which records when this returns. Left out of `args`: -o, --ledger, -v."""

    def __init__(self, *args, folder=None, dir=None, **popen):
        own = live.new_folder()
        self.dir = dir or os.path.join(folder or own, "capture")
        super().__init__(own, "recording; ", "record", "-o", self.dir, *args, **popen)

    def part(self):
        """The number of the newest part."""
        return max(ctf.parts(self.dir), default=0)

    def has_events(self):
        """Are there files of CPUs in the newest part?"""
        return any(name.startswith("cpu") for name in ctf.files(self.dir, self.part()))

    def rotate(self):
        before = self.part()
        live.wait_until("events", self.has_events)
        self.signal(signal.SIGHUP)
        live.wait_until("another part", lambda: self.part() > before)


def of_probes(events):
    return [event for event in events if event.name not in OWN]


class Whole(unittest.TestCase):
    def assert_all_there(self, capture, made):
        """`made` calls, nothing lost; both readers find all of it."""
        ledger = capture.ledger()
        live.assert_account(self, ledger)
        self.assertEqual(live.lost(ledger), 0)
        ctf.check(self, capture.dir, checksums=True)
        events, discarded = ctf.read_both(self, capture.dir)
        counts = ctf.counts(events)
        self.assertEqual(discarded, 0)
        self.assertEqual(counts["sys_enter"], made)
        self.assertEqual(counts["sys_exit"], made)
        return events, ledger

    def test_every_call(self):
        """The same events as were made, and nothing but these delivered."""
        with live.Load("calls", "-t", 4, "-n", 2000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid) as capture:
            told = load.run()["calls"]
            self.assertEqual(capture.end(), 0)
            events, ledger = self.assert_all_there(capture, sum(count for _, _, count in told))
        for tid, _, count in told:
            mine = [event for event in events if event.name.startswith("sys_")
                    and ctf.number(event, "tid") == tid]
            self.assertEqual([event.name for event in mine], ["sys_enter", "sys_exit"] * count)
        # Life records are kept for the process table, whatever was asked for.
        self.assertEqual(len(ctf.by_name(events, "exit")), 5)
        self.assertEqual(ledger["delivered"], ctf.counts(events)["sys_enter"] * 2)
        self.assertEqual(ctf.number(ctf.by_name(events, "mark")[-1], "closed"), 1)

    def test_as_trace_has_it(self):
        """A trace of the same load at the same time: the same events, thread by thread."""
        with live.Load("calls", "-t", 2, "-n", 500, "uname") as load, \
                live.Trace("-e", "sys,process,signal", "-p", load.pid) as trace, \
                Capture("-e", "sys,process,signal", "-p", load.pid) as capture:
            load.run()
            self.assertEqual((capture.end(), trace.end()), (0, 0))
            events, _ = ctf.read_both(self, capture.dir)
            lines = [line for line in trace.lines() if line["event"] in ("sys_enter", "sys_exit")]
        self.assertGreater(len(lines), 2000)
        for tid in {line["tid"] for line in lines}:
            theirs = [(line["event"], line["nr"]) for line in lines if line["tid"] == tid]
            ours = [(event.name, ctf.number(event, "nr")) for event in events
                    if event.name.startswith("sys_") and ctf.number(event, "tid") == tid]
            self.assertEqual(ours, theirs)

    def test_all_groups(self):
        """Every class that a machine makes by itself, with a load that makes them."""
        script = "for i in 1 2 3; do sleep 0.01 & done; wait; kill -USR1 $$ || :"
        with Capture("-e", "process,sched,signal,sys", "--", "bash", "-c",
                     "trap : USR1; " + script) as capture:
            self.assertEqual(capture.end(), 0)
            live.assert_account(self, capture.ledger())
            ctf.check(self, capture.dir)
            counts = ctf.counts(ctf.read_both(self, capture.dir)[0])
        for name in ("fork", "exec", "exit", "sys_enter", "sys_exit", "sched_switch", "sched_wakeup",
                     "signal", "task", "part", "mark", "account", "file"):
            self.assertGreater(counts[name], 0, name)

    def test_order(self):
        """What other readers make of it stands in the order of weir's own, stamp by stamp."""
        with live.Load("calls", "-t", 4, "-n", 2000, "getpid") as load, \
                Capture("-e", "sched,sys,signal", "-p", load.pid) as capture:
            load.run()
            self.assertEqual(capture.end(), 0)
            status, out, said = live.run("replay", "--format", "json", capture.dir)
            self.assertEqual(status, 0, said)
            for reader in ctf.READERS:
                events, _ = ctf.read(self, capture.dir, reader)
                theirs = [(event.stamp, event.name) for event in events
                          if event.name.startswith(("s", "late:s"))]
                ours = [(int(line["ts"]), line["event"])
                        for line in map(json.loads, out.splitlines())]
                stamps = [stamp for stamp, _ in ours]
                self.assertEqual(stamps, sorted(stamps))
                # Only of equal stamps on two CPUs either may come first.
                self.assertEqual(sorted(theirs), sorted(ours))
                self.assertGreater(len(ours), 16000)

    def test_bytes(self):
        """M4: names and paths are bytes."""
        comm, path = b'\xff\xfe"\\\n', b"/nowhere/\x80\n"
        script = ("import ctypes, os; ctypes.CDLL(None).prctl(15, %r, 0, 0, 0)\n"
                  "try: os.open(%r, 0)\nexcept OSError: pass" % (comm, path))
        with Capture("-e", "process,sys", "--", sys.executable, "-c", script) as capture:
            self.assertEqual(capture.end(), 0)
            self.assertEqual(live.lost(capture.ledger()), 0)
            ctf.check(self, capture.dir)
            ctf.read_both(self, capture.dir)
            for reader in ctf.READERS:
                out = subprocess.run([reader, capture.dir], stdout=subprocess.PIPE, check=True).stdout
                self.assertIn(b"/nowhere/\x80", out)
                self.assertIn(b"\xff\xfe", out)
            with open(os.path.join(capture.dir, "metadata"), "rb") as metadata:
                metadata.read().decode()  # UTF-8, whatever the command line was

    def test_command(self):
        """Its status; and nothing of what weir did for it."""
        with Capture("--", "sh", "-c", "exit 7") as capture:
            self.assertEqual(capture.end(), 7)
            events, _ = ctf.read_both(self, capture.dir)
        enters = ctf.by_name(events, "sys_enter")
        self.assertEqual(ctf.number(enters[0], "nr"), 59 if os.uname().machine == "x86_64" else 221)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "capture")
            self.assertEqual(live.run("record", "-o", path, "/nowhere/at/all")[0], 127)
            self.assertEqual(live.run("record", "-o", path, folder)[0], 126)
            self.assertFalse(os.path.exists(path))


class Loss(unittest.TestCase):
    def test_small_buffer(self):
        """What the rings lost is told to every reader, and exactly in gaps."""
        with live.Load("calls", "-t", 2, "-n", 300000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid, "--buffer", "64k") as capture:
            capture.signal(signal.SIGSTOP)
            load.run()
            capture.signal(signal.SIGCONT)
            self.assertEqual(capture.end(), 0)
            ledger = capture.ledger()
            live.assert_account(self, ledger)
            ctf.check(self, capture.dir)
            events, discarded = ctf.read_both(self, capture.dir)
        gaps = ctf.by_name(events, "gap")
        lost = live.lost(ledger)
        self.assertGreater(live.lost(ledger, "reserve_failed"), 0)
        self.assertEqual(sum(ctf.number(gap, "lost") for gap in gaps), lost)
        self.assertEqual(discarded, lost)
        for gap in gaps:
            self.assertLessEqual(ctf.number(gap, "from_ns"), ctf.number(gap, "to_ns"))
        counts = ctf.counts(events)
        self.assertEqual(counts["sys_enter"] + counts["sys_exit"], ledger["delivered"])
        self.assertEqual(live.calls_accounted(ledger), 2 * 600000)


class Parts(unittest.TestCase):
    def alone(self, capture, part, folder):
        """A folder with that part and the metadata, and nothing else."""
        path = os.path.join(folder, str(part))
        os.mkdir(path, 0o700)
        for name in ["metadata"] + ctf.files(capture.dir, part):
            shutil.copy2(os.path.join(capture.dir, name), path)
        return path

    def test_hangup(self):
        """SIGHUP begins another part, and each can be read without the others."""
        with live.Load("calls", "-m", 60000, "-r", 2000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid) as capture:
            load.go()
            for _ in range(3):
                capture.rotate()
            self.assertEqual(capture.stop(), 0)
            ledger = capture.ledger()
            live.assert_account(self, ledger)
            ctf.check(self, capture.dir)
            self.assertEqual(ctf.parts(capture.dir), [1, 2, 3, 4])
            whole = ctf.counts(ctf.read_both(self, capture.dir)[0])
            total = ctf.counts([])
            with tempfile.TemporaryDirectory() as folder:
                for part in ctf.parts(capture.dir):
                    events, _ = ctf.read_both(self, self.alone(capture, part, folder))
                    total += ctf.counts(events)
                    mine = [task for task in ctf.by_name(events, "task")
                            if ctf.number(task, "pid") == load.pid]
                    # The load's thread is there from its go() on.
                    self.assertEqual(len(mine), 1 if part == 1 else 2)
                    self.assertTrue(all('comm = "calls"' in task.text for task in mine))
                    closed = [ctf.number(mark, "closed") for mark in ctf.by_name(events, "mark")]
                    self.assertEqual(closed.count(1), part == 4)
        self.assertEqual(total, whole)
        self.assertEqual(whole["sys_enter"] + whole["sys_exit"], ledger["delivered"])

    def test_max_size(self):
        """The oldest goes; what is left is a capture, also where there was loss."""
        for more in ((), ("--buffer", "64k")):
            with self.subTest(more):
                self.check_max_size(8 << 20, *more)

    def check_max_size(self, limit, *args):
        with live.Load("calls", "-t", 2, "-n", 300000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid, "--max-size", limit, *args) as capture:
            load.run()
            self.assertEqual(capture.end(), 0)
            ledger = capture.ledger()
            live.assert_account(self, ledger)
            ctf.check(self, capture.dir)
            sizes = [os.path.getsize(os.path.join(capture.dir, name))
                     for name in ctf.files(capture.dir)]
            self.assertLessEqual(sum(sizes), limit)
            self.assertGreater(ctf.parts(capture.dir)[0], 1)
            events, discarded = ctf.read_both(self, capture.dir)
        self.assertGreater(len(events), 10000)
        self.assertLess(len(events), ledger["delivered"])
        # What was lost before is the base of the count, and no loss of these parts.
        self.assertLessEqual(discarded, live.lost(ledger))

    def table(self, path):
        """Of a compressed file: (compressed, plain) sizes of its frames, from the table at its end."""
        with open(path, "rb") as file:
            data = file.read()
        count, flags, magic = struct.unpack("<IBI", data[-9:])
        self.assertEqual((flags, magic), (0, 0x8F92EAB1))
        begin = len(data) - 9 - 8 * count
        self.assertEqual(struct.unpack_from("<II", data, begin - 8), (0x184D2A5E, 8 * count + 9))
        frames = list(struct.iter_unpack("<II", data[begin:-9]))
        self.assertEqual(sum(compressed for compressed, _ in frames), begin - 8)
        return frames

    def test_zstd(self):
        """Closed parts are compressed, a frame a packet, and come back as they were."""
        with live.Load("calls", "-m", 60000, "-r", 2000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid, "--zstd") as capture:
            load.go()
            zstd = os.path.join(capture.dir, ".zstd")
            capture.rotate()
            live.wait_until("compressed", lambda: ctf.parts(capture.dir) == [2])
            self.assertEqual(capture.stop(), 0)
            ledger = capture.ledger()
            live.assert_account(self, ledger)
            self.assertEqual(os.stat(zstd).st_mode & 0o777, 0o700)
            # What is left is a capture; weir reads all of it, and others do once it is back.
            ctf.read_both(self, capture.dir)
            status, out, said = live.run("verify", capture.dir)
            self.assertEqual(status, 0, out + said)
            self.assertIn(" 0 gaps, 0 lost, ", out + said)
            frames = {name: self.table(os.path.join(zstd, name)) for name in os.listdir(zstd)}
            self.assertTrue({"tasks.000001.zst", "weir.000001.zst"} <= set(frames))
            subprocess.run(["zstd", "-q", "-d", "--rm", "--output-dir-flat", capture.dir] +
                           [os.path.join(zstd, name) for name in frames], check=True)
            self.assertEqual(ctf.parts(capture.dir), [1, 2])
            for name, table in frames.items():
                plain = ctf.packets(os.path.join(capture.dir, name.removesuffix(".zst")))
                self.assertEqual([len(data) for _, data in plain], [size for _, size in table])
            os.rmdir(zstd)
            ctf.check(self, capture.dir)
            counts = ctf.counts(ctf.read_both(self, capture.dir)[0])
        self.assertEqual(counts["sys_enter"] + counts["sys_exit"], ledger["delivered"])

    def test_zstd_and_max_size(self):
        """What is compressed counts as what it is; what is removed meanwhile stays removed."""
        limit = 8 << 20
        with live.Load("calls", "-t", 2, "-n", 300000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid, "--zstd", "--max-size", limit) as capture:
            load.run()
            self.assertEqual(capture.end(), 0)
            live.assert_account(self, capture.ledger())
            ctf.read_both(self, capture.dir)
            size, parts = 0, set(ctf.parts(capture.dir))
            for folder, _, names in os.walk(capture.dir):
                for name in names:
                    size += os.path.getsize(os.path.join(folder, name))
                    self.assertFalse(name.startswith("."), name)
                    if name.endswith(".zst"):
                        parts.add(int(name.split(".")[1]))
        self.assertLessEqual(size, limit + 16384)  # the metadata
        # The oldest goes first: there is no hole.
        self.assertEqual(sorted(parts), list(range(min(parts), max(parts) + 1)))

    def test_max_age(self):
        with live.Load("calls", "-m", 60000, "-r", 1000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid, "--max-age", 8) as capture:
            load.go()
            live.wait_until("the first part has gone",
                            lambda: ctf.parts(capture.dir)[:1] not in ([], [1]))
            self.assertEqual(capture.stop(), 0)
            live.assert_account(self, capture.ledger())
            ctf.check(self, capture.dir)
            ctf.read_both(self, capture.dir)


class Disk(unittest.TestCase):
    def lost_on_disk(self, capture, events):
        """Delivered is what is there; the rest is lost `output`."""
        ledger = capture.ledger()
        live.assert_account(self, ledger)
        counts = ctf.counts(events)
        self.assertEqual(counts["sys_enter"] + counts["sys_exit"], ledger["delivered"])
        self.assertGreater(live.lost(ledger, "output"), 0)
        return ledger

    def assert_told(self, capture):
        """The recorder, weir info and weir replay have the same sums, and weir verify finds them there."""
        ledger = capture.ledger()
        status, out, said = live.run("verify", capture.dir)
        self.assertEqual(status, 0, out + said)
        status, out, said = live.run("info", "--json", capture.dir)
        self.assertEqual(status, 0, said)
        info = json.loads(out)
        self.assertEqual((info["flaws"], info["closed"]), (0, True))
        self.assertEqual(info["lost"], {"output": live.lost(ledger)})
        status, _, said = live.run("replay", "-f", "none", "--ledger", capture.ledger_path + ".replay",
                                   capture.dir)
        self.assertEqual(status, 0, said)
        with open(capture.ledger_path + ".replay", encoding="utf-8") as file:
            replayed = json.load(file)
        for key in ("produced", "delivered", "filtered", "lost", "difference"):
            self.assertEqual(replayed[key], ledger[key], key)

    def test_full(self):
        """What does not fit is lost, and that is said once; the capture is whole, to the last gap."""
        with small_disk() as disk, \
                live.Load("calls", "-t", 2, "-n", 100000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid, folder=disk) as capture:
            load.run()
            self.assertEqual(capture.end(), 1)
            ctf.check(self, capture.dir)
            events, _ = ctf.read_both(self, capture.dir)
            self.lost_on_disk(capture, events)
            self.assert_told(capture)
            said = capture.said()
        self.assertEqual(said.count("No space left on device"), 1, said)

    def test_full_and_room_again(self):
        """The loss has its place among the events, with the exact count."""
        with small_disk() as disk:
            filler = os.path.join(disk, "filler")
            with live.Load("calls", "-m", 60000, "-r", 5000, "getpid") as load, \
                    Capture("-e", CALLS, "-p", load.pid, folder=disk) as capture:
                with contextlib.suppress(OSError), open(filler, "wb") as file:
                    while True:
                        file.write(bytes(4096))
                        file.flush()
                load.go()
                live.wait_until("full", lambda: "No space left" in capture.said())
                os.unlink(filler)
                size = os.path.getsize
                notes = os.path.join(capture.dir, "weir.000001")
                before = size(notes)
                live.wait_until("written", lambda: size(notes) > before)
                self.assertEqual(capture.stop(), 1)
                ctf.check(self, capture.dir)
                events, discarded = ctf.read_both(self, capture.dir)
                ledger = self.lost_on_disk(capture, events)
        # cause 9: output
        gaps = [gap for gap in ctf.by_name(events, "gap") if ctf.number(gap, "cause") == 9]
        self.assertEqual(sum(ctf.number(gap, "lost") for gap in gaps), live.lost(ledger, "output"))
        self.assertEqual(discarded, live.lost(ledger))

    def test_min_free(self):
        """The disk is left its room; what would take it is lost."""
        with small_disk() as disk, \
                live.Load("calls", "-t", 2, "-n", 100000, "getpid") as load, \
                Capture("-e", CALLS, "-p", load.pid, "--min-free", "1M", folder=disk) as capture:
            load.run()
            self.assertEqual(capture.end(), 1)
            ledger = capture.ledger()
            self.assert_told(capture)
        live.assert_account(self, ledger)
        self.assertGreater(live.lost(ledger, "output"), 0)


class Killed(unittest.TestCase):
    def cut(self, folder):
        """As weir verify --repair does. How many were torn."""
        torn = 0
        for name in ctf.files(folder):
            path = os.path.join(folder, name)
            try:
                for _ in ctf.packets(path):
                    pass
            except ctf.Torn as tear:
                # Nothing but the packet that was just being written.
                self.assertLess(os.path.getsize(path) - tear.at, 1 << 20)
                os.truncate(path, tear.at)
                torn += 1
        return torn

    def test_at_any_moment(self):
        """kill -9: whole packets stay, with all that was before the last mark."""
        rng = random.Random(20261129)
        for _ in range(10):
            with live.Load("calls", "-t", 2, "-m", 60000, "-r", 50000, "getpid") as load, \
                    Capture("-e", CALLS, "-p", load.pid) as capture:
                load.go()
                size = 1000 + int(rng.random() * (4 << 20))
                live.wait_until("some written", lambda: sum(
                    os.path.getsize(os.path.join(capture.dir, name))
                    for name in ctf.files(capture.dir) if name.startswith("cpu")) >= size)
                capture.process.kill()
                capture.process.wait()
                torn = self.cut(capture.dir)
                ctf.check(self, capture.dir)
                events, _ = ctf.read_both(self, capture.dir)
            marks = ctf.by_name(events, "mark")
            self.assertEqual({ctf.number(mark, "closed") for mark in marks}, {0})
            # The first packet of a CPU may have been the torn one.
            self.assertTrue(torn or of_probes(events))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-live-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "capture")

    def record(self, *args):
        return live.run("record", "-o", self.path, *args, "--", "true")

    def test_modes(self):
        self.assertEqual(self.record()[0], 0)
        ctf.check(self, self.path)

    def test_other_files(self):
        """A folder that is somebody's is left alone."""
        os.mkdir(self.path)
        other = os.path.join(self.path, "cpu0.txt")
        with open(other, "w", encoding="ascii") as file:
            file.write("mine")
        for args in ((), ("--force",)):
            status, _, said = self.record(*args)
            self.assertEqual(status, 125)
            self.assertIn("other files", said)
        self.assertEqual(os.listdir(self.path), ["cpu0.txt"])

    def test_force(self):
        self.assertEqual(self.record()[0], 0)
        with open(os.path.join(self.path, "metadata"), "rb") as metadata:
            before = metadata.read()
        status, _, said = self.record()
        self.assertEqual(status, 125)
        self.assertIn("--force", said)
        self.assertEqual(self.record("--force")[0], 0)
        with open(os.path.join(self.path, "metadata"), "rb") as metadata:
            self.assertNotEqual(metadata.read(), before)
        ctf.check(self, self.path)
        ctf.read_both(self, self.path)

    def test_somebody_records_there(self):
        """Two never write to one folder, with --force or without."""
        with Capture("-e", "process", dir=self.path) as capture:
            for args in ((), ("--force",)):
                status, _, said = self.record(*args)
                self.assertEqual(status, 125)
                self.assertIn("another weir records there", said)
            self.assertEqual(capture.stop(), 0)
            ctf.check(self, self.path)
            ctf.read_both(self, self.path)

    def test_no_parent(self):
        self.path = "/nowhere/at/all"
        status, _, said = self.record()
        self.assertEqual(status, 125)
        self.assertEqual(said, "weir record: /nowhere/at/all: No such file or directory\n")

    def test_usage(self):
        self.assertEqual(live.run("record", "-d", "1")[0], 2)
        for args in (("--max-size", "1M"), ("--max-age", "1"), ("--children", "--no-follow")):
            self.assertEqual(self.record(*args)[0], 2)
        self.assertFalse(os.path.exists(self.path))


class Terminal(unittest.TestCase):
    def test_progress(self):
        """A line that is written over; Ctrl-C ends it, with the account below."""
        keyboard, screen = pty.openpty()
        shown = b""
        try:
            with live.Load("calls", "-m", 60000, "-r", 1000, "getpid") as load, \
                    tempfile.TemporaryDirectory() as folder, \
                    live.Child([live.WEIR, "record", "-o", os.path.join(folder, "capture"), "-e",
                                CALLS, "-p", str(load.pid)], stderr=screen) as record:
                load.go()
                while b"events/s" not in shown:
                    shown += os.read(keyboard, 4096)
                record.signal(signal.SIGINT)
                self.assertEqual(record.end(), 0)
                while b"produced" not in shown:
                    shown += os.read(keyboard, 4096)
        finally:
            os.close(keyboard)
            os.close(screen)
        self.assertIn(b"MiB, 0 lost, lag ", shown)
        self.assertIn(b"\r\x1b[Kproduced ", shown)


if __name__ == "__main__":
    cases.main()
