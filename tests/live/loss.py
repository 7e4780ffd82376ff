#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is lost: all of it is counted, in the ledger and by gaps where it was, to the unit (G4)."""
import collections
import signal
import unittest

import cases
import live

SMALL = "64k"
CALLS = "sys:getpid"


class Flood(unittest.TestCase):
    """L3: 16 threads x 62,500 getpid(), so 2,000,000 records, through rings of a few pages."""
    THREADS, CALLS_EACH = 16, 500000 if live.SOAK else 62500

    @classmethod
    def setUpClass(cls):
        with live.Load("calls", "-t", cls.THREADS, "-n", cls.CALLS_EACH, "getpid") as load, \
                live.Trace("-e", CALLS, "-p", load.pid, "--buffer", SMALL, "--strict") as trace:
            cls.told = load.run()["calls"]
            cls.status = trace.end()
            cls.ledger = trace.ledger()
            cls.verified = trace.verify()
            cls.said = trace.said()
            cls.read(trace)

    @classmethod
    def read(cls, trace):
        cls.order, cls.gaps = live.Order(), []
        cls.seqs = collections.defaultdict(set)  # source -> numbers that were delivered
        cls.halves = collections.Counter()  # (thread, entered or left)
        for line in trace.lines():
            cls.order.take(line)
            if line["event"] == "gap":
                cls.gaps.append(line)
            else:
                cls.seqs[line["source"]].add(line["seq"])
                cls.halves[line["tid"], line["event"]] += 1

    def test_to_the_unit(self):
        """L2, L3: against what the loops did, and what the kernel's side counted as failed."""
        made = sum(calls for _, _, calls in self.told)
        self.assertEqual(made, self.THREADS * self.CALLS_EACH)
        live.assert_account(self, self.ledger)
        self.assertEqual(self.ledger["lost"].keys(), {"reserve_failed"})
        self.assertEqual(self.ledger["at_most"], [])
        self.assertEqual(live.calls_accounted(self.ledger), 2 * made)
        self.assertEqual(sum(self.halves.values()), self.ledger["delivered"])
        print(f"{self.ledger['delivered']} delivered, {self.ledger['failed']} lost "
              f"in {len(self.gaps)} gaps")

    def test_gaps_say_the_same(self):
        """L1: each source's gaps add up to its account."""
        by_gaps = collections.Counter()
        for gap in self.gaps:
            self.assertEqual(gap["cause"], "reserve_failed")
            by_gaps[gap["source"]] += gap["lost"]
        self.assertGreater(sum(by_gaps.values()), 0)
        for source in self.ledger["sources"]:
            self.assertEqual(live.lost(source), by_gaps[source["name"]], source["name"])

    def test_gaps_stand_where_it_was(self):
        """L1: in stream order, each at its end, and no number that it has was delivered."""
        self.assertEqual(self.order.steps_back, 0)
        for gap in self.gaps:
            self.assertEqual(gap["ts"], gap["to"])
            self.assertLess(int(gap["from"]), int(gap["to"]))
            numbers = range(gap["seq"], gap["seq_end"])
            delivered = sum(seq in self.seqs[gap["source"]] for seq in numbers)
            # Joined gaps have delivered numbers between theirs.
            self.assertLessEqual(delivered, len(numbers) - gap["lost"])

    def test_each_number_once(self):
        """No record comes twice, and no thread has more of them than it made calls."""
        self.assertEqual(sum(len(seqs) for seqs in self.seqs.values()), self.ledger["delivered"])
        calls = {tid: count for tid, _, count in self.told}
        for (tid, _), count in self.halves.items():
            self.assertLessEqual(count, calls[tid])

    def test_strict(self):
        """--strict makes loss a status of its own."""
        self.assertEqual(self.status, 3)
        self.assertRegex(self.said, r"\nweir trace: [0-9]+ lost: status 3 \(--strict\)\n\Z")

    def test_verify(self):
        self.assertIn("the ledger agrees", self.verified)


class Loss(unittest.TestCase):
    def test_at_the_very_end(self):
        """L4: the reader sleeps while the rings overflow, and nothing comes after that."""
        calls = 20000
        with live.Load("calls", "-n", calls, "getpid") as load, \
                live.Trace("-e", CALLS, "-p", load.pid, "--buffer", SMALL) as trace:
            trace.signal(signal.SIGSTOP)
            load.run()
            trace.signal(signal.SIGCONT)
            self.assertEqual(trace.end(), 0)
            ledger = trace.ledger()
            live.assert_account(self, ledger)
            trace.verify()
            lines = list(trace.lines())
        self.assertEqual(lines[-1]["event"], "gap")
        self.assertEqual(live.calls_accounted(ledger), 2 * calls)
        self.assertGreater(live.lost(ledger), calls)

    def test_strict_without_loss(self):
        with live.Load("calls", "-n", 100, "getpid") as load, \
                live.Trace("-e", CALLS, "-p", load.pid, "--strict") as trace:
            load.run()
            self.assertEqual(trace.end(), 0)
            self.assertEqual(trace.ledger()["lost"], {})


class Self(unittest.TestCase):
    def test_own_writes_are_left_out(self):
        """L6: the trace goes to a file, by calls that are traced: none of them is in it."""
        with live.Load("calls", "-m", 1000, "-r", 5000, "getpid") as load, \
                live.Trace("-e", "sys") as trace:
            told = load.run()["calls"]
            self.assertEqual(trace.stop(), 0)
            ledger = trace.ledger()
            live.assert_account(self, ledger)
            trace.verify()
            own = trace.events(pid=trace.pid)
            others = trace.events("sys_enter", pid=load.pid, syscall="getpid")
        self.assertEqual(own, [])
        self.assertGreater(ledger["self"]["events_left_out"], 0)
        if not live.lost(ledger):
            self.assertEqual(len(others), told[0][2])


if __name__ == "__main__":
    cases.main()
