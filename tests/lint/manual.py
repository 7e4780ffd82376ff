#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The manual: well-formed, and about the program as it is.

    manual.py WEIR	prints what is wrong, exits 1 if anything is
"""
import os
import re
import subprocess
import sys
import tempfile
import textwrap

import tree

COMMANDS = ("trace", "record", "replay", "info", "top", "verify", "bench", "doctor")
OPTION = re.compile(r"(?:-(\w), +)?--([\w-]+)( .+)?$")
ITEM = re.compile(r"\.It (?:Fl (\w) , )?Fl -([\w-]+)( Ar .*)?$")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


def page(name):
    return tree.text(f"man/{name}.1")


def section(text, title):
    return re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", text, re.S | re.M).group(1)


def options_of_help(text):
    """{(letter, name, has a value)}"""
    found = set()
    for line in text.split("Options:\n")[1].split("\n\n")[0].splitlines():
        # Further lines of a text are set in further, and may begin with another option's name.
        if re.match(r"  (    )?-", line):
            letter, name, value = OPTION.match(re.split("  +", line.strip())[0]).groups()
            found.add((letter, name, bool(value)))
    return found


def options_of_page(text):
    return {(letter, name, bool(value)) for letter, name, value in
            (match.groups() for match in map(ITEM.match, section(text, "OPTIONS").splitlines())
             if match)}


def options(weir):
    for command in COMMANDS:
        told = options_of_help(run(weir, command, "--help"))
        written = options_of_page(page(f"weir-{command}"))
        for option in told - written:
            yield f"weir-{command}.1: {option} of --help is not there in this form"
        for option in written - told:
            yield f"weir-{command}.1: {option} is not in --help in this form"


def events(weir):
    """Each event that is no call is there with its arguments."""
    text = section(page("weir-trace"), "EVENTS")
    for line in run(weir, "trace", "--list").splitlines():
        event, _, args = line.partition("\t")
        if event.startswith("sys:"):
            continue
        item = re.search(rf"^\.It {event}\n(.*?)(?=^\.(?:It|El))", text, re.S | re.M)
        words = re.findall(r"\w+", item.group(1)) if item else []
        if not set(args.split(", ")) <= set(words):
            yield f"weir-trace.1: {event} is not there with {args}"


def commands(weir):
    text = page("weir")
    for name in re.findall(r"^  (\w+) ", run(weir, "--help"), re.M):
        if f".It Cm {name}\n" not in text:
            yield f"weir.1: no {name}"


def flag_sets():
    """{set: calls of x86-64}, of the sets that have names."""
    known = re.findall(r"^\t(?:FLAGS|ENUM)\((\w+)", tree.text("sinks/flags.c"), re.M)
    calls = {}
    for line in tree.text("probes/syscalls.tbl").splitlines():
        word = line.split("#")[0].split()
        for arg in word[6:] if word and word[1] != "-" else []:
            part = re.split(r"[:?(]", arg)
            if len(part) > 2 and part[1] in ("flags", "enum"):
                calls.setdefault(part[2], set()).add(word[0])
    return {name: sorted(calls[name]) for name in sorted(known) if name in calls}


def flags_list():
    return "".join(f".It {name}\n{textwrap.fill(', '.join(calls), 78)}\n"
                   for name, calls in flag_sets().items())


def flags(weir):
    if flags_list() not in tree.text("man/weir-flags.7"):
        yield f"weir-flags.7: the list should be\n{flags_list()}"


def headers():
    return [path for path in tree.files() if re.match(r"include/weir/.*\.h$|bpf/weir.*\.bpf\.h$", path)]


def functions(weir):
    """Every public function has a page of its own in section 3."""
    done = subprocess.run(["scripts/man3.py", "check"] + headers(), cwd=tree.TOP, text=True,
                          stdout=subprocess.PIPE, check=False)
    yield from done.stdout.splitlines()


def lint(weir):
    pages = [path for path in tree.files() if re.match(r"man/.*\.[17]$", path)]
    if len(pages) != len(COMMANDS) + 2:
        yield f"man: {len(pages)} pages"
    yield from mandoc(pages)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["scripts/man3.py", "write", "November 29, 2026", folder] + headers(),
                       cwd=tree.TOP, check=True)
        yield from mandoc(sorted(os.path.join(folder, name) for name in os.listdir(folder)))


def mandoc(pages):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "style"] + pages, cwd=tree.TOP,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    # Which pages of other packages this machine has is no fault of ours.
    yield from (line for line in done.stdout.decode().splitlines()
                if "mandoc.db" not in line and "referenced manual not found" not in line)


def main():
    checks = (lint, functions, options, events, commands, flags)
    wrong = [line for check in checks for line in check(sys.argv[1])]
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
