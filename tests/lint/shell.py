#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs shellcheck over the shell scripts, which are known by their first line."""
import re
import subprocess
import sys

import tree

SHELL = re.compile(r"#!.*\b(ba|da|)sh\b")


def main():
    scripts = [path for path in tree.files() if SHELL.match(tree.text(path).split("\n", 1)[0])]
    run = subprocess.run(["shellcheck"] + scripts, cwd=tree.TOP, check=False)
    sys.exit(not scripts or run.returncode != 0)


if __name__ == "__main__":
    main()
