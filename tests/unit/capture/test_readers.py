#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every class of event, late ones and several parts, as other readers take them.

    test_readers.py SAMPLES
"""
import subprocess
import sys
import tempfile
import unittest

import cases
import ctf

SAMPLES = sys.argv[1]
OWN = ("gap", "clock_step", "mark", "part", "account", "task", "file")


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="weir-capture-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = cls.temporary.name
        done = subprocess.run([SAMPLES, cls.folder], stdout=subprocess.PIPE, check=True)
        cls.written = int(done.stdout)

    def test_packets(self):
        ctf.check(self, self.folder, checksums=True)
        self.assertEqual(ctf.parts(self.folder), [1, 2, 3, 4, 5, 6])

    def test_all_events(self):
        """No message, the same count of everything, and a third of it late."""
        events, discarded = ctf.read_both(self, self.folder)
        counts = ctf.counts(events)
        late = sum(count for name, count in counts.items() if name.startswith("late:"))
        self.assertEqual(sum(counts.values()) - sum(counts[name] for name in OWN), self.written)
        self.assertEqual(3 * late, self.written)
        self.assertEqual({name: counts[name] for name in OWN},
                         {"gap": 6, "clock_step": 3, "mark": 9, "part": 6, "account": 3,
                          "task": 60000, "file": 9})
        self.assertEqual(discarded, 18)

    def test_order(self):
        """Of a stream: as it stands in the file, also where stamps are equal."""
        for reader in ctf.READERS:
            events, _ = ctf.read(self, self.folder, reader)
            plain = [event for event in events
                     if event.name not in OWN and not event.name.startswith("late:")]
            seqs = [ctf.number(event, "seq") for event in plain]
            self.assertEqual(seqs, sorted(seqs))
            late = [event for event in events if event.name.startswith("late:")]
            seqs = [int(event.text.split(" seq = ")[1].split(" ")[0].rstrip(",")) for event in late]
            self.assertEqual(seqs, sorted(seqs))


if __name__ == "__main__":
    cases.main()
