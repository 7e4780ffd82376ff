#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the C files to .clang-format.

    format.py [--fix]	prints what differs and exits 1 if anything does; --fix changes the files
"""
import subprocess
import sys

import tree


def main():
    files = [path for path in tree.files() if path.endswith((".c", ".h"))]
    how = ["-i"] if sys.argv[1:] == ["--fix"] else ["--dry-run", "-Werror"]
    sys.exit(subprocess.run(["clang-format"] + how + files, cwd=tree.TOP, check=False).returncode)


if __name__ == "__main__":
    main()
