#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""weir itself: stopped for a while, killed, asked, started again and again, and idle."""
import contextlib
import json
import signal
import subprocess
import time
import unittest

import cases
import live
import proc

CALLS = "sys:getpid"
MEMORY = 64 << 20  # what the stream may hold beside the rings


class Stopped(unittest.TestCase):
    """O22: two threads, 10,000 calls a second, and a reader that does not read for a while."""
    BUFFER = 256 << 10

    def stop_for(self, seconds):
        load = live.Load("calls", "-t", 2, "-m", 1000 * seconds + 4000, "-r", 5000, "getpid")
        with load, live.Trace("-e", CALLS, "-p", load.pid, "--buffer", self.BUFFER) as trace:
            at_start = proc.high_water(trace.pid)
            load.go()
            live.wait_until("delivered", lambda: any(trace.lines()))
            trace.signal(signal.SIGSTOP)
            stopped = time.monotonic_ns()
            time.sleep(seconds)
            continued = time.monotonic_ns()
            trace.signal(signal.SIGCONT)
            time.sleep(0.5)
            at_end = proc.high_water(trace.pid)
            made = sum(count for _, _, count in load.end()["calls"])
            self.assertEqual(trace.end(), 0)
            ledger = trace.ledger()
            trace.verify()
            lines = list(trace.lines())
        live.assert_account(self, ledger)
        self.assertEqual(live.steps_back(lines), 0)
        self.assertEqual(live.calls_accounted(ledger), 2 * made)
        self.gaps_cover(lines, stopped, continued)
        gaps = [line["lost"] for line in lines if line["event"] == "gap"]
        self.assertEqual(sum(gaps), live.lost(ledger))
        self.assertEqual(live.lost(ledger), live.lost(ledger, "reserve_failed"))
        # The rings are mapped twice, one behind the other.
        self.assertLess(at_end, at_start + MEMORY + 3 * self.BUFFER)
        print(f"{seconds} s: {live.lost(ledger)} of {2 * made} lost in {len(gaps)} gaps, "
              f"{at_start >> 10} KiB at the start, {at_end >> 10} KiB at most")

    def gaps_cover(self, lines, stopped, continued):
        """There is loss while it was stopped, and what came before and after it is there."""
        during = [line for line in lines if line["event"] == "gap"
                  and int(line["to"]) > stopped and int(line["from"]) < continued]
        self.assertTrue(during)
        events = [int(line["ts"]) for line in lines if line["event"] != "gap"]
        self.assertLess(events[0], stopped)
        self.assertGreater(events[-1], continued)

    def test_for_one_second(self):
        self.stop_for(1)

    def test_for_five_seconds(self):
        self.stop_for(5)


class Signals(unittest.TestCase):
    def run_under(self, load, signum):
        with live.Trace("-e", CALLS, "-p", load.pid) as trace:
            live.wait_until("delivered", lambda: any(trace.lines()))
            self.assertEqual(trace.stop(signum), 0)
            live.assert_account(self, trace.ledger())
            trace.verify()
            last = trace.said().splitlines()[-1]
        self.assertEqual(json.loads(last)["closes"], True)

    def test_that_end_it(self):
        """Ctrl-C, kill, and a terminal that is closed: each ends with the account."""
        with live.Load("calls", "-m", 60000, "-r", 1000, "getpid") as load:
            load.go()
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(signal.Signals(signum).name):
                    self.run_under(load, signum)

    def test_that_is_ignored(self):
        """nohup: the terminal goes, the trace goes on."""
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            trace = live.Trace("-f", "none")
        finally:
            signal.signal(signal.SIGHUP, before)
        with trace:
            trace.signal(signal.SIGHUP)
            with self.assertRaises(subprocess.TimeoutExpired):
                trace.process.wait(timeout=1)
            self.assertEqual(trace.stop(), 0)

    def test_that_asks(self):
        """SIGUSR1 is answered with one line, and the trace goes on."""
        with live.Load("calls", "-n", 100, "getpid") as load, \
                live.Trace("-e", CALLS, "-p", load.pid) as trace:
            before = trace.said()
            trace.signal(signal.SIGUSR1)
            live.wait_until("answered", lambda: trace.said().endswith("}\n"))
            answer = trace.said()[len(before):]
            load.run()
            self.assertEqual(trace.end(), 0)
            last = trace.said()[len(before) + len(answer):]
            self.assertEqual(live.lost(trace.ledger()), 0)
        self.assertEqual(answer.count("\n"), 1)
        self.assertEqual(json.loads(answer)["delivered"], 0)
        self.assertEqual(json.loads(last)["delivered"], 200)

    def test_that_kills_it(self):
        """kill -9: the kernel lets go of all that was weir's, and the next one works."""
        with live.Load("calls", "-m", 60000, "-r", 1000, "getpid") as load:
            load.go()
            with live.Trace("-e", CALLS, "-p", load.pid) as trace:
                programs = proc.bpf_objects(trace.pid, "prog")
                self.assertGreater(len(programs), 3)
                self.assertTrue(all(map(proc.has_bpf_object, programs)))
                self.assertEqual(trace.stop(signal.SIGKILL), -signal.SIGKILL)
                live.wait_until("unloaded", lambda: not any(map(proc.has_bpf_object, programs)))
            self.run_under(load, signal.SIGINT)


class Many(unittest.TestCase):
    def test_twenty_times(self):
        for _ in range(20):
            status, out, said = live.run("trace", "-f", "none", "-d", "20ms")
            self.assertEqual((status, out), (0, ""), said)
            self.assertRegex(said, r"\Aproduced [0-9]+ = [^\n]*\n\Z")
            self.assertNotIn("DOES NOT CLOSE", said)

    def test_ten_at_once(self):
        """Each has all."""
        calls = 2000
        with live.Load("calls", "-n", calls, "getpid") as load, contextlib.ExitStack() as stack:
            traces = [stack.enter_context(live.Trace("-e", CALLS, "-p", load.pid))
                      for _ in range(10)]
            load.run()
            for trace in traces:
                self.assertEqual(trace.end(), 0)
                live.assert_account(self, trace.ledger())
                trace.verify()
                self.assertEqual(len(trace.events("sys_enter", "sys_exit")), 2 * calls)


class Idle(unittest.TestCase):
    SECONDS = 5

    def test_costs_next_to_nothing(self):
        """Of one CPU, with nothing to read: less than 1 %."""
        with live.Child(["sleep", "60"]) as sleeper, live.Trace("-p", sleeper.pid) as trace:
            start, at_start = time.monotonic_ns(), proc.cpu_ns(trace.pid)
            time.sleep(self.SECONDS)
            spent = (proc.cpu_ns(trace.pid) - at_start) / (time.monotonic_ns() - start)
            self.assertEqual(trace.stop(), 0)
        print(f"idle: {100 * spent:.3f} % of a CPU")
        self.assertLess(spent, 0.01)


if __name__ == "__main__":
    cases.main()
