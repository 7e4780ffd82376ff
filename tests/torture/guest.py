# SPDX-License-Identifier: BSD-2-Clause
"""What runs in a guest: one attach, then the load, then what came of it. Never on the machine itself.

    guest.py WEIR LOADS RUN SECONDS

A RUN is a function below. It tells one JSON object, on a line of its own: the numbers of the run, and
under "wrong" each promise that was not kept.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import live

TOLD = "/dev/ttyS1"
LOOPS = 6  # of 8 vCPUs
CALLS = "sys:uname"
LINES_S = 8  # of lines: to read them back takes longer than to write them

live.PATIENCE_S = 600

CPUS = os.sysconf("SC_NPROCESSORS_CONF")  # one of them boots, the others are taken online here


class Wrong(list):
    """What a ledger of a trace with one load did not keep."""

    def expect(self, name, got, want):
        if got != want:
            self.append(f"{name}: {got}, not {want}")

    def expect_between(self, name, low, got, high):
        if not low <= got <= high:
            self.append(f"{name}: {got}, not in {low} to {high}")


def judge_account(wrong, account):
    """G2, G4: what holds of every account at the end."""
    name = account.get("name", "all")
    right = account["delivered"] + account["filtered"] + account["pending"] + live.lost(account)
    wrong.expect(f"{name}: produced", account["produced"], right)
    for key in ("pending", "late", "ahead", "stray"):
        wrong.expect(f"{name}: {key}", account[key], 0)
    wrong.expect(f"{name}: failed", account["failed"], live.lost(account, "reserve_failed"))


def judge(ledger, calls, wrong):
    """The run's numbers. calls: what the callers counted, two events each."""
    before = len(wrong)
    for account in [ledger] + ledger["sources"]:
        judge_account(wrong, account)
    wrong.expect("order", ledger["order"], "exact")
    skipped = live.lost(ledger, "skipped")
    accounted = live.calls_accounted(ledger)
    wrong.expect_between("calls that are accounted for", 2 * calls - skipped, accounted, 2 * calls)
    return {
        "ledger_closed": len(wrong) == before,
        "events": ledger["delivered"],
        "truth": 2 * calls,
        "late": ledger["late"],
        "lost": live.lost(ledger) - skipped,
        "skipped": skipped,
        "missing": 2 * calls - accounted,  # of these at most `skipped`
        "lag_ms": {key: ns / 1e6 for key, ns in ledger["lag_ns"].items()},
    }


def loops(seconds, *args, cpus=range(LOOPS)):
    return live.Load("calls", "-c", ",".join(map(str, cpus)), "-t", len(cpus), "-m",
                     1000 * seconds, *args, "uname")


def finish(load, trace, wrong):
    """Waits for both; the numbers. The load has been told to go."""
    told = load.end()
    wrong.expect("weir's status", trace.end(), 0)
    return judge(trace.ledger(), sum(calls for _, _, calls in told["calls"]), wrong)


# ---- the runs ------------------------------------------------------------------------------------


def reserve(seconds, wrong):
    """weir's own probes, as fast as the loops can."""
    with loops(seconds) as load, \
            live.Trace("-e", CALLS, "-p", load.pid, form="none") as trace:
        load.go()
        return finish(load, trace, wrong)


def crowd(seconds, wrong):
    """Four loops on each vCPU, which take it from each other in the middle of a probe."""
    with loops(seconds, cpus=list(range(LOOPS)) * 4) as load, \
            live.Trace("-e", CALLS, "-p", load.pid, form="none") as trace:
        load.go()
        return finish(load, trace, wrong)


def json_lines(_, wrong):
    """What is written is read back: order, watermarks, numbers, gaps."""
    with loops(LINES_S, "-r", 1000) as load, \
            live.Trace("-e", CALLS, "-p", load.pid, "--watermarks", "--buffer", "16M") as trace:
        load.go()
        numbers = finish(load, trace, wrong)
        try:
            trace.verify()
        except AssertionError as error:
            wrong.append(str(error))
    return numbers


@contextlib.contextmanager
def meanwhile(act):
    """act(n) for n = 0, 1, ... in a thread of its own, until the `with` is left; counts itself."""
    end, done = threading.Event(), []

    def acts():
        while not end.is_set():
            act(len(done))
            done.append(None)

    thread = threading.Thread(target=acts)
    thread.start()
    try:
        yield done
    finally:
        end.set()
        thread.join()


def hotplug(seconds, wrong):
    """Two CPUs go and come, under loops that are bound to none."""
    def blink(number):
        cpu = live.online_cpus()[-1] if number % 2 else LOOPS
        live.set_online(cpu, False)
        time.sleep(0.05)
        live.set_online(cpu, True)

    with live.Load("calls", "-t", 8, "-m", 1000 * seconds, "uname") as load, \
            live.Trace("-e", CALLS, "-p", load.pid, form="none") as trace, meanwhile(blink) as done:
        load.go()
        numbers = finish(load, trace, wrong)
    numbers["hotplug"] = len(done)
    wrong.expect("CPUs at the end", live.online_cpus(), list(range(CPUS)))
    if not done:
        wrong.append("no CPU has gone and come")
    return numbers


