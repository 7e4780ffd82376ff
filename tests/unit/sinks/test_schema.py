#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The schemas and what the sink really writes: they agree, and the schemas are strict.

Arguments: the program `samples`, the folder of the schemas.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cases
import validate

SAMPLES, SCHEMAS = sys.argv[1:3]


def samples(what):
    return subprocess.run([SAMPLES, what], check=True, stdout=subprocess.PIPE).stdout


def schema_path(name):
    return os.path.join(SCHEMAS, f"weir-{name}.schema.json")


class Schema(unittest.TestCase):
    def setUp(self):
        self.trace = validate.validator(schema_path("trace"))
        self.ledger = validate.validator(schema_path("ledger"))
        self.lines = samples("trace").splitlines(keepends=True)

    def first(self, **having):
        """The first sample that has these members."""
        for line in self.lines:
            value = json.loads(line)
            if all(value.get(key) == want for key, want in having.items()):
                return value
        raise AssertionError(f"no sample has {having}")

    def assert_bad(self, value, check=None):
        with self.assertRaises(validate.Bad):
            validate.check_line(check or self.trace, json.dumps(value).encode())

    def test_the_sink_writes_what_the_schema_says(self):
        self.assertGreater(validate.check_lines(self.trace, self.lines), 80)

    def test_every_event_has_a_sample(self):
        with open(schema_path("trace"), encoding="utf-8") as f:
            ways = json.load(f)["properties"]["event"]["anyOf"]
        named = set().union(*(way.get("enum", []) for way in ways))
        self.assertEqual({json.loads(line)["event"] for line in self.lines}, named)

    def test_events_whose_names_others_give(self):
        line = self.first(event="fork")
        line["event"] = "tp:sched:sched_switch"
        validate.check_line(self.trace, json.dumps(line).encode())
        for name in ("tp:sched", "tp:a:b:c", "other"):
            line["event"] = name
            self.assert_bad(line)

    def test_the_ledger(self):
        self.assertEqual(validate.check_lines(self.ledger, [samples("ledger")]), 1)

    def test_no_digit_is_lost(self):
        value = self.first(event="fork", tid=1)
        self.assertEqual(value["ts"], str(2**64 - 1))
        self.assertEqual(value["seq"], 2**64 - 1)
        self.assertEqual(value["args"]["int"], -2**63)

    def test_no_key_too_many(self):
        for line in self.lines:
            value = json.loads(line)
            value["more"] = 1
            self.assert_bad(value)

    def test_no_key_too_few(self):
        optional = {"fds", "cpu", "comm", "container", "late", "ahead", "unread", "cut", "bound", "abi",
                    "error"}
        for line in self.lines:
            value = json.loads(line)
            # A gap of the whole machine has no source, and some have no numbers.
            free = optional | ({"source", "seq"} if value["event"] == "gap" else set())
            # One that was cut short may be of the whole machine.
            free |= {"source"} if value["event"] == "syscall" and "seq" not in value else set()
            for key in set(value) - free:
                self.assert_bad({k: v for k, v in value.items() if k != key})

    def test_no_value_of_another_type(self):
        for line in self.lines:
            value = json.loads(line)
            for key in value:
                self.assert_bad({**value, key: {"a": {}}})
                self.assert_bad({**value, key: 1.5})

    def test_stamps(self):
        value = self.first(event="fork")
        for ts in (1, "", "01", "-1", "1.0", "0x1", "1" * 21, " 1"):
            self.assert_bad({**value, "ts": ts})

    def test_strings_that_cannot_be_turned_back(self):
        value = self.first(event="fork")
        for comm in ("\\", "a\\b", "\\x4", "\\x41", "\\xfg", "\\\\\\"):
            self.assert_bad({**value, "comm": comm})
        for comm in ("\\\\", "\\xff", "\\\\x41", "é", ""):
            validate.check_line(self.trace, json.dumps({**value, "comm": comm}).encode())

    def test_gaps_know_their_bounds(self):
        gap = self.first(event="gap", source="cpu1", cause="reserve_failed")
        self.assert_bad({**gap, "lost": -1})
        self.assert_bad({**gap, "bound": "exact"})
        self.assert_bad({**gap, "cause": "bad luck"})
        self.assert_bad({k: v for k, v in gap.items() if k != "seq_end"})
        self.assert_bad({k: v for k, v in gap.items() if k != "source"})

    def test_calls_are_whole_or_say_why_not(self):
        calls = [json.loads(line) for line in self.lines if b'"event":"syscall"' in line]
        returned = next(c for c in calls if "seq" in c and c["enter"] is not None)
        alone = next(c for c in calls if c["enter"] is None)
        broken = next(c for c in calls if "broken" in c)
        for key in ("enter", "dur_ns", "result", "args"):
            self.assertIsNotNone(returned[key])
        for wrong in ({**returned, "broken": True}, {**returned, "result": None},
                      {**returned, "args": None}, {**returned, "enter": None},
                      {**alone, "args": {}}, {**alone, "dur_ns": 1},
                      {**broken, "seq": 1}, {**broken, "result": 0}, {**broken, "dur_ns": 1},
                      {**broken, "unfinished": True}, {**broken, "broken": False},
                      {**broken, "enter": None, "args": None}):
            self.assert_bad(wrong)

    def test_the_ledger_is_strict(self):
        value = json.loads(samples("ledger"))
        for key in value:
            self.assert_bad({k: v for k, v in value.items() if k != key}, self.ledger)
            self.assert_bad({**value, key: 1.5}, self.ledger)
        self.assert_bad({**value, "more": 1}, self.ledger)
        self.assert_bad({**value, "lost": {"bad luck": 1}}, self.ledger)
        source = value["sources"][0]
        for key in set(source) - {"cpu", "busy_since"}:
            less = {k: v for k, v in source.items() if k != key}
            self.assert_bad({**value, "sources": [less]}, self.ledger)
        self.assert_bad({**value, "sources": [{**source, "more": 1}]}, self.ledger)

    def test_validate_finds_what_json_readers_let_pass(self):
        good = self.lines[0]
        for bad in (good.replace(b'{"ts"', b'{"ts":"1","ts"'), good[:-1], b"\xff\n", b"NaN\n",
                    b"\n"):
            with self.assertRaises(validate.Bad):
                validate.check_lines(self.trace, [good, bad])
        with self.assertRaises(validate.Bad):
            validate.check_lines(self.trace, [])

    def test_validate_as_a_program(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"".join(self.lines))
            f.flush()
            self.assertEqual(validate.main(["validate.py", schema_path("trace"), f.name]), 0)
            f.write(b"{}\n")
            f.flush()
            self.assertEqual(validate.main(["validate.py", schema_path("trace"), f.name]), 1)
        self.assertEqual(validate.main(["validate.py"]), 2)


if __name__ == "__main__":
    cases.main()
