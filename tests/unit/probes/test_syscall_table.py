#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""probes/syscalls.tbl against what the machine knows better: the kernel's headers and its tracefs.

Headers may be older than the table or newer. Where both have a call they have to agree; neither may
lack a call that the other has, below the end of the shorter one.
"""
import glob
import os
import platform
import re
import subprocess
import sys
import tempfile
import unittest

import cases

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3)
PROBES = os.path.join(TOP, "probes")
TABLE = os.path.join(PROBES, "syscalls.tbl")
TRACEFS = "/sys/kernel/tracing/events/syscalls"

sys.path.insert(0, PROBES)
import syscalls  # noqa: E402 (the generator)

DEFINE = re.compile(r"#define __NR(3264)?_(\w+) (.*)")
NUMBER = re.compile(r"\(?(?:__X32_SYSCALL_BIT \+ )?(\d+)\)?")
GENERIC = ["-D__ARCH_WANT_RENAMEAT", "-D__ARCH_WANT_SET_GET_RLIMIT", "-D__ARCH_WANT_NEW_STAT",
           "-D__ARCH_WANT_MEMFD_SECRET", "-D__ARCH_WANT_SYS_CLONE3", "-D__ARCH_WANT_TIME32_SYSCALLS"]

# Not calls: an end, the begin of a range, and another architecture's number.
NO_CALLS = {"syscalls", "arch_specific_syscall"}
# Calls that were given a number below those that were the last at that time.
LATER = {"uprobe", "uretprobe"}
# Calls that tracefs has under the name of the function.
FUNCTIONS = {"stat": "newstat", "lstat": "newlstat", "fstat": "newfstat", "uname": "newuname",
             "sendfile": "sendfile64", "umount2": "umount"}


def macros(header, *options):
    """What a header defines, or None where the machine has no such header."""
    compiler = os.environ.get("CC", "cc").split()
    done = subprocess.run([*compiler, "-E", "-dM", *options, "-x", "c", "-"], text=True,
                          input=f"#include <{header}>\n", capture_output=True, check=False)
    if done.returncode:
        if re.search(r"file not found|No such file", done.stderr):
            return None
        raise RuntimeError(done.stderr)
    found = map(DEFINE.fullmatch, done.stdout.splitlines())
    return {("3264_" if m[1] else "") + m[2]: m[3] for m in found if m}


def numbers(header, *options):
    defined = macros(header, *options)
    if defined is None:
        return None
    found = {}
    for name, value in defined.items():
        if value.startswith("__NR3264_"):
            value = defined["3264_" + value.removeprefix("__NR3264_")]
        match = NUMBER.fullmatch(value)
        if match and not name.startswith("3264_") and name not in NO_CALLS:
            found[name] = int(match[1])
    return found


def end(found):
    """The last number; new calls follow it. Those that x32 alone has stand apart, far above."""
    return max(nr for nr in found if nr < 512)


class Table(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.calls = syscalls.read(TABLE)

    def numbered(self, numbering):
        column = syscalls.NUMBERINGS.index(numbering)
        return {call.name: call for call in self.calls if call.numbers[column] >= 0}, column

    def compare(self, numbering, header, *options):
        known = numbers(header, *options)
        if known is None:
            self.skipTest(f"no {header} on this machine")
        self.assertGreater(len(known), 250)
        ours, column = self.numbered(numbering)
        last = min(end(known.values()), end(call.numbers[column] for call in ours.values()))
        for name, nr in known.items():
            if name in ours:
                self.assertEqual(ours[name].numbers[column], nr, name)
            else:
                self.assertGreater(nr, last, f"{name} is not in the table")
        for name, call in ours.items():
            if name not in known and name not in LATER:
                self.assertGreater(call.numbers[column], last, f"{name} is not in {header}")

    def test_x86_64_header(self):
        self.compare("x86_64", "asm/unistd_64.h")

    def test_x32_header(self):
        self.compare("x32", "asm/unistd_x32.h")

    def test_i386_header(self):
        self.compare("i386", "asm/unistd_32.h")

    def test_arm64_header(self):
        self.compare("arm64", "asm-generic/unistd.h", *GENERIC)

    def test_tracefs(self):
        if not glob.glob(TRACEFS + "/*/format"):
            self.skipTest(f"{TRACEFS} is not readable")
        native = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]
        ours, _ = self.numbered(native)
        compared = 0
        for name, call in ours.items():
            path = f"{TRACEFS}/sys_enter_{FUNCTIONS.get(name, name)}/format"
            if os.path.exists(path):
                self.compare_arguments(call, path)
                compared += 1
        self.assertGreater(compared, 250)

    def compare_arguments(self, call, path):
        with open(path, encoding="ascii") as file:
            fields = re.findall(r"field:[^;]*?(\w+);\s+offset:(\d+);", file.read())
        theirs = [name.lstrip("_") for name, offset in fields if int(offset) >= 16]
        # The names are those of 6.18; other kernels call some arguments otherwise.
        if platform.release().startswith("6.18."):
            self.assertEqual(call.names, theirs, call.name)
        self.assertEqual(len(call.names), len(theirs), call.name)


class Generator(unittest.TestCase):
    def check(self, table):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.tbl")
            with open(path, "w", encoding="ascii") as file:
                file.write(table)
            done = subprocess.run([sys.executable, os.path.join(PROBES, "syscalls.py"), path,
                                   os.path.join(folder, "out")],
                                  capture_output=True, text=True, check=False)
        self.assertNotIn("Traceback", done.stderr)
        return done.returncode, done.stderr

    def test_takes_what_is_right(self):
        for line in ("a 1 = 2 3 4", "a 1 2 - - - x:fd y:str?x=3", "a - - 1 - - s:str(n) n:int",
                     "# a\n\na 1 - - - -\na - - 1 - - x:int", "a 0 - - - - x:flags:open"):
            with self.subTest(line):
                self.assertEqual(self.check(line + "\n"), (0, ""))

    def test_refuses_what_is_wrong(self):
        for line in ("a", "a 1 2 3 4", "a - - - - -", "a 1024 - - - -", "a x - - - -",
                     "a - = - - -", "a 1 - = - -", "a 1 = 2 3 4 x", "a 1 = 2 3 4 x:nothing",
                     "a 1 = 2 3 4 x:int:set", "a 1 = 2 3 4 x:flags", "a 1 = 2 3 4 x:int x:int",
                     "a 1 = 2 3 4 x:int(y) y:int", "a 1 = 2 3 4 x:sockaddr",
                     "a 1 = 2 3 4 x:str(y)", "a 1 = 2 3 4 x:str?y=1", "a 1 = 2 3 4 x:fd?y=1 y:int",
                     "a 1 = 2 3 4 x:str(n) n:int y:str", "a 1 = 2 3 4 " +
                     " ".join(f"x{i}:int" for i in range(7)),
                     "a 1 - - - -\nb 1 - - - -", "a 1 - - - -\na 2 - - - - x:int"):
            with self.subTest(line):
                status, message = self.check(line + "\n")
                self.assertEqual(status, 1)
                self.assertNotEqual(message, "")


if __name__ == "__main__":
    cases.main()