HOG = """
import time
with open("/proc/self/oom_score_adj", "w") as file:
    file.write("1000")
taken = []
while True:
    taken.append(bytearray(b"x") * (1 << 20))
"""


def memory(seconds, wrong):
    """Somebody takes all memory there is, and is killed for it, again and again."""
    def hog(_):
        with live.Child([sys.executable, "-S", "-c", HOG]) as child:
            while child.process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)

    with loops(seconds) as load, \
            live.Trace("-e", CALLS, "-p", load.pid, "--buffer", "8M", form="none") as trace:
        end = time.monotonic() + seconds
        with meanwhile(hog) as done:
            load.go()
            numbers = finish(load, trace, wrong)
    numbers["hogs"] = len(done)
    return numbers


LATE = re.compile(r"^ +(\d+) by (.+), up to ([0-9.]+) ms$", re.MULTILINE)
RECORDS = re.compile(r"^(\d+) records, (\d+) lost, (\d+) skipped; late:$", re.MULTILINE)


def run_program(seconds, name, *args):
    """A test in C of tests/live: (status, what it said)."""
    try:
        done = subprocess.run([f"/weir/live/{name}", *args], stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
        status, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, said = "none in time", error.stdout or b""
    said = said.decode(errors="replace")
    print(said, flush=True)
    return status, said


def fences(seconds, wrong):
    """Perf rings of a program that stamps first: four rules side by side."""
    status, said = run_program(seconds + 300, "fence_control", str(seconds))
    wrong.expect("fence_control's status", status, 0)
    late = {rule: {"late": int(count), "worst_ms": float(worst)}
            for count, rule, worst in LATE.findall(said)}
    records = RECORDS.search(said)
    if not records or "rcu" not in late:
        wrong.append("fence_control told nothing")
        return {}
    return {"events": int(records[1]), "lost": int(records[2]), "skipped": int(records[3]),
            "late": late["rcu"]["late"], "rules": late}


LASTING = ("fence_stream", "order_readers")  # for so many seconds; longer loads are other runs'
SHORT_S = "3"
# That nothing is lost at 200,000 events a second is asked of a machine that has its CPUs to itself.
NEEDS_ITS_CPUS = {"perf_stream: tracepoint_stream"}
CASE = re.compile(r"^\[ +(OK|FAILED) +\] (\w+)$", re.MULTILINE)


def programs(_, wrong):
    """What doctor says of the kernel, and the tests in C that run on the live one."""
    cases, took_s = {}, {}
    for name in sorted(os.listdir("/weir/live")):
        if name == "fence_control":
            continue  # has a run of its own
        begin = time.monotonic()
        status, said = run_program(300, name, *((SHORT_S,) if name in LASTING else ()))
        took_s[name] = round(time.monotonic() - begin)
        outcomes = {case: outcome for outcome, case in CASE.findall(said)}
        failed = {f"{name}: {case}" for case, outcome in outcomes.items() if outcome == "FAILED"}
        wrong += sorted(failed - NEEDS_ITS_CPUS)
        if status not in (0, 1) or not outcomes:
            wrong.append(f"{name} ended with {status}")
        cases[name] = len(outcomes)
    _, said, err = live.run("doctor", "--json")
    wrong.expect("what doctor says besides", err, "")
    return {"cases": cases, "took": took_s, "doctor": json.loads(said)}


def refused(_, wrong):
    """On a kernel that lacks what weir needs: one sentence, and nothing left behind."""
    status, _, err = live.run("trace", "-d", "1")
    wrong.expect("status", status, 1)
    wrong.expect("lines", err.count("\n"), 1)
    return {"said": err.strip()}


RUNS = {run.__name__: run for run in
        (reserve, crowd, json_lines, hotplug, memory, fences, programs, refused)}


def about():
    """What the kernel says of itself."""
    with open("/proc/sys/kernel/osrelease", encoding="ascii") as file:
        release = file.read().strip()
    with open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
              encoding="ascii") as file:
        clock = file.read().strip()
    with open("/dev/kmsg", "rb", buffering=0) as file:
        os.set_blocking(file.fileno(), False)
        preempt = "none said"
        while True:
            line = file.read(8192)
            if not line:
                break
            match = re.search(rb"Dynamic Preempt: (\w+)", line)
            preempt = match[1].decode() if match else preempt
    return {"release": release, "clock": clock, "preempt": preempt, "cpus": CPUS}


def tell(**what):
    with open(TOLD, "w", encoding="ascii") as file:
        file.write(json.dumps(what) + "\n")


def main():
    run, seconds = sys.argv[3], int(sys.argv[4])
    wrong = Wrong()
    for cpu in range(1, CPUS):
        live.set_online(cpu, True)
    tell(**about())
    try:
        numbers = RUNS[run](seconds, wrong)
    except Exception as error:  # whatever it is, the machine outside has to hear of it
        numbers = {}
        wrong.append(f"{type(error).__name__}: {error}")
    tell(run=run, wrong=wrong, **numbers)


if __name__ == "__main__":
    main()
