#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""weir bench measures all it says, in a form that programs read, and leaves nothing behind. How fast
anything was is not asked: that depends on the machine."""
import json
import os
import signal
import subprocess
import unittest

import cases
import live
import proc

PARTS = ("probe", "order", "latency", "throughput")
NOBODY = 65534


def bench(*args, weir=live.WEIR, **more):
    return subprocess.run([weir, "bench"] + list(args), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=live.PATIENCE_S, **more)


def our_programs():
    """The ids of BPF programs on the machine, by what the measuring ones are called."""
    names = ("flood", "ring_asks", "string_dynptr")
    shown = subprocess.run([proc.BPFTOOL, "-j", "prog", "show"], check=True,
                           stdout=subprocess.PIPE).stdout
    return {program["id"] for program in json.loads(shown) if program.get("name") in names}


class BenchTest(unittest.TestCase):
    def test_json_has_every_part(self):
        done = bench("--quick", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["state"], {part: "done" for part in PARTS})
        self.assertEqual(found["quick"], True)
        self.assertEqual(found["machine"]["cpus"], os.sysconf("SC_NPROCESSORS_ONLN"))
        self.assertEqual(found["machine"]["kernel"], os.uname().release)

        record = {row["way"]: row for row in found["probe"]["record"]}
        self.assertGreaterEqual(set(record), {"empty", "stamp", "ring", "record", "perf"})
        self.assertIn("lane", {row["way"] for row in found["probe"]["switch"]})
        for row in found["probe"]["record"] + found["probe"]["switch"]:
            self.assertLessEqual(row["least_ns"], row["median_ns"])
        # The empty program is given whole, and nothing runs in no time.
        self.assertGreater(record["empty"]["least_ns"], 0)

        rings = [row["rings"] for row in found["order"]]
        self.assertEqual((rings[0], rings[-1]), (1, 1024))
        self.assertEqual(rings, sorted(rings))
        for row in found["order"]:
            self.assertGreater(row["weir_ns"], 0)
            self.assertGreater(row["unsorted_ns"], 0)

        self.assertEqual({(row["fence"], row["cpus"]) for row in found["latency"]},
                         {(fence, cpus) for fence in ("reserve", "rcu", "grace")
                          for cpus in ("free", "busy")})
        for row in found["latency"]:
            self.assertGreater(row["events"], 0, row)
            self.assertLessEqual(row["p50_us"], row["p99_us"])
            self.assertLessEqual(row["p99_us"], row["max_us"])

        self.assertGreater(found["throughput"]["events_per_s"], 0)
        self.assertIn(found["throughput"]["limited_by"], ("load", "loss"))

    def test_a_named_part_alone(self):
        done = bench("--quick", "--json", "order")
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(found["state"], {"probe": "not asked for", "order": "done",
                                          "latency": "not asked for",
                                          "throughput": "not asked for"})
        self.assertIsNone(found["probe"])
        self.assertTrue(found["order"])

    def test_text_is_a_table(self):
        said = bench("--quick", "order").stdout.decode()
        self.assertIn("load average", said.splitlines()[0])
        self.assertRegex(said, r"(?m)^ +1024 +[\d.]+ +[\d.]+$")

    def test_without_root_the_rest_is_measured(self):
        with live.for_everybody() as weir:
            done = bench("--quick", "--json", weir=weir, user=NOBODY, group=NOBODY,
                         extra_groups=[])
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(found["state"], {"probe": "needs root", "order": "done",
                                          "latency": "needs root", "throughput": "needs root"})
        self.assertIn(b"weir bench: latency needs root", done.stderr)

    def test_no_such_part(self):
        done = bench("speed")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"there is no part 'speed'", done.stderr)

    def test_a_signal_ends_it_and_its_programs(self):
        others = our_programs()
        for signum in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signum), live.Child([live.WEIR, "bench", "--json", "latency", "order"],
                                                  stdout=subprocess.PIPE,
                                                  stderr=subprocess.PIPE) as child:
                live.wait_until("measuring", lambda: our_programs() - others)
                child.signal(signum)
                out, said = child.process.communicate(timeout=live.PATIENCE_S)
                self.assertEqual(child.process.returncode, 1)
                self.assertIn(b"stopped", said)
                found = json.loads(out)
                self.assertEqual(found["state"]["latency"], "stopped")
                self.assertIsNone(found["latency"])
                # The kernel lets go of them a moment after the process has.
                live.wait_until("gone", lambda: not our_programs() - others)


if __name__ == "__main__":
    cases.main()
