#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What holds for every file: a licence, a length that one can read, no debris.

    files.py		prints what is wrong, exits 1 if anything is
"""
import re
import sys

import tree

MAX_LINES = 900

# Cannot carry a licence line: the licences, JSON, and data of the tests.
NO_LICENCE = re.compile(r"^LICENSES?(/|$)|\.json$|^tests/.*/(data|corpus|golden)/")
NOT_OURS = re.compile(r"^LICENSES/")
NOT_TEXT = re.compile(r"\.(png|bin)$|^tests/.*/(data|corpus|golden)/")

# What runs in the kernel, or is shared with what does, may be used by GPL programs.
DUAL = re.compile(r"^bpf/.*\.[ch]$|\.bpf\.c$|^examples/.*\.h$|^include/weir/(record|probes|lean)\.h$")
CONFLICT = re.compile(r"^(<{7}|>{7}|\|{7})( |$)|^={7}$")


def licence(path, lines):
    if NO_LICENCE.search(path):
        return
    want = "GPL-2.0-only OR BSD-2-Clause" if DUAL.search(path) else "BSD-2-Clause"
    # The first lines: #! may stand before it.
    if not any(re.search(rf"SPDX-License-Identifier: {want}( |\"|$)", line) for line in lines[:3]):
        yield 1, f"no line `SPDX-License-Identifier: {want}`"


def length(path, lines):
    if len(lines) > MAX_LINES:
        yield len(lines), f"more than {MAX_LINES} lines: does it still tell one story?"


def debris(path, lines):
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "white space at the end"
        if CONFLICT.search(line):
            yield number, "a mark of a merge conflict"


def check(path, text):
    """[(line, what is wrong)] of one file."""
    if NOT_OURS.search(path) or NOT_TEXT.search(path):
        return []
    lines = text.split("\n")
    ends_well = lines[-1] == ""
    if ends_well:
        lines.pop()
    found = [hit for rule in (licence, length, debris) for hit in rule(path, lines)]
    if not ends_well:
        found.append((len(lines), "no end of line at the end"))
    return found


def main():
    bad = 0
    for path in tree.files():
        for number, what in check(path, tree.text(path)):
            print(f"{path}:{number}: {what}")
            bad += 1
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
