#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles every public header alone, twice over, as each language that it promises.

    headers.py c|c++|bpf COMMAND...	COMMAND: the compiler, and its options if it wants any

All of them are C99 and C++11; those that a BPF program includes are BPF C as well.
"""
import re
import subprocess
import sys

import tree

STRICT = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", "include"]
LANGUAGE = {
    "c": ["-xc", "-std=c99", "-pedantic"],
    "c++": ["-xc++", "-std=c++11", "-pedantic"],
    "bpf": ["-xc"],  # its helpers are GNU C; the rest is in COMMAND
}
PUBLIC = re.compile(r"^include/weir/\w+\.h$")
FOR_BPF = re.compile(r"^include/weir/(record|probes|lean)\.h$|^bpf/weir(_lane)?\.bpf\.h$")


def compiles(language, command, header):
    """Twice: the second time the include guard has to hold."""
    source = f'#include "{header}"\n' * 2
    run = subprocess.run(command + LANGUAGE[language] + STRICT + ["-"], input=source, text=True,
                         cwd=tree.TOP, check=False, stderr=subprocess.PIPE)
    if run.returncode != 0:
        print(f"{header} alone as {language}:\n{run.stderr}")
    return run.returncode == 0


def main():
    language, command = sys.argv[1], sys.argv[2:]
    which = FOR_BPF if language == "bpf" else PUBLIC
    headers = [path for path in tree.files() if which.search(path)]
    good = [compiles(language, command, header) for header in headers]
    sys.exit(not good or not all(good))


if __name__ == "__main__":
    main()
