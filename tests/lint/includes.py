#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds every #include to the rooms of docs/design.md: who may know whom.

    includes.py		prints the includes that go the wrong way, exits 1 if any does
"""
import os
import re
import sys

import tree

ANY = None

# The rooms, the longest path first where one holds another, and the rooms each may include
# besides itself. ANY: all of them.
ROOMS = {
    "include/weir": [],
    "bpf": ["include/weir"],
    "src/ring": ["include/weir", "src"],
    "src/order": ["include/weir", "src", "src/ring"],
    "src/ledger": ["include/weir", "src", "src/ring"],
    "src/source": ["include/weir", "src", "src/ring", "src/ledger"],
    "src/stream": ["include/weir", "src", "src/source", "src/order", "src/ledger", "src/ring"],
    "src": ["include/weir"],
    "probes": ["include/weir", "bpf"],
    "state": ["include/weir"],
    "sinks": ["include/weir"],
    "capture": ["include/weir", "probes", "src/stream"],
    "measure": ["include/weir", "bpf", "probes", "src/stream"],
    "cli": ["include/weir", "probes", "state", "sinks", "capture", "measure"],
    "examples": ["include/weir", "bpf"],
    "bench": ANY,
    "tests": ANY,
}

# Rooms that can be tested with bytes and numbers: no system call, no clock, no thread, no output.
# What is not named here they may not include.
PURE = ("src/ring", "src/order", "src/ledger")
PURE_SYSTEM = {
    "assert.h", "errno.h", "inttypes.h", "limits.h", "linux/perf_event.h",
    "linux/types.h", "stdbool.h", "stddef.h", "stdint.h", "stdlib.h", "string.h",
}

# Where a quoted path may start, after the including file's own folder (-I of meson.build).
ROOTS = ("", "src", "include")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MADE_BY_THE_BUILD = re.compile(r"\.(skel\.h|inc)$")


def room_of(path):
    for room in sorted(ROOMS, key=len, reverse=True):
        if path.startswith(room + "/"):
            return room
    return None


def resolve(path, name, known):
    """The project's file that `name` means when `path` includes it; None: not ours."""
    # Installed beside the others, and the only ones that have to be: a program of a user's says so.
    if name.startswith("weir/") and name.endswith(".bpf.h"):
        name = "bpf/" + name[len("weir/"):]
    for root in (os.path.dirname(path),) + ROOTS:
        candidate = os.path.normpath(os.path.join(root, name))
        if candidate in known:
            return candidate
    return None


def judge(path, quote, name, known):
    """What is wrong with one include; None: nothing."""
    room = room_of(path)
    if ROOMS[room] is ANY:
        return None
    target = resolve(path, name, known)
    if target is None:
        if quote == '"' and not MADE_BY_THE_BUILD.search(name):
            return f'"{name}" is not a file of the project'
        if quote == "<" and name.startswith("weir/"):
            return f"<{name}> is not a public header"
        if room in PURE and name not in PURE_SYSTEM:
            return f"{room} is pure, <{name}> is not for it"
        return None
    to = room_of(target)
    if to == room or to in ROOMS[room]:
        return None
    return f"{room} must not know {to} ({name})"


def check(path, text, known):
    """[(line, what is wrong)] of one file."""
    if room_of(path) is None:
        return [(1, "stands in no room: tests/lint/includes.py has the table")]
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        include = INCLUDE.match(line)
        if include:
            what = judge(path, include.group(1), include.group(2), known)
            if what:
                found.append((number, what))
    return found


def main():
    known = set(tree.files())
    bad = 0
    for path in sorted(known):
        if path.endswith((".c", ".h")):
            for number, what in check(path, tree.text(path), known):
                print(f"{path}:{number}: {what}")
                bad += 1
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
