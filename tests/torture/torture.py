#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""weir where it is worst: in guests whose CPUs are stolen all the time.

    torture.py [--short] [--only WORD]... BUILD

A guest has 8 emulated CPUs on as many real ones as there are, so each stands still again and again,
anywhere: between a stamp and its record, inside a grace period, in the middle of the clock's update.
Each run is a boot: one attach, then the load (guest.py has the runs). It ends with a table and with
status 0 when every promise was kept.

--short is two minutes long, with a kernel that is at hand, and a skip (77) where none is or no qemu.
"""
import argparse
import collections
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

import image
import kernels

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QEMU = "qemu-system-x86_64"
SKIP = 77

CPUS = 8
MEMORY_MB = 1024
SMALL_MB = 384  # for `memory`
SECONDS = 15  # of load in each run
PATIENCE_S = 600  # for anything that should be over

# Emulated CPUs that run each other's code while it is patched may meet a breakpoint that is gone
# already. It is the emulator's, happens at any switch of a static key, and the guest is booted again.
EMULATORS_OOPS = re.compile(r"Oops: int3|int3: 0000")
BOOTS_MAX = 6
GUESTS_FAULT = re.compile(r"(kernel BUG at.*|BUG: (?:unable|KASAN|sleeping|scheduling).*|Oops: .*|"
                          r"general protection.*|Kernel panic.*|WARNING: .*)")

Run = collections.namedtuple("Run", "suite preempt name")

SUITES = ("bookworm", "trixie", "trixie-backports")
LACKING = "bullseye"  # its kernel lacks what weir needs
NAMES = ("reserve", "fences", "hotplug", "json_lines", "memory", "crowd")
SHORT = ("reserve", "fences", "hotplug")
ON_DEMAND = ("programs",)  # not part of the whole: --only names them


def full_plan(only=()):
    names = NAMES + tuple(name for name in ON_DEMAND if name in only)
    plan = [Run(LACKING, "none", "refused")]
    for suite in SUITES:
        plan.append(Run(suite, "full", "doctor"))
        plan += [Run(suite, preempt, name) for preempt in ("full", "none") for name in names]
    return plan


def short_plan(folder):
    """With the newest kernel that is there already; nothing is fetched."""
    at_hand = [suite for suite in SUITES if kernels.find(os.path.join(folder, "kernels", suite))]
    if not at_hand:
        raise kernels.Missing("no kernel is at hand: `sudo make torture` fetches some")
    return [Run(at_hand[-1], "full", name) for name in SHORT]


class Torture:
    """The runs, and what came of each."""

    def __init__(self, build):
        self.folder = os.path.join(os.path.abspath(build), "torture")
        os.makedirs(self.folder, exist_ok=True)
        self.image = os.path.join(self.folder, "initramfs")
        self.rows, self.wrong, self.oopses = [], [], 0
        image.make(self.image, kernels.fetch_busybox(self.folder), build, TESTS)

    def command(self, run, kernel, console, told):
        memory = SMALL_MB if run.name == "memory" else MEMORY_MB
        # maxcpus=1: the kernel patches itself most while it boots; guest.py has the others come.
        # tsc=reliable: the clock is the machine's; nothing is to be watched by a CPU that stands still.
        line = ("console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off maxcpus=1 tsc=reliable "
                f"preempt={run.preempt} -- {run.name} {SECONDS}")
        return [QEMU, "-accel", "tcg,thread=multi", "-smp", str(CPUS), "-m", str(memory),
                "-nodefaults", "-display", "none", "-nic", "none", "-no-reboot",
                "-kernel", kernel, "-initrd", self.image, "-append", line,
                "-serial", f"file:{console}", "-serial", f"file:{told}"]

    def boot(self, run, kernel):
        """(what the guest told, a list of objects; what its console said)."""
        paths = [os.path.join(self.folder, name) for name in ("console", "told")]
        for path in paths:
            open(path, "w", encoding="ascii").close()
        command = ["nice", "-n", "19", "setpriv", "--pdeathsig", "KILL"]
        with subprocess.Popen(command + self.command(run, kernel, *paths),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as qemu:
            wait(qemu, paths[0])
        console, told = map(read, paths)
        lines = [line for line in told.splitlines() if line.endswith("}")]
        return [json.loads(line) for line in lines], console

    def run(self, run):
        kernel = kernels.fetch(self.folder, run.suite)
        start, boots, told = time.monotonic(), 0, []
        while len(told) < 2 and boots < BOOTS_MAX:
            told, console = self.boot(run, kernel)
            boots += 1
            if len(told) < 2 and not EMULATORS_OOPS.search(console):
                break
        about = told[0] if told else {"release": kernels.release(kernel), "preempt": "?"}
        row = told[1] if len(told) > 1 else {"wrong": ["the guest did not come to its end: " +
                                                       last_words(console)]}
        if len(told) > 1:
            row["wrong"] += GUESTS_FAULT.findall(console)
        row.update(about, asked=run.preempt, name=run.name, oopses=boots - 1,
                   took_s=time.monotonic() - start)
        self.oopses += row["oopses"]
        self.rows.append(row)
        where = f"{row['release']} preempt={row['preempt']} {run.name}"
        self.wrong += [f"{where}: {what}" for what in row["wrong"]]
        print(f"torture: {where}: {verdict(row)}, {row['took_s']:.0f} s", flush=True)
        if row["wrong"]:
            keep = f"{self.folder}/console-{len(self.rows)}"
            shutil.copy(os.path.join(self.folder, "console"), keep)
            print("".join(f"  {what}\n" for what in row["wrong"]) + f"  console: {keep}", flush=True)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def wait(qemu, console):
    """To its end, or to that of our patience. A kernel that dies takes long to do so."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and not EMULATORS_OOPS.search(read(console)):
        try:
            qemu.wait(timeout=1)
            return
        except subprocess.TimeoutExpired:
            pass
    qemu.kill()


