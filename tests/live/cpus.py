#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""CPUs: all that are online are traced, wherever weir runs, and also while they come and go."""
import contextlib
import signal
import time
import unittest

import cases
import live

CALLS = "sys:getpid"


class Cpus(unittest.TestCase):
    def setUp(self):
        self.cpus = live.online_cpus()
        if len(self.cpus) < 2:
            self.skipTest("there is one CPU")

    def calls_on(self, *cpus):
        return live.Load("calls", "-c", ",".join(map(str, cpus)), "-t", len(cpus), "-m", 1000,
                         "-r", 2000, "getpid")

    @contextlib.contextmanager
    def last_cpu_offline(self):
        try:
            with live.offline(self.cpus[-1]):
                yield self.cpus[-1]
        except OSError as error:
            self.skipTest(f"CPU {self.cpus[-1]} cannot go offline: {error}")

    def account(self, trace, *told):
        """The ledger, which has to close and to have all of these loads' calls."""
        ledger = trace.ledger()
        live.assert_account(self, ledger)
        made = sum(count for one in told for _, _, count in one["calls"])
        self.assertEqual(live.calls_accounted(ledger), 2 * made)
        self.assertEqual(live.steps_back(trace.lines()), 0)
        trace.verify()
        return ledger

    def test_weir_bound_to_one(self):
        """M1: every CPU's events, though weir may run on the first only."""
        with self.calls_on(*self.cpus) as load, \
                live.Trace("-e", CALLS, "-p", load.pid, cpus=self.cpus[0]) as trace:
            told = load.run()
            self.assertEqual(trace.end(), 0)
            ledger = self.account(trace, told)
            for _, cpu, count in told["calls"]:
                records = trace.events("sys_enter", "sys_exit", cpu=cpu)
                source, = (s for s in ledger["sources"] if s["name"] == f"cpu{cpu}")
                self.assertEqual({r["source"] for r in records}, {source["name"]})
                self.assertEqual(len(records) + live.lost(source), 2 * count)
        self.assertEqual({s["cpu"] for s in ledger["sources"]}, set(self.cpus))

    def assert_hole(self, trace, cpu):
        """One gap for each of its sources, and no record of theirs inside. Returns that of calls."""
        gaps = [gap for gap in trace.gaps() if gap["cause"] == "offline"]
        self.assertEqual({gap["source"] for gap in gaps}, {f"cpu{cpu}", f"life{cpu}"})
        for gap in gaps:
            inside = [line for line in trace.events(source=gap["source"])
                      if line["event"] != "gap"
                      and int(gap["from"]) < int(line["ts"]) <= int(gap["to"])]
            self.assertEqual(inside, [])
        hole, = (gap for gap in gaps if gap["source"] == f"cpu{cpu}")
        return int(hole["from"]), int(hole["to"])

    def test_off_and_on_again(self):
        """M2: the hole is a gap of that CPU's sources, and behind it its events go on."""
        with self.calls_on(*self.cpus) as before, self.calls_on(self.cpus[0]) as meanwhile, \
                self.calls_on(self.cpus[-1]) as after, \
                live.Trace("-e", CALLS, "-p", f"{before.pid},{meanwhile.pid},{after.pid}") as trace:
            told = [before.run()]
            with self.last_cpu_offline() as cpu:
                told.append(meanwhile.run())
            told.append(after.run())
            self.assertEqual(trace.end(), 0)
            self.account(trace, *told)
            start, end = self.assert_hole(trace, cpu)
            records = trace.events("sys_enter", "sys_exit")
        there = [int(r["ts"]) for r in records if r["cpu"] == cpu]
        others = [int(r["ts"]) for r in records if r["cpu"] != cpu]
        self.assertTrue(any(ts <= start for ts in there))
        self.assertTrue(any(ts > end for ts in there))
        self.assertTrue(any(start < ts <= end for ts in others))

    def test_back_before_weir_looks(self):
        """M2: the hole ends where its events go on, also when weir hears of it later."""
        with self.calls_on(self.cpus[-1]) as after, \
                live.Trace("-e", CALLS, "-p", after.pid) as trace:
            with self.last_cpu_offline() as cpu:
                live.wait_until("offline for weir", lambda: any(
                    not source["online"] for source in trace.ledger_now()["sources"]))
                trace.signal(signal.SIGSTOP)
            told = after.run()
            trace.signal(signal.SIGCONT)
            self.assertEqual(trace.end(), 0)
            self.account(trace, told)
            _, end = self.assert_hole(trace, cpu)
            first = trace.events("sys_enter", cpu=cpu)[0]
        self.assertLess(end, int(first["ts"]))

    def test_with_the_scheduler(self):
        """M2: its first switches come before anybody is told that it is back."""
        with live.Trace("-e", "sched") as trace:
            with self.last_cpu_offline() as cpu:
                time.sleep(0.5)
            time.sleep(0.5)
            self.assertEqual(trace.stop(), 0)
            live.assert_account(self, trace.ledger())
            self.assertEqual(live.steps_back(trace.lines()), 0)
            trace.verify()
            self.assert_hole(trace, cpu)

    def test_started_while_one_is_offline(self):
        """M2: it has no ring when weir starts, and gets one when it comes."""
        with contextlib.ExitStack() as stack:
            after = stack.enter_context(self.calls_on(*self.cpus))
            with self.last_cpu_offline() as cpu:
                first = stack.enter_context(self.calls_on(self.cpus[0]))
                trace = stack.enter_context(
                    live.Trace("-e", CALLS, "-p", f"{first.pid},{after.pid}"))
                told = [first.run()]
            told.append(after.run())
            self.assertEqual(trace.end(), 0)
            self.account(trace, *told)
            self.assertTrue(trace.events("sys_enter", cpu=cpu))


if __name__ == "__main__":
    cases.main()
