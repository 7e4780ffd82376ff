#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""weir where it is worst: in guests whose CPUs are stolen all the time.

    torture.py [--minutes N] [--short] [--only WORD]... BUILD

A guest has 8 emulated CPUs on as many real ones as there are, so each stands still again and again,
anywhere: between a stamp and its record, inside a grace period, in the middle of the clock's update.
Each run is a boot: one attach, then the load (guest.py has the runs). It ends with a table, an account
of all events, and status 0 when every promise was kept.

--short is two minutes long, with a kernel that is at hand, and a skip (77) where none is or no qemu.
Ctrl-C ends it; what came of the runs until then is told.
"""
import argparse
import collections
import json
import os
import platform
import re
import shutil
import signal
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
PATIENCE_S = 900  # for anything that should be over
SIDE_BY_SIDE = 2  # while one guest boots, on one CPU, the other has work for the rest

# Emulated CPUs that run each other's code while it is patched may meet a breakpoint that is gone
# already. It is the emulator's, happens at any switch of a static key, and the guest is booted again.
EMULATORS_OOPS = re.compile(r"Oops: int3|int3: 0000")
BOOTS_MAX = 6
GUESTS_FAULT = re.compile(r"(kernel BUG at.*|BUG: (?:unable|KASAN|sleeping|scheduling).*|Oops: .*|"
                          r"general protection.*|Kernel panic.*|WARNING: .*)")

Run = collections.namedtuple("Run", "suite preempt name")

SUITES = ("bookworm", "trixie", "trixie-backports")
LACKING = "bullseye"  # its kernel lacks what weir needs
SHORT = ("reserve", "fences", "hotplug")
# How the time for loads is shared out; the others take what they take.
SHARES = {"reserve": 3, "crowd": 2, "hotplug": 2, "memory": 2, "fences": 2}
NAMES = ("json_lines",) + tuple(SHARES)

MINUTES, SHORT_MINUTES = float(os.environ.get("MINUTES") or 20), 2
LOAD_LEAST_S = 4
BESIDES_S = 25  # what a boot takes beside its load, until one was seen


def full_plan():
    """A run for each kernel before the next one, so that what is ended early has something of all."""
    plan = [Run(LACKING, "none", "refused")]
    plan += [Run(suite, "full", "programs") for suite in SUITES]
    return plan + [Run(suite, preempt, name) for name in NAMES
                   for suite in SUITES for preempt in ("full", "none")]


def short_plan(folder):
    """With the newest kernel that is there already; nothing is fetched."""
    at_hand = [suite for suite in SUITES if kernels.find(os.path.join(folder, "kernels", suite))]
    if not at_hand:
        raise kernels.Missing("no kernel is at hand: `sudo make torture` fetches some")
    return [Run(at_hand[-1], "full", name) for name in SHORT]


class Time:
    """What is left of it, shared out over the runs that are left."""

    def __init__(self, minutes):
        self.start = time.monotonic()
        self.end = self.start + 60 * minutes
        self.besides = {}  # name -> seconds that a boot for it takes beside its load, each seen

    def took_s(self):
        return time.monotonic() - self.start

    def left_s(self):
        return max(0, self.end - time.monotonic())

    def learn(self, name, seconds):
        self.besides.setdefault(name, []).append(seconds)

    def besides_s(self, name):
        seen = self.besides.get(name) or [s for name in SHARES for s in self.besides.get(name, ())]
        return sum(seen) / len(seen) if seen else BESIDES_S

    def load_s(self, run, waiting, guests):
        """Of `run`, which is to start; waiting: those after it."""
        if run.name not in SHARES:
            return 0
        runs = [run] + waiting
        left = SIDE_BY_SIDE * self.left_s() - sum(guest.due_s(self) for guest in guests)
        left -= sum(self.besides_s(one.name) for one in runs)
        shares = sum(SHARES.get(one.name, 0) for one in runs)
        return max(LOAD_LEAST_S, int(left * SHARES[run.name] / shares))


def clock_words():
    """How fast the counter is that a guest takes its time from: the machine's own. Where that is a guest
    itself, it knows. A guest of ours would measure it against an emulated timer, and when both were stolen
    meanwhile its time could go by thirty times too fast."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        told = file.read()
    mhz = re.search(r"^cpu MHz\s*: ([\d.]+)", told, re.MULTILINE)
    if not mhz or not re.search(r"^flags\s*:.* hypervisor\b", told, re.MULTILINE):
        return ""
    return f"tsc_early_khz={float(mhz[1]) * 1000:.0f} "