def last_words(console):
    return " | ".join(console.strip().splitlines()[-3:]) or "its console is empty"


def verdict(row):
    return f"{len(row['wrong'])} wrong" if row["wrong"] else "ok"


# ---- what is printed at the end ------------------------------------------------------------------

COLUMNS = ("kernel", "preempt", "run", "events", "late", "lost", "skipped", "p99 ms", "more", "oopses",
           "verdict")


def count(row, key):
    return f"{row[key]:,}" if key in row else "-"


def late(row):
    """By weir's rule; in brackets by the two that need no fence."""
    if "rules" not in row:
        return count(row, "late")
    rules = {rule.split()[0]: told["late"] for rule, told in row["rules"].items()}
    return f"{row['late']} (clock {rules['clock']:,}, rounds {rules['rounds']:,})"


def more(row):
    if "hotplug" in row:
        return f"{row['hotplug']} CPUs off and on"
    return f"{row['hogs']} hogs" if "hogs" in row else ""


def cells(row):
    lag = f"{row['lag_ms']['p99']:.0f}" if "lag_ms" in row else "-"
    return (row["release"].split("-cloud")[0], row["preempt"], row["name"], count(row, "events"),
            late(row), count(row, "lost"), count(row, "skipped"), lag, more(row), str(row["oopses"]),
            verdict(row))


def table(rows):
    """As docs/testing.md has it."""
    lines = [COLUMNS] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]

    def put(line):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([put(COLUMNS), rule] + [put(line) for line in lines[1:]])


def report(torture, took_s):
    print()
    print(table(torture.rows))
    for row in torture.rows:
        if "said" in row:
            print(f"{row['release']}: {row['said']}")
        for name, answer in row.get("doctor", {}).items():
            if answer["verdict"] != "ok":
                print(f"{row['release']}: doctor: {name}: {answer['found']}; {answer['way_out']}")
    for what in torture.wrong:
        print(f"WRONG  {what}")
    late_by_weir = sum(row.get("late", 0) for row in torture.rows)
    print(f"{sum(row.get('events', 0) for row in torture.rows):,} events behind exact fences, "
          f"{late_by_weir} late; {len(torture.rows)} runs, "
          f"{sum(bool(row['wrong']) for row in torture.rows)} wrong; {torture.oopses} boots again "
          f"after an oops of the emulator's; {took_s / 60:.0f} minutes, {CPUS} emulated CPUs on "
          f"{len(os.sched_getaffinity(0))}, host Linux {platform.release()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--short", action="store_true", help="two minutes, fetches nothing")
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="runs in which each of these is: a suite, a preempt=, a name")
    parser.add_argument("build", help="Meson's directory")
    args = parser.parse_args()

    start = time.monotonic()
    try:
        if not shutil.which(QEMU):
            raise kernels.Missing(f"{QEMU} is not installed")
        plan = (short_plan(os.path.join(args.build, "torture")) if args.short
                else full_plan(args.only))
        torture = Torture(args.build)
    except kernels.Missing as error:
        print(f"torture: {error}")
        sys.exit(SKIP if args.short else 1)
    for run in plan:
        if set(args.only) <= set(run):
            torture.run(run)
    report(torture, time.monotonic() - start)
    sys.exit(bool(torture.wrong) or not torture.rows)


if __name__ == "__main__":
    main()
