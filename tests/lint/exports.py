#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the shared library exports is what the public headers declare and what its symbol map lists, no
more and no less.

    exports.py LIBRARY	prints the differences, exits 1 if there are any
"""
import re
import subprocess
import sys

import tree

COMMENT = re.compile(r"/\*.*?\*/", re.S)
INLINE = re.compile(r"^static inline .*?^}", re.S | re.M)
DECLARED = re.compile(r"\b(weir_\w+__\w+)\(")


def declared(text):
    """Functions that a header declares and does not define."""
    return set(DECLARED.findall(INLINE.sub("", COMMENT.sub("", text))))


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library], check=True,
                         text=True, stdout=subprocess.PIPE).stdout
    # name@@VERSION; the version itself is an absolute symbol.
    return {line.split()[0].split("@")[0] for line in out.splitlines() if line.split()[1] != "A"}


def mapped(text):
    """The names in a version script."""
    return set(re.findall(r"^\t\t(\w+);$", text, re.M))


def main():
    want = set()
    for path in tree.files():
        if path.startswith("include/weir/") and path.endswith(".h"):
            want |= declared(tree.text(path))
    have = exported(sys.argv[1])
    listed = mapped(tree.text("src/libweir.map"))
    for name in sorted(want - listed):
        print(f"{name}: declared, and src/libweir.map does not list it")
    for name in sorted(listed - want):
        print(f"{name}: in src/libweir.map, and no public header declares it")
    for name in sorted(want - have):
        print(f"{name}: declared, and not in the library")
    for name in sorted(have - want):
        print(f"{name}: in the library, and no public header declares it")
    sys.exit(want != have or want != listed or not want)


if __name__ == "__main__":
    main()