class Guest:
    """A run, booted until it comes to its end without the emulator's oops."""

    def __init__(self, run, kernel, load_s, folder, initramfs):
        self.run, self.kernel, self.load_s = run, kernel, load_s
        self.folder, self.initramfs = folder, initramfs
        self.boots, self.start = 0, time.monotonic()
        os.makedirs(folder, exist_ok=True)
        self.boot()

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self):
        memory = SMALL_MB if self.run.name == "memory" else MEMORY_MB
        # maxcpus=1: the kernel patches itself most while it boots; guest.py has the others come.
        # lpj: each of them would measure for a second, in vain, how long a loop takes.
        # tsc=reliable: the clock is the machine's; nothing is to be watched by a CPU that stands still.
        line = ("console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off maxcpus=1 "
                f"lpj=10000000 tsc=reliable {clock_words()}preempt={self.run.preempt} "
                f"-- {self.run.name} {self.load_s}")
        return [QEMU, "-accel", "tcg,thread=multi", "-smp", str(CPUS), "-m", str(memory),
                "-nodefaults", "-display", "none", "-nic", "none", "-no-reboot",
                "-kernel", self.kernel, "-initrd", self.initramfs, "-append", line,
                "-serial", f"file:{self.path('console')}", "-serial", f"file:{self.path('told')}"]

    def boot(self):
        self.boots += 1
        self.patience = time.monotonic() + self.load_s + PATIENCE_S
        for name in ("console", "told"):
            with open(self.path(name), "w", encoding="ascii"):
                pass
        # A session of its own: Ctrl-C is for us, and we end it.
        self.qemu = subprocess.Popen(["setpriv", "--pdeathsig", "KILL"] + self.command(),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     start_new_session=True)

    def end(self):
        if self.qemu.poll() is None:
            self.qemu.kill()
            self.qemu.wait()

    def took_s(self):
        return time.monotonic() - self.start

    def due_s(self, clock):
        """How long it is expected to go on."""
        return max(0, self.load_s + clock.besides_s(self.run.name) - self.took_s())

    def console(self):
        with open(self.path("console"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def told(self):
        with open(self.path("told"), encoding="utf-8", errors="replace") as file:
            return [json.loads(line) for line in file.read().splitlines() if line.endswith("}")]

    def is_over(self):
        """A kernel that dies takes long to do so, so it is ended as soon as it says it does."""
        oopsed = EMULATORS_OOPS.search(self.console())
        if self.qemu.poll() is None and not oopsed and time.monotonic() < self.patience:
            return False
        self.end()
        if oopsed and len(self.told()) < 2 and self.boots < BOOTS_MAX:
            self.boot()
            return False
        return True

    def row(self):
        """What came of it."""
        console, told = self.console(), self.told()
        row = {"release": kernels.release(self.kernel), "preempt": "?"}
        row.update(told[0] if told else {})
        if len(told) > 1:
            row.update(told[1])
            row["wrong"] += GUESTS_FAULT.findall(console)
        else:
            row["wrong"] = ["the guest did not come to its end: " + last_words(console)]
        row.update(asked=self.run.preempt, name=self.run.name, load_s=self.load_s, boots=self.boots,
                   took_s=self.took_s())
        return row


def last_words(console):
    return " | ".join(console.strip().splitlines()[-3:]) or "its console is empty"


class Torture:
    """The runs, some at a time, and what came of each."""

    def __init__(self, plan, clock, build):
        self.folder = os.path.join(os.path.abspath(build), "torture")
        os.makedirs(self.folder, exist_ok=True)
        self.initramfs = os.path.join(self.folder, "initramfs")
        self.clock, self.waiting, self.planned = clock, list(plan), len(plan)
        self.guests, self.rows = [], []
        self.kernels = {run.suite: kernels.fetch(self.folder, run.suite) for run in plan}
        image.make(self.initramfs, kernels.fetch_busybox(self.folder), build, TESTS)

    def run(self):
        try:
            while self.waiting or self.guests:
                self.start_some()
                time.sleep(0.5)
                self.take_ended()
                self.show()
        finally:
            for guest in self.guests:
                guest.end()
            self.clear()

    def start_some(self):
        while self.waiting and len(self.guests) < SIDE_BY_SIDE:
            run = self.waiting.pop(0)
            used = {guest.folder for guest in self.guests}
            folder = next(path for path in (os.path.join(self.folder, f"guest{i}")
                                            for i in range(SIDE_BY_SIDE)) if path not in used)
            load_s = self.clock.load_s(run, self.waiting, self.guests)
            self.guests.append(Guest(run, self.kernels[run.suite], load_s, folder, self.initramfs))

    def take_ended(self):
        for guest in [guest for guest in self.guests if guest.is_over()]:
            self.guests.remove(guest)
            row = guest.row()
            self.clock.learn(guest.run.name, row["took_s"] - guest.load_s)
            self.rows.append(row)
            self.clear()
            print(outcome(row), flush=True)
            if row["wrong"]:
                self.tell_wrong(guest, row)

    def tell_wrong(self, guest, row):
        name = f"console-{row['name']}-{row['release']}-{row['preempt']}"
        keep = os.path.join(self.folder, name)
        shutil.copy(guest.path("console"), keep)
        print("".join(f"    {what}\n" for what in row["wrong"]) + f"    console: {keep}", flush=True)

    def show(self):
        """On a terminal: what goes on, in a line that stays the last one."""
        if not sys.stderr.isatty():
            return
        now = ", ".join(" ".join(guest.run) for guest in self.guests)
        text = (f"{len(self.rows)} of {self.planned}, {total(self.rows, 'events'):,} events, "
                f"{total(self.rows, 'late')} late; {self.clock.left_s() / 60:.0f} min left; now {now}")
        sys.stderr.write("\r\033[K" + text[:shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()

    def clear(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


# ---- what is printed ------------------------------------------------------------------------------

def total(rows, key):
    return sum(row.get(key, 0) for row in rows)


def short_release(row):
    return row["release"].split("-cloud")[0]


def by_rule(rows, rule):
    """Of `fences`: how many were late by one of its rules; None: no such run."""
    late = [told["late"] for row in rows for name, told in row.get("rules", {}).items()
            if name.split()[0] == rule]
    return sum(late) if late else None


def ledgers(rows):
    """(closed, all): of weir's own runs, which have one."""
    with_one = [row for row in rows if "ledger_closed" in row]
    return sum(row["ledger_closed"] for row in with_one), len(with_one)


def extra(row):
    words = [f"{row[key]:,} {name}" for key, name in
             (("lost", "lost"), ("skipped", "skipped"), ("hotplug", "CPUs off and on"), ("hogs", "hogs"))
             if row.get(key)]
    words += [f"{by_rule([row], rule):,} late by {rule}" for rule in ("clock", "rounds") if "rules" in row]
    words += [f"{sum(row['cases'].values())} cases"] if "cases" in row else []
    words += [f"p99 {row['lag_ms']['p99']:.0f} ms"] if "lag_ms" in row else []
    return ", ".join(words)


def outcome(row):
    """A run, in a line."""
    events = f"{row['events']:,}" if "events" in row else "-"
    late = f"{row['late']} late" if "late" in row else ""
    verdict = f"{len(row['wrong'])} WRONG" if row["wrong"] else "ok"
    return (f"{short_release(row):16} {row['preempt']:8} {row['name']:10} {events:>10} {late:7} "
            f"{row['took_s']:4.0f} s  {verdict}  {extra(row)}").rstrip()


HEAD = ("kernel", "preempt", "boots", "events", "late: reserve", "rcu", "membarrier",
        "control: clock", "rounds", "lost", "skipped", "ledgers closed", "wrong")


def cells(release, preempt, rows):
    def number(value):
        return "-" if value is None else f"{value:,}"

    closed, all_of_them = ledgers(rows)
    return [release, preempt, number(total(rows, "boots")), number(total(rows, "events")),
            number(total([row for row in rows if "rules" not in row], "late")),
            *(number(by_rule(rows, rule)) for rule in ("rcu", "membarrier", "clock", "rounds")),
            number(total(rows, "lost")), number(total(rows, "skipped")), f"{closed} of {all_of_them}",
            number(sum(bool(row["wrong"]) for row in rows))]


def table(rows):
    """As docs/testing.md has it: a line for each kernel and way to preempt."""
    groups = {}
    for row in rows:
        if row["name"] != "refused":
            groups.setdefault((short_release(row), row["preempt"]), []).append(row)
    lines = [HEAD] + [cells(*key, groups[key]) for key in sorted(groups, key=natural)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]

    def put(line):
        cells = [cell.ljust(width) if i < 2 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (width + 2) if i < 2 else "-" * (width + 1) + ":"
                          for i, width in enumerate(widths)) + "|"
    return "\n".join([put(HEAD), rule] + [put(line) for line in lines[1:]])


def natural(key):
    return [[int(number) for number in re.findall(r"\d+", key[0])], key[1]]


def number_or(value, none):
    return none if value is None else f"{value:,}"


def report(torture):
    rows = torture.rows
    if not rows:
        print("torture: no run has come to its end")
        return
    print()
    print(table(rows))
    for row in rows:
        if "said" in row:
            print(f"{row['release']}: {row['said']}")
        for name, answer in row.get("doctor", {}).items():
            if answer["verdict"] != "ok":
                print(f"{row['release']}: doctor: {name}: {answer['found']}; {answer['way_out']}")
    for row in rows:
        for what in row["wrong"]:
            print(f"WRONG  {short_release(row)} {row['preempt']} {row['name']}: {what}")
    closed, all_of_them = ledgers(rows)
    again = total(rows, "boots") - len(rows)
    clock, rounds = (number_or(by_rule(rows, rule), "no run") for rule in ("clock", "rounds"))
    print(f"{total(rows, 'events'):,} events, {total(rows, 'late')} late by exact fences; the control: "
          f"{clock} late by the clock before harvest, {rounds} by rounds; ledgers closed: {closed} of "
          f"{all_of_them}; {total(rows, 'skipped'):,} skipped, all of them told.")
    print(f"{len(rows)} of {torture.planned} runs, {sum(bool(row['wrong']) for row in rows)} wrong; "
          f"{again} boots again after an oops of the emulator's; {torture.clock.took_s() / 60:.1f} minutes; "
          f"{CPUS} emulated CPUs on {len(os.sched_getaffinity(0))}, host Linux {platform.release()}, load "
          f"average {os.getloadavg()[2]:.1f}.")


def keep(torture):
    """For bench/report.py."""
    with open(os.path.join(torture.folder, "rows.json"), "w", encoding="utf-8") as file:
        json.dump(torture.rows, file, indent=1)


def on_sigterm(signum, frame):
    raise KeyboardInterrupt


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N",
                        help="for all of it, $MINUTES or 20 unless said; no fewer than the boots take")
    parser.add_argument("--short", action="store_true", help="two minutes, fetches nothing")
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="runs in which each of these is: a suite, a preempt=, a name")
    parser.add_argument("build", help="Meson's directory")
    return parser.parse_args()


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, on_sigterm)
    stopped = False
    try:
        if not shutil.which(QEMU):
            raise kernels.Missing(f"{QEMU} is not installed")
        plan = short_plan(os.path.join(args.build, "torture")) if args.short else full_plan()
        clock = Time(SHORT_MINUTES if args.short else args.minutes)
        torture = Torture([run for run in plan if set(args.only) <= set(run)], clock, args.build)
    except kernels.Missing as error:
        print(f"torture: {error}")
        sys.exit(SKIP if args.short else 1)
    try:
        torture.run()
    except KeyboardInterrupt:
        stopped = True
        print("torture: stopped")
    report(torture)
    if not (stopped or args.only or args.short):
        keep(torture)
    sys.exit(130 if stopped else bool(any(row["wrong"] for row in torture.rows) or not torture.rows))


if __name__ == "__main__":
    main()
