#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""weir replay, info and verify of captures: what was recorded comes back as trace prints it, and what was
torn or damaged is said, and costs no more than it has to."""
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import cases
import ctf
import live
from record import Capture

KILLS = 50 if live.SOAK else 4


def replay(*args, status=0):
    """(lines of JSON, the account) of weir replay --format json."""
    done, out, said = live.run("replay", "--format", "json", *args)
    if done != status:
        raise AssertionError(f"weir replay ended with {done}: {said}")
    account = [line for line in said.splitlines() if line.startswith("{")]
    return [json.loads(line) for line in out.splitlines()], json.loads(account[-1])


def told(line):
    """What of a line does not depend on when it was."""
    return (line["event"], line.get("syscall"), line.get("tid"), line.get("comm"),
            json.dumps(line.get("args")), line.get("result"))


def without_times(text):
    """Lines of text without their time, CPU, and how long a call took; without the read in which the
    load waited, whose enter a trace finds in /proc and a recording has not seen."""
    return [re.sub(r" <[\d.]+[mun]?s>$", "", re.sub(r"^\S+ +\S+ +", "", line))
            for line in text.splitlines() if "] read(" not in re.sub(" +", " ", line)]


def has_open(pid, path):
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            if os.readlink(link) == path:
                return True
        except OSError:
            pass  # closed meanwhile
    return False


class AsTrace(unittest.TestCase):
    def both(self, *args, form="json"):
        """A trace and a recording of the same load, at the same time; call `check` before they go."""
        with live.Load("calls", "-t", 2, "-n", 300, "uname") as load, \
                live.Trace("-e", "sys,process,signal", "-p", load.pid, *args, form=form) as trace, \
                Capture("-e", "sys,process,signal", "-p", load.pid) as capture:
            load.run()
            self.assertEqual((capture.end(), trace.end()), (0, 0))
            with open(trace.path, encoding="utf-8", errors="surrogateescape") as file:
                lines = file.read()
            copy = os.path.join(self.folder.name, "capture")
            shutil.copytree(capture.dir, copy)
            return lines, copy, capture.ledger()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-live-")
        self.addCleanup(self.folder.cleanup)

    def same_by_thread(self, ours, theirs, of=lambda line: line.get("tid")):
        # As without_times() has it.
        ours, theirs = ([line for line in lines if line.get("syscall") != "read"]
                        for lines in (ours, theirs))
        for tid in {of(line) for line in theirs}:
            self.assertEqual([told(line) for line in ours if of(line) == tid],
                             [told(line) for line in theirs if of(line) == tid])

    def test_json(self):
        traced, capture, ledger = self.both()
        theirs = [json.loads(line) for line in traced.splitlines()]
        ours, account = replay(capture)
        self.assertGreater(len(ours), 1200)
        self.same_by_thread(ours, theirs)
        self.assertEqual({line["event"]: sorted(line) for line in ours},
                         {line["event"]: sorted(line) for line in theirs})
        # The same account, but for what belongs to the reader.
        for key in ("produced", "delivered", "filtered", "pending", "lost", "late", "difference"):
            self.assertEqual(account[key], ledger[key], key)

    def test_json_pair(self):
        traced, capture, _ = self.both("--pair")
        theirs = [json.loads(line) for line in traced.splitlines()]
        ours, _ = replay("--pair", capture)
        self.same_by_thread(ours, theirs)
        self.assertIn("syscall", {line["event"] for line in ours})

    def test_text(self):
        traced, capture, _ = self.both(form="text")
        status, out, said = live.run("replay", capture)
        self.assertEqual(status, 0, said)
        self.assertEqual(sorted(without_times(out)), sorted(without_times(traced)))

    def test_keeps_promises(self):
        _, capture, _ = self.both()
        status, out, said = live.run("verify", capture)
        self.assertEqual(status, 0, said)
        self.assertIn("all promises kept", out)
        path, ledger = (os.path.join(self.folder.name, name) for name in ("t.json", "l.json"))
        self.assertEqual(live.run("replay", "-f", "json", "-o", path, "--ledger", ledger,
                                  capture)[0], 0)
        status, _, said = live.run("verify", "--ledger", ledger, path)
        self.assertEqual(status, 0, said)


class Selection(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-live-")
        cls.capture = os.path.join(cls.folder.name, "capture")
        script = "ls /nowhere 2>/dev/null; (exec -a other sleep 0.01) & wait; ls / >/dev/null"
        status, _, said = live.run("record", "-e", "process,sched,signal,sys", "-o", cls.capture,
                                   "--", "bash", "-c", script)
        assert status == 0, said
        cls.lines, _ = replay(cls.capture)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_events(self):
        ours, account = replay("-e", "sys:openat", cls_capture(self))
        self.assertEqual(ours, [line for line in self.lines if line.get("syscall") == "openat"])
        self.assertGreater(account["filtered"], 0)
        ours, _ = replay("-e", "process", cls_capture(self))
        self.assertEqual({line["event"] for line in ours}, {"fork", "exec", "exit"})

    def test_processes(self):
        forks = [line for line in self.lines if line["event"] == "fork" and not line["args"]["thread"]]
        child = forks[0]["args"]["child_pid"]
        ours, _ = replay("-e", "sys", "-p", child, cls_capture(self))
        self.assertTrue(ours)
        self.assertEqual(ours, [line for line in self.lines
                                if line.get("syscall") and line["pid"] == child])

    def test_names(self):
        ours, _ = replay("-e", "sys", "--comm", "ls", cls_capture(self))
        self.assertEqual(ours, [line for line in self.lines
                                if line.get("syscall") and line["comm"] == "ls"])

    def test_user(self):
        ours, _ = replay("-e", "process", "--uid", 0, cls_capture(self))
        self.assertTrue(ours)
        self.assertEqual(replay("-e", "sys", "--uid", 12345, cls_capture(self))[0], [])

    def test_failed(self):
        ours, _ = replay("--pair", "--errno", "ENOENT", cls_capture(self))
        self.assertIn("/nowhere", json.dumps(ours))
        self.assertEqual({line["result"] for line in ours if line["event"] == "syscall"}, {-2})

    def test_descriptors(self):
        """What was opened while it recorded has its name, also where only other calls are shown."""
        cache = "/etc/ld.so.cache"
        opened = sum(cache in json.dumps(line) for line in self.lines if line["event"] == "sys_enter")
        status, out, said = live.run("replay", "-y", "-e", "sys:close", cls_capture(self))
        self.assertEqual((status, opened > 0), (0, True), said)
        self.assertEqual(out.count(f"close(fd: 3<{cache}>) = 0"), opened)
        self.assertNotIn("openat", out)
        ours, _ = replay("--pair", "-P", cache, "-e", "sys:close", cls_capture(self))
        self.assertEqual([line["args"]["fd"] for line in ours], ["0x3"] * opened)

    def test_span(self):
        stamps = [int(line["ts"]) for line in self.lines]
        begin, end = stamps[len(stamps) // 3], stamps[2 * len(stamps) // 3]
        seconds = [f"{ns // 10**9}.{ns % 10**9:09}" for ns in (begin, end)]
        ours, account = replay("--from", seconds[0], "--to", seconds[1], cls_capture(self))
        self.assertEqual(ours, [line for line in self.lines if begin <= int(line["ts"]) <= end])
        self.assertEqual(account["difference"], 0)
        self.assertEqual(replay("--from", "+1000", cls_capture(self))[0], [])

    def test_wall_times(self):
        at = self.lines[len(self.lines) // 2]["time"]
        ours, _ = replay("--from", at, "--to", at, cls_capture(self))
        self.assertEqual({line["time"] for line in ours}, {at})

    def test_wrong_times(self):
        for wrong in ("soon", "25:99", "+", "1:2:3:4", "2026-13-01T00:00:00"):
            status, _, said = live.run("replay", "--from", wrong, cls_capture(self))
            self.assertEqual((status, "--from takes a time" in said), (2, True), wrong)
        self.assertEqual(live.run("replay", "--from", "+2", "--to", "+1", cls_capture(self))[0], 2)

    def test_not_there(self):
        """What is asked for and cannot be in the capture is named."""
        for args, words in ((("--from", "+1000"), "--from is behind the end (+"),
                            (("--to", "0.000001"), "--to is before the beginning")):
            status, _, said = live.run("replay", *args, cls_capture(self))
            self.assertEqual((status, words in said), (0, True), said)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "capture")
            self.assertEqual(live.run("record", "-o", path, "-e", "process", "--", "true")[0], 0)
            status, _, said = live.run("replay", "-e", "sched,process", path)
            self.assertEqual(status, 0)
            self.assertIn(": sched was not recorded\n", said)
            self.assertNotIn("process was not", said)
            self.assertIn(": sys was not recorded\n", live.run("replay", "-c", path)[2])
            self.assertNotIn("was not recorded", live.run("replay", path)[2])

    def test_stops(self):
        ours, account = replay("-n", 5, cls_capture(self))
        self.assertEqual(ours, self.lines[:5])
        self.assertEqual(account["difference"], 0)

    def test_counts(self):
        status, out, said = live.run("replay", "-c", "-f", "json", cls_capture(self))
        self.assertEqual(status, 0, said)
        calls = {row["call"]: row["calls"] for row in json.loads(out)["calls"]}
        exits = [line for line in self.lines if line["event"] == "sys_exit"]
        self.assertEqual(calls["openat"],
                         len([line for line in exits if line["syscall"] == "openat"]))

    def test_info(self):
        status, out, said = live.run("info", "--json", cls_capture(self))
        self.assertEqual(status, 0, said)
        info = json.loads(out)
        self.assertEqual(info["types"]["sys_enter"],
                         len([line for line in self.lines if line["event"] == "sys_enter"]))
        self.assertEqual(info["kernel"], os.uname().release)
        self.assertEqual((info["closed"], info["flaws"], info["lost"]), (True, 0, {}))
        self.assertIn("bash -c", info["command"])
        self.assertEqual(sum(cpu["events"] for cpu in info["cpus"]), info["events"])
        self.assertIn("state     whole", live.run("info", cls_capture(self))[1])

    def test_info_is_for_a_terminal(self):
        """What the metadata of a stranger's capture says is no command to it."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "capture")
            shutil.copytree(cls_capture(self), path)
            with open(os.path.join(path, "metadata"), encoding="utf-8") as metadata:
                text = metadata.read()
            for name in ("hostname", "sysname", "kernel_release", "weir_version", "command"):
                text, count = re.subn(rf'\b{name} = ".*";', f'{name} = "\x1b[2J";', text)
                self.assertEqual(count, 1, name)
            with open(os.path.join(path, "metadata"), "w", encoding="utf-8") as metadata:
                metadata.write(text)
            status, out, _ = live.run("info", path)
            self.assertEqual((status, out.count("\\x1b[2J")), (0, 5))
            self.assertNotIn("\x1b", out)

    def test_nobody_reads_on(self):
        """An output that ends says nothing about the capture."""
        with tempfile.TemporaryDirectory() as folder, open("/dev/full", "wb") as full:
            path = os.path.join(folder, "capture")
            # More than what is written at once.
            status, _, said = live.run("record", "-o", path, "--", "sh", "-c",
                                       "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); : </dev/null; done")
            self.assertEqual(status, 0, said)
            done = subprocess.run([live.WEIR, "replay", path], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn(b"cut off", done.stderr)

    def test_long_command_line(self):
        """Of a MiB and more, as it is written down: what stands behind it is read as well."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "capture")
            status, _, said = live.run("record", "-o", path, "--", "true", *["\x01" * 100000] * 3)
            self.assertEqual(status, 0, said)
            self.assertGreater(os.path.getsize(os.path.join(path, "metadata")), 1 << 20)
            status, _, said = live.run("verify", path)
            self.assertEqual(status, 0, said)

    def test_no_capture(self):
        for command in ("replay", "info", "verify"):
            self.assertIn(live.run(command, "/usr/lib")[0], (1, 2))
            self.assertNotEqual(live.run(command, "/nowhere")[0], 0)
        self.assertEqual(live.run("replay")[0], 2)
        self.assertEqual(live.run("verify", "--repair", "/etc/passwd")[0], 2)


def cls_capture(case):
    return type(case).capture


class Damage(unittest.TestCase):
    def assert_opens(self, folder):
        """Ours reads it as it is; after --repair babeltrace2 does, and finds as many events."""
        before, account = replay(folder)
        self.assertEqual(account["difference"], 0)
        status, _, said = live.run("verify", "--repair", folder)
        self.assertEqual(status, 0, said)
        after, _ = replay(folder)
        self.assertEqual(len(after), len(before))
        for reader in ctf.READERS:
            events, _ = ctf.read(self, folder, reader)
            self.assertGreaterEqual(len(events), len(after))
        return after

    def test_killed(self):
        """kill -9 at any moment costs the open packets."""
        for _ in range(KILLS):
            with live.Child(["sh", "-c", "while :; do /bin/true; done"]) as load, \
                    Capture("-e", "sys", "-p", load.pid) as capture:
                time.sleep(random.uniform(0.0, 1.5))
                capture.process.kill()
                capture.process.wait()
                if any(name.startswith("cpu") for name in os.listdir(capture.dir)):
                    self.assert_opens(capture.dir)

    def small(self, folder):
        path = os.path.join(folder, "capture")
        status, _, said = live.run("record", "-e", "sys", "-o", path, "--", "ls", "-R", "/etc")
        self.assertEqual(status, 0, said)
        name = max((name for name in os.listdir(path) if name.startswith("cpu")),
                   key=lambda name: os.path.getsize(os.path.join(path, name)))
        return path, os.path.join(path, name)

    def test_torn_tail(self):
        with tempfile.TemporaryDirectory() as folder:
            path, file = self.small(folder)
            whole, _ = replay(path)
            os.truncate(file, os.path.getsize(file) - 200)
            status, _, said = live.run("verify", path)
            self.assertEqual(status, 1)
            self.assertIn("torn", said)
            ours, account = replay("--strict", path, status=3)
            # What is missing is known to the record, for the account of the end is there.
            self.assertEqual(account["delivered"] + account["lost"]["broken"], len(whole))
            self.assertIn("gap", {line["event"] for line in ours})
            self.assertRegex(live.run("info", path)[1],
                             r"(?m)^lost +broken at least [1-9][0-9]* \(torn or damaged\)$")
            self.assertGreater(json.loads(live.run("info", "--json", path)[1])["lost"]["broken"], 0)
            subprocess.run(["babeltrace2", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           check=False)
            status, out, said = live.run("verify", "--repair", path)
            self.assertRegex(out, "cut to [0-9]+ bytes: .*; it was to have [1-9][0-9]* records")
            self.assertEqual(subprocess.run(["babeltrace2", path], stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL, check=False).returncode, 0)

    def test_no_metadata(self):
        """What is there is shown, and that it is not all."""
        with tempfile.TemporaryDirectory() as folder:
            path, _ = self.small(folder)
            whole, _ = replay(path)
            os.unlink(os.path.join(path, "metadata"))
            for command in ("info", "verify", "replay"):
                status, _, said = live.run(command, path)
                self.assertEqual((status, "metadata is missing" in said), (1, True), said)
            self.assertIn("\nevents ", live.run("info", path)[1])
            ours, _ = replay("-e", "sys", path, status=1)
            self.assertEqual(len(ours), len(whole))

    def test_gone_files(self):
        """Of a process table that is gone no number tells: the capture's own notes do."""
        with tempfile.TemporaryDirectory() as folder:
            path, _ = self.small(folder)
            os.unlink(os.path.join(path, "tasks.000001"))
            status, _, said = live.run("verify", path)
            self.assertEqual((status, "tasks.000001 is missing" in said), (1, True), said)
            self.assertIn("state     damaged", live.run("info", path)[1])
            status, _, said = live.run("replay", path)
            self.assertEqual((status, "damaged in 1 place" in said), (0, True), said)
            self.assertEqual(live.run("replay", "--strict", path)[0], 3)

    def test_interrupted_while_it_opens(self):
        """A minute's worth of zeros to be looked through: a signal ends it, wherever it comes."""
        with tempfile.TemporaryDirectory() as folder:
            path, file = self.small(folder)
            os.truncate(file, 64 << 30)
            for command in (["info"], ["verify"], ["verify", "--repair"], ["replay"],
                            ["top", "--replay"]):
                with live.Child([live.WEIR, *command, path], stdout=subprocess.DEVNULL) as weir:
                    live.wait_until("the file being read", lambda: has_open(weir.pid, file))
                    self.assertEqual(weir.stop(), -signal.SIGINT, command)

    def test_being_recorded(self):
        """What is not written yet is no damage."""
        with Capture("-e", "process") as capture:
            live.wait_until("a packet", lambda: live.run("info", capture.dir)[0] == 0)
            self.assertIn("state     being recorded", live.run("info", capture.dir)[1])
            status, _, said = live.run("verify", "--repair", capture.dir)
            self.assertEqual((status, "records there" in said), (2, True), said)
            self.assertIn("is being recorded", live.run("replay", capture.dir)[2])
            self.assertEqual(capture.stop(), 0)

    def test_flipped_bit(self):
        with tempfile.TemporaryDirectory() as folder:
            path, file = self.small(folder)
            whole, _ = replay(path)
            with open(file, "r+b") as bytes_:
                bytes_.seek(os.path.getsize(file) // 2)
                byte = bytes_.read(1)
                bytes_.seek(-1, os.SEEK_CUR)
                bytes_.write(bytes([byte[0] ^ 0x10]))
            status, _, said = live.run("verify", path)
            self.assertEqual(status, 1)
            self.assertIn("checksum", said)
            ours, account = replay(path)
            self.assertEqual(account["delivered"] + account["lost"]["broken"], len(whole))
            info = json.loads(live.run("info", "--json", path)[1])
            self.assertEqual(info["lost"]["broken"], account["lost"]["broken"])
            before = os.stat(file)
            live.run("verify", "--repair", path)
            self.assertEqual(os.stat(file).st_mtime_ns, before.st_mtime_ns)


if __name__ == "__main__":
    cases.main()
