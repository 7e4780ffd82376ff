#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""All of weir side by side on a machine at work: trace, record, top, and a reader of somebody else's perf
event array whose trace goes into `weir verify`. Nothing grows, nothing is late, every account closes,
and the kernel has nothing to say about it.

With `soak` it takes MINUTES, of the environment, or 30; otherwise some seconds.
"""
import collections
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import unittest

import cases
import live
import proc
from record import Capture
from top import Top

SECONDS = 60 * float(os.environ.get("MINUTES") or 30) if live.SOAK else 8
EACH_S = min(5, SECONDS / 40)  # between two samples

# What a process may hold more of in the last quarter than in the second: in seconds, all that it needs
# once; in half an hour, what bursts have left and no more than 4.7 KiB a second.
SLACK = (4 if live.SOAK else 16) << 20

# Calls of the foreign program on each CPU in each millisecond.
FOREIGN = 5

# Small, so that many parts of the capture come and go.
CAPTURE = "64M"

# After Ctrl-C. What takes how long is for the long form.
ENDS_WITHIN_S = 1 if live.SOAK else live.PATIENCE_S


class Sample(collections.namedtuple("Sample", "bytes descriptors threads mappings")):
    """What a process holds."""

    @classmethod
    def of(cls, pid):
        with open(f"/proc/{pid}/maps", "rb") as maps:
            mappings = sum(1 for _ in maps)
        return cls(proc.resident(pid), len(os.listdir(f"/proc/{pid}/fd")),
                   len(os.listdir(f"/proc/{pid}/task")), mappings)


def growth(samples):
    """
    What the last quarter has more than the second; the first is for warming up. Of memory the median, since
    a burst is no leak. Of the others, what is beyond all there was before: files come and go.
    """
    quarter = len(samples) // 4
    if not quarter:
        raise AssertionError(f"{len(samples)} samples are too few")
    (of_bytes, *counts), (last_bytes, *last_counts) = (
        zip(*samples[begin:begin + quarter]) for begin in (quarter, len(samples) - quarter))
    return Sample(int(statistics.median(last_bytes) - statistics.median(of_bytes)),
                  *(max(0, min(last) - max(before)) for before, last in zip(counts, last_counts)))


class Judge(unittest.TestCase):
    """growth() sees what it is to see, and nothing else."""
    FLAT = [Sample(40 << 20, 30, 2, 100)] * 100

    def grown(self, **members):
        """By what: of the i-th sample, {member: what it is more}."""
        return growth([sample._replace(**{
            name: getattr(sample, name) + more(i) for name, more in members.items()})
            for i, sample in enumerate(self.FLAT)])

    def test_flat(self):
        self.assertEqual(self.grown(), (0, 0, 0, 0))

    def test_warming_up(self):
        self.assertEqual(self.grown(bytes=lambda i: min(i, 25) << 20).bytes, 0)

    def test_moments(self):
        """A burst, and files that are open now and then."""
        self.assertEqual(self.grown(bytes=lambda i: (80 <= i < 90) << 26,
                                    descriptors=lambda i: i % 7 % 2), (0, 0, 0, 0))

    def test_leaks(self):
        self.assertEqual(self.grown(bytes=lambda i: i << 20).bytes, 50 << 20)
        for member in ("descriptors", "threads", "mappings"):
            self.assertEqual(getattr(self.grown(**{member: lambda i: i % 2 + i // 25}), member), 1)

    def test_kernel_log(self):
        self.assertEqual(KernelLog.complaint(b"4,7,9,-;WARNING: x\n SUBSYSTEM=y\n"), "WARNING: x")
        self.assertEqual(KernelLog.complaint(b"0,7,9,c;BUG; y\n"), "BUG; y")
        # Of no great weight, by somebody else, and of a CPU that somebody else took off.
        self.assertIsNone(KernelLog.complaint(b"6,7,9,-;CPU 1 is online\n"))
        self.assertIsNone(KernelLog.complaint(b"12,7,9,-;said by a process\n"))
        self.assertIsNone(KernelLog.complaint(b"4,7,9,-;process 7 (x) no longer affine to cpu1\n"))


class Drain(threading.Thread):
    """Reads a pipe to its end; `take` gets all of it, some whole lines at a time."""

    def __init__(self, pipe, take):
        super().__init__(daemon=True)
        self.pipe, self.take = pipe, take
        self.start()

    def run(self):
        rest = b""
        while block := self.pipe.read1(1 << 20):
            lines, newline, rest = (rest + block).rpartition(b"\n")
            self.take(lines + newline)
        self.take(rest)


class KernelLog:
    """What the kernel itself has said since, as a warning or worse."""
    WARNING = 4
    HOTPLUG = b" no longer affine to cpu"  # somebody takes CPUs off and on, which is none of weir's doing

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def close(self):
        os.close(self.fd)

    @classmethod
    def complaint(cls, record):
        """Its level, and eight times who said it: 0 is the kernel."""
        head, _, text = record.partition(b";")
        if int(head.split(b",")[0]) <= cls.WARNING and cls.HOTPLUG not in text:
            return text.split(b"\n")[0].decode(errors="replace")
        return None

    def complaints(self):
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                with contextlib.suppress(BrokenPipeError):  # some were overwritten: on with the next
                    found.append(self.complaint(os.read(self.fd, 1 << 16)))
        return [complaint for complaint in found if complaint]


class Verify(live.Child):
    """`weir verify` of what comes out of a pipe."""

    def __init__(self, pipe):
        self.out = tempfile.TemporaryFile()
        super().__init__([live.WEIR, "verify", "-"], stdin=pipe, stdout=self.out, stderr=self.out)

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.out.close()

    def said(self):
        self.out.seek(0)
        return self.out.read().decode()


class Watched:
    """One of the processes, what it held while it ran, and what its end was like."""

    def __init__(self, name, child):
        self.name, self.child, self.samples = name, child, []
        self.bpf_objects = set()
        self.status = self.ended_s = None

    def sample(self):
        with contextlib.suppress(OSError):  # it may end meanwhile
            self.samples.append(Sample.of(self.child.pid))
            self.bpf_objects |= proc.bpf_objects(self.child.pid)
        if self.child.process.poll() is not None:
            raise AssertionError(f"weir {self.name} ended with {self.child.process.returncode}: "
                                 f"{self.child.said()}")

    def held(self):
        last, more = self.samples[-1], growth(self.samples)
        return (f"{last.bytes >> 10} KiB ({more.bytes >> 10:+}), {last.descriptors} files "
                f"({more.descriptors:+}), {last.threads} threads ({more.threads:+}), "
                f"{last.mappings} mappings ({more.mappings:+})")


class Text:
    """What the text of a trace is held to: each call of the foreign program has its line."""

    def __init__(self, pid):
        self.lines = self.foreign = 0
        self.call = re.compile(rb"pinned\[%d\] +sys_4095\(" % pid)

    def take(self, block):
        self.lines += block.count(b"\n")
        self.foreign += len(self.call.findall(block))


class Reports:
    """What the lines of `weir top --json` are held to: each adds up."""

    def __init__(self):
        self.count, self.wrong, self.switches = 0, [], None

    def take(self, block):
        for line in block.splitlines():
            report = json.loads(line)
            self.count += 1
            self.switches = report["switches"]
            if any(report["identity"].values()):
                self.wrong.append(report["identity"])


class Together(unittest.TestCase):
    """One run, in setUpClass, and then what is to be said of it."""

    @classmethod
    def setUpClass(cls):
        cls.tools, cls.log = [], KernelLog()
        cls.addClassCleanup(cls.log.close)
        with contextlib.ExitStack() as stack:
            cls.start(stack)
            cls.watch()
            cls.stop()
            cls.read()
        print(cls.summary(), flush=True)

    @classmethod
    def start(cls, stack):
        def watched(name, child):
            cls.tools.append(Watched(name, stack.enter_context(child)))
            return child

        cls.mix = stack.enter_context(live.Load("mix", os.path.join(live.LOADS, "tiny")))
        # Of two -o, the second counts.
        cls.trace = watched("trace", live.Trace("-e", "sys", "-o", "-", form="text",
                                                stdout=subprocess.PIPE))
        cls.record = watched("record", Capture("-e", "process,sched,signal,sys",
                                               "--max-size", CAPTURE))
        cls.top = watched("top", Top("-d", 1, stdout=subprocess.PIPE))
        pin = f"/sys/fs/bpf/weir-soak-{os.getpid()}"
        cls.foreign = stack.enter_context(live.Load("pinned", "array", FOREIGN, pin,
                                                    int(1000 * SECONDS)))
        try:
            cls.map = watched("map", live.Trace("--map", pin + ":stamp=4", "-o", "-",
                                                stdout=subprocess.PIPE))
        finally:
            os.unlink(pin)
        cls.verify = watched("verify", Verify(cls.map.process.stdout))
        cls.map.process.stdout.close()  # whoever writes there is to notice when verify ends
        cls.text, cls.reports = Text(cls.foreign.pid), Reports()
        cls.drains = [Drain(cls.trace.process.stdout, cls.text.take),
                      Drain(cls.top.process.stdout, cls.reports.take)]
        cls.mix.go()
        cls.foreign.go()

    @classmethod
    def watch(cls):
        end = time.monotonic() + SECONDS
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, EACH_S))
            for tool in cls.tools:
                tool.sample()
        (cls.sent,), = cls.foreign.end()["sent"]

    @classmethod
    def stop(cls):
        """Ctrl-C, while the machine goes on with what it does."""
        ends = time.monotonic() + live.PATIENCE_S
        for tool in cls.tools:
            if tool.child is not cls.verify:  # whose input ends
                tool.child.signal(signal.SIGINT)
        begun = time.monotonic()
        while any(tool.ended_s is None for tool in cls.tools) and time.monotonic() < ends:
            for tool in cls.tools:
                if tool.ended_s is None and tool.child.process.poll() is not None:
                    tool.ended_s = time.monotonic() - begun
            time.sleep(0.005)
        for tool in cls.tools:
            tool.status = tool.child.end()
        for drain in cls.drains:
            drain.join()
        (cls.acts,), = cls.mix.end()["acts"]

    @classmethod
    def read(cls):
        """All that is in folders which go now."""
        cls.ledgers = {name: child.ledger() for name, child in
                       (("trace", cls.trace), ("record", cls.record), ("map", cls.map))}
        cls.said = {tool.name: tool.child.said() for tool in cls.tools}
        cls.verified = live.run("verify", cls.record.dir)
        cls.told = {word: int(count) for word, count in
                    re.findall(r"(produced|told|lost|pending|unseen) ([0-9]+)",
                               cls.said["top"].rpartition("switches: ")[2])}

    @classmethod
    def summary(cls):
        rows, in_all, lost = [], 0, 0
        for tool in cls.tools:
            rows.append(f"{tool.name:7} {tool.held()}; ended in {tool.ended_s:.2f} s")
        for name, ledger in cls.ledgers.items():
            rows.append(f"{name:7} {ledger['delivered']} delivered, {live.lost(ledger)} lost, "
                        f"{ledger['late']} late, order {ledger['order']}")
            in_all, lost = in_all + ledger["delivered"], lost + live.lost(ledger)
        rows.append(f"top     {cls.told['told']} told, {cls.told['lost']} lost, "
                    f"{cls.told['unseen']} unseen, {cls.reports.switches['steps_back']} late, "
                    f"{cls.reports.count} reports")
        in_all, lost = in_all + cls.told["told"], lost + cls.told["lost"]
        late = cls.reports.switches["steps_back"] + sum(
            ledger["late"] for ledger in cls.ledgers.values())
        rows.append(f"in all  {in_all} events, {lost} lost, late {late} of {in_all}, in "
                    f"{SECONDS / 60:.1f} minutes; {cls.text.lines} lines of text, {cls.sent} "
                    f"foreign events, {cls.acts} acts of the load")
        return "\n".join(rows)

    def test_ends(self):
        """Each ended by Ctrl-C, and well; verify, since its input had."""
        for tool in self.tools:
            self.assertEqual(tool.status, 0, self.said[tool.name])
            self.assertLess(tool.ended_s, ENDS_WITHIN_S, tool.name)

    def test_nothing_grows(self):
        for tool in self.tools:
            grown = growth(tool.samples)
            self.assertLessEqual(grown.bytes, SLACK, tool.name)
            self.assertEqual(grown[1:], (0, 0, 0), tool.name)

    def test_accounts_close(self):
        """Nothing is late either (G2): order is exact everywhere."""
        for ledger in self.ledgers.values():
            live.assert_account(self, ledger)
        self.assertEqual(self.told["produced"], self.told["told"] + self.told["lost"])
        self.assertEqual(self.told["pending"], 0)
        self.assertGreater(self.told["told"], 0)
        self.assertEqual((self.reports.switches["steps_back"], self.reports.switches["broken"]),
                         (0, 0))
        self.assertEqual(self.reports.wrong, [])

    def test_truth(self):
        """What the foreign program has sent, one by one; of its calls trace and record have both halves."""
        ledger = self.ledgers["map"]
        self.assertEqual(ledger["delivered"] + live.lost(ledger), self.sent)
        for name in ("trace", "record"):
            self.assertGreaterEqual(live.calls_accounted(self.ledgers[name]), 2 * self.sent)
        # A gap may cut a call in two lines, or swallow it.
        self.assertLessEqual(abs(self.text.foreign - self.sent), live.lost(self.ledgers["trace"]))

    def test_verified(self):
        """The capture, and the foreign events' trace, line by line."""
        status, out, said = self.verified
        self.assertEqual(status, 0, out + said)
        for told in out, self.said["verify"]:
            self.assertIn("all promises kept", told)
        self.assertRegex(self.said["verify"], rf"\b{self.ledgers['map']['delivered']} events,")

    def test_kernel_log(self):
        self.assertEqual(self.log.complaints(), [])

    def test_nothing_is_left(self):
        """Of programs and maps."""
        for tool in self.tools:
            live.wait_until("gone", lambda: not any(map(proc.has_bpf_object, tool.bpf_objects)))
        self.assertGreater(len(set().union(*(tool.bpf_objects for tool in self.tools))), 10)


if __name__ == "__main__":
    cases.main()
