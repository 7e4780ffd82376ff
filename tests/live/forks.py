#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lives: each child's fork, exec and exit, in this order; and the selection that follows children."""
import collections
import os
import signal
import subprocess
import unittest

import cases
import live

TINY = os.path.join(live.LOADS, "tiny")


class Storm(unittest.TestCase):
    """10,000 children of two parents, one on each CPU (more where it has to last)."""
    CHILDREN = 60000 if live.SOAK else 10000

    @classmethod
    def setUpClass(cls):
        cpus = live.online_cpus()[:2]
        with live.Load("forks", ",".join(map(str, cpus)), cls.CHILDREN // len(cpus), TINY) as load, \
                live.Trace("--buffer", "64M") as trace:
            cls.load_pid = load.pid
            children = load.run()["child"]
            cls.status = trace.stop()
            cls.ledger = trace.ledger()
            cls.lines = list(trace.lines())
            cls.verified = trace.verify()
        cls.lives = cls.find_lives()
        # The numbers may go round: the n-th that got one has the n-th life under it.
        cls.children = [(child, cls.lives[child[0], child[1]].popleft()) for child in children]

    @classmethod
    def find_lives(cls):
        """{(pid, parent): lives}; a life is [(place in the stream, line)] from its fork on."""
        lives, running = collections.defaultdict(collections.deque), {}
        for place, line in enumerate(cls.lines):
            pid = line.get("pid")  # gaps have none
            if line["event"] == "fork":
                pid = line["args"]["child_pid"]
                running[pid] = []
                lives[pid, line["pid"]].append(running[pid])
            if pid in running:
                running[pid].append((place, line))
        return lives

    def test_nothing_is_lost(self):
        self.assertEqual(self.status, 0)
        live.assert_account(self, self.ledger)
        self.assertEqual(live.lost(self.ledger), 0)
        self.assertEqual(live.steps_back(self.lines), 0)

    def test_fork_before_exec_before_exit(self):
        """None missing, and the ids are those that fork() gave to the parent."""
        self.assertEqual(len(self.children), self.CHILDREN)
        for (pid, parent, *_), life in self.children:
            (_, fork), (_, execed), (_, end) = life
            self.assertEqual([fork["event"], execed["event"], end["event"]],
                             ["fork", "exec", "exit"])
            self.assertEqual((fork["pid"], fork["tid"]), (parent, parent))
            self.assertEqual(fork["args"],
                             {"child_pid": pid, "child_tid": pid, "thread": False})
            self.assertEqual((execed["tid"], execed["args"]["ppid"]), (pid, parent))
            self.assertEqual(end["tid"], pid)

    def test_path_argv_and_status(self):
        for (_, _, _, i, status), life in self.children:
            _, (_, execed), (_, end) = life
            self.assertEqual(execed["args"]["path"], TINY)
            self.assertEqual(execed["args"]["argv"], [TINY, str(i % 128), str(i)])
            self.assertEqual(execed["comm"], "tiny")
            self.assertEqual(status, i % 128)
            self.assertEqual(end["args"], {"code": status, "core": False, "process": True})

    def test_parent_before_child(self):
        """The parents' own forks stand before all that their children did."""
        for parent in {parent for (_, parent, *_), _ in self.children}:
            (born, fork), (gone, end) = self.lives[parent, self.load_pid][0]
            self.assertEqual((fork["event"], end["event"]), ("fork", "exit"))
            for (_, whose, *_), life in self.children:
                if whose == parent:
                    self.assertLess(born, life[0][0])
                    self.assertLess(life[-1][0], gone)


class Selection(unittest.TestCase):
    """-p: a process and those that it forks from then on."""
    CHILDREN = 50

    def forks(self):
        return live.Load("forks", live.online_cpus()[0], self.CHILDREN, TINY)

    def test_only_descendants(self):
        with self.forks() as chosen, self.forks() as other, live.Trace("-p", chosen.pid) as trace:
            others = other.run()["child"]
            children = chosen.run()["child"]
            # It ends since the last of them has.
            self.assertEqual(trace.end(), 0)
            ledger = trace.ledger()
            live.assert_account(self, ledger)
            trace.verify()
            lines = trace.events("fork", "exec", "exit")
        family = {pid for row in children for pid in row[:2]} | {chosen.pid}
        self.assertEqual({line["pid"] for line in lines}, family)
        count = len(children)
        for event, want in (("fork", count + 1), ("exec", count), ("exit", count + 2)):
            self.assertEqual(sum(line["event"] == event for line in lines), want)
        # Fork, exec and exit of each, but for the last exit.
        self.assertGreaterEqual(ledger["filtered"], 3 * len(others))

    def test_several(self):
        with self.forks() as one, self.forks() as two, \
                live.Trace("-p", f"{one.pid},{two.pid}") as trace:
            told = [one.run(), two.run()]
            self.assertEqual(trace.end(), 0)
            execed = [line["pid"] for line in trace.events("exec")]
        self.assertEqual(execed, [row[0] for one in told for row in one["child"]])

    def test_lives_on_in_a_child(self):
        """The selected process ends before its child does: the trace goes on."""
        script = "read go; (sleep 0.3; exec true) & exit 0"
        with live.Child(["sh", "-c", script], stdin=subprocess.PIPE) as shell, \
                live.Trace("-p", shell.pid) as trace:
            shell.process.communicate(b"\n", timeout=live.PATIENCE_S)
            self.assertEqual(trace.end(), 0)
            lines = trace.events("exec", "exit")
        self.assertEqual(lines[-1]["event"], "exit")
        self.assertNotEqual(lines[-1]["pid"], shell.pid)
        self.assertTrue(lines[-2]["args"]["path"].endswith("/true"))

    def test_a_thread_is_refused(self):
        """... and the message says whose it is."""
        with live.Load("calls", "-t", 1, "-m", 60000, "-r", 1000, "getpid") as load:
            load.go()
            tasks = f"/proc/{load.pid}/task"
            live.wait_until("a thread", lambda: len(os.listdir(tasks)) > 1)
            tid = max(map(int, os.listdir(tasks)))
            status, out, said = live.run("trace", "-p", tid)
            load.signal(signal.SIGKILL)
        self.assertEqual((status, out), (2, ""))
        self.assertIn(f"{tid} is a thread of process {load.pid}", said)

    def test_nobody(self):
        with live.Child(["true"]) as gone:
            gone.process.wait()
        status, _, said = live.run("trace", "-p", gone.pid)
        self.assertEqual(status, 2)
        self.assertIn(f"no process {gone.pid}", said)


if __name__ == "__main__":
    cases.main()
