#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Order: of a loop of uname() on each CPU no step back, nothing late, and every call is there.

That such a load steps back where nobody orders it is what order_readers.c shows.
"""
import unittest

import cases
import live

CALLS = "sys:uname"


class Order(unittest.TestCase):
    SECONDS = 60 if live.SOAK else 10

    def setUp(self):
        self.cpus = live.online_cpus()

    def loops(self, *args):
        return live.Load("calls", "-c", ",".join(map(str, self.cpus)), "-t", len(self.cpus), *args,
                         "uname")

    def assert_all_there(self, trace, told):
        """Each call is two records, entered and left, delivered or counted as lost."""
        ledger = trace.ledger()
        live.assert_account(self, ledger)
        made = sum(calls for _, _, calls in told["calls"])
        self.assertEqual(live.calls_accounted(ledger), 2 * made)
        return ledger

    def test_json(self):
        """G1, G2, G4 in the trace as it is written."""
        with self.loops("-m", 1000 * self.SECONDS, "-r", 5000) as load, \
                live.Trace("-e", CALLS, "-p", load.pid, "--watermarks") as trace:
            told = load.run()
            self.assertEqual(trace.end(), 0)
            ledger = self.assert_all_there(trace, told)
            trace.verify()
            order, threads = live.Order(), {}
            for line in trace.lines():
                order.take(line)
                if line["event"] in ("sys_enter", "sys_exit"):
                    threads.setdefault(line["tid"], Thread()).take(line)
        self.assertEqual(order.steps_back, 0)
        self.assertEqual(sum(t.records for t in threads.values()), ledger["delivered"])
        print(f"{ledger['delivered']} delivered, {live.lost(ledger)} lost")
        if not live.lost(ledger):
            self.assert_each_call(threads, told["calls"])

    def assert_each_call(self, threads, told):
        """Entered, left, entered, left: on its CPU, as often as the loop did."""
        self.assertEqual(threads.keys(), {tid for tid, _, _ in told})
        for tid, cpu, calls in told:
            self.assertEqual(threads[tid].records, 2 * calls)
            self.assertEqual(threads[tid].out_of_turn, 0)
            self.assertEqual(threads[tid].places, {(cpu, f"cpu{cpu}", "uname")})

    def test_as_fast_as_they_can(self):
        """G4: however much is lost, it is counted to the unit."""
        with self.loops("-m", 500 * self.SECONDS) as load, \
                live.Trace("-e", CALLS, "-p", load.pid, form="none") as trace:
            told = load.run()
            self.assertEqual(trace.end(), 0)
            ledger = self.assert_all_there(trace, told)
            print(f"{ledger['delivered']} delivered, {live.lost(ledger)} lost")


class Thread:
    """What a thread's records say, one after another."""

    def __init__(self):
        self.records, self.out_of_turn, self.places = 0, 0, set()

    def take(self, line):
        turn = ("sys_enter", "sys_exit")[self.records % 2]
        self.out_of_turn += line["event"] != turn
        self.places.add((line["cpu"], line["source"], line["syscall"]))
        self.records += 1


class Watermarks(unittest.TestCase):
    COUNT = 4

    @staticmethod
    def seconds(trace):
        return [int(line["ts"]) // 10 ** 9 for line in trace.lines()]

    def test_on_an_idle_selection(self):
        """G3: it moves each second though nothing ever comes."""
        with live.Child(["sleep", "600"]) as sleeper, \
                live.Trace("-p", sleeper.pid, "--watermarks") as trace:
            # Some come at the start, and at the end another one.
            live.wait_until("moved on", lambda: len(set(self.seconds(trace))) >= self.COUNT)
            trace.stop()
            lines = list(trace.lines())
        self.assertEqual({line["event"] for line in lines}, {"watermark"})
        self.assertEqual({line["order"] for line in lines}, {"exact"})
        stamps = [int(line["ts"]) for line in lines]
        self.assertEqual(stamps, sorted(set(stamps)))


if __name__ == "__main__":
    cases.main()
