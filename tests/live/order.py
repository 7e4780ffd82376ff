#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two loops of uname(), one on each CPU: no step back, nothing late, and every call is there.

That such a load steps back where nobody orders it is what order_readers.c shows.
"""
import unittest

import cases
import live

CALLS = "sys:uname"


class Order(unittest.TestCase):
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
        self.assertEqual(ledger["delivered"] + live.lost(ledger), 2 * made)
        return ledger

    def test_json(self):
        """G1, G2, G4 in the trace as it is written."""
        with self.loops("-m", 5000, "-r", 10000) as load, \
                live.Trace("-e", CALLS, "-p", load.pid, "--watermarks") as trace:
            told = load.run()
            self.assertEqual(trace.end(), 0)
            ledger = self.assert_all_there(trace, told)
            self.assertEqual(live.steps_back(trace.lines()), 0)
            trace.verify()
            records = trace.events("sys_enter", "sys_exit")
            self.assertEqual(len(records), ledger["delivered"])
            if not live.lost(ledger):
                self.assert_each_call(records, told)

    def assert_each_call(self, records, told):
        """Entered, left, entered, left: on its CPU, as often as the loop did."""
        for tid, cpu, calls in told["calls"]:
            mine = [r for r in records if r["tid"] == tid]
            self.assertEqual([r["event"] for r in mine], ["sys_enter", "sys_exit"] * calls)
            self.assertEqual({(r["cpu"], r["syscall"]) for r in mine}, {(cpu, "uname")})
            self.assertEqual({r["args"]["ret"] for r in mine[1::2]}, {0})

    def test_as_fast_as_they_can(self):
        """G4: however much is lost, it is counted to the unit."""
        with self.loops("-m", 3000) as load, \
                live.Trace("-e", CALLS, "-p", load.pid, form="none") as trace:
            told = load.run()
            self.assertEqual(trace.end(), 0)
            ledger = self.assert_all_there(trace, told)
            print(f"{ledger['delivered']} delivered, {live.lost(ledger)} lost")


if __name__ == "__main__":
    cases.main()
