#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""completions/weir.bash: a line as readline hands it over, and what it offers.

    test_bash.py SCRIPT WEIR
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases

SCRIPT, WEIR = (os.path.abspath(path) for path in sys.argv[1:3])

ASK = """
. "$1"
COMP_LINE=$2 COMP_POINT=${#2}
COMP_WORDS=("${@:3}") COMP_CWORD=$(($# - 3))
_weir
printf '%s\\n' "${COMPREPLY[@]}"
"""


def words(line):
    """As readline has them: they end at blanks, and = and : are words as well."""
    found = re.findall(r"[=:]+|[^\s=:]+", line)
    return found + [""] * (line[-1:].isspace())


def offered(line):
    """What there is for the end of `weir LINE`."""
    done = subprocess.run(["bash", "--norc", "-c", ASK, "bash", SCRIPT, "weir " + line, WEIR]
                          + words(line), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=20)
    assert not done.stderr, done.stderr.decode()
    return [word for word in done.stdout.decode().splitlines() if word]


class Offers(unittest.TestCase):
    def test_commands(self):
        self.assertEqual(offered("tr"), ["trace"])
        self.assertLessEqual({"trace", "verify", "doctor"}, set(offered("")))

    def test_all_options_of_help(self):
        for command in ("trace", "record", "top", "verify", "doctor"):
            told = subprocess.run([WEIR, command, "--help"], check=True,
                                  stdout=subprocess.PIPE).stdout.decode()
            options = told.split("Options:\n")[1].split("\n\n")[0]
            names = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", options, re.M)
            self.assertGreater(len(names), 1)
            self.assertEqual(offered(f"{command} -"), names)

    def test_words_of_top(self):
        self.assertEqual(offered("top --by c"), ["cgroup", "container", "cpu"])
        self.assertEqual(offered("top -o p"), ["p50", "p99", "pid"])

    def test_groups_and_classes(self):
        self.assertEqual(offered("trace -e proc"), ["process"])
        self.assertEqual(offered("trace --events %f"), ["%file"])
        self.assertEqual(offered("trace -y -e process,sig"), ["process,signal"])

    def test_names_of_a_group(self):
        """Behind a colon, readline replaces only what follows it."""
        self.assertEqual(offered("trace -e process:"), ["exec", "exit", "fork"])
        self.assertIn("openat", offered("trace -e sys:open"))
        self.assertEqual(offered("trace -e sys:openat,!renameat2"), ["openat,!renameat2"])
        self.assertEqual(offered("trace -e signal:open"), [])

    @unittest.skipUnless(os.access("/sys/kernel/tracing/events", os.R_OK), "tracefs is not ours")
    def test_tracepoints(self):
        """From tracefs, behind whatever stands before them."""
        self.assertIn("sched", offered("trace -e tp:sch"))
        self.assertEqual(offered("trace -e tp:sched:sched_swit"), ["sched_switch"])
        self.assertEqual(offered("trace -e process,!tp:sched:sched_swit"), ["sched_switch"])
        self.assertEqual(offered("trace -e tp:no_such_group:"), [])

    def test_words_of_options(self):
        self.assertEqual(offered("trace -f j"), ["json"])
        self.assertEqual(offered("trace --time d"), ["delta"])
        self.assertEqual(offered("trace --color "), ["auto", "always", "never"])
        self.assertIn(str(os.getpid()), offered("trace -p "))
        self.assertEqual(offered("trace --uid roo"), ["root"])
        # Nothing is known of these: no option, and no command either.
        self.assertEqual(offered("trace --duration "), [])

    def test_files(self):
        with tempfile.TemporaryDirectory(prefix="weir-") as where:
            path = os.path.join(where, "a trace")
            with open(path, "wb"):
                pass
            for line in ("verify ", "verify --ledger ", "trace -o ", "record -o ", "trace --pair -P ",
                         "trace -e sys:open cat "):
                self.assertEqual(offered(line + path[:-6]), [path], line)
            self.assertEqual(offered(f"doctor {path[:-6]}"), [])

    def test_command_and_its_words(self):
        self.assertIn("bash", offered("trace -y bas"))
        self.assertIn("bash", offered("trace -- bas"))
        self.assertIn("bash", offered("record -o x bas"))
        # They are its own: no options of weir's.
        self.assertEqual(offered("trace ls --comm"), [])
        self.assertEqual(offered("trace -- ls --comm"), [])


if __name__ == "__main__":
    cases.main()
