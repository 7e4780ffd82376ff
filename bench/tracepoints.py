#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a tracepoint costs whom it is in: under `weir trace -e tp:...` and under `perf record`, in pairs.

    tracepoints.py WEIR CALLS [CPU]

CALLS (tests/live/load/calls) makes system calls on one CPU, with nobody looking, under weir and under perf
in turn, and its own CPU time is taken. Who looks runs on the other CPUs.
"""
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

EVENT = "raw_syscalls:sys_enter"
COUNT = 1000000
ROUNDS = 9
TARGET = 1.1


def others(cpu):
    return ",".join(str(one) for one in sorted(os.sched_getaffinity(0)) if one != cpu) or str(cpu)


def cpu_ns(calls, cpu):
    """CPU time of a call, whoever looks."""
    load = subprocess.Popen([calls, "-c", str(cpu), "-n", str(COUNT), "getpid"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    load.stdin.write(b"\n")
    load.stdin.close()
    load.stdout.read()
    _, status, usage = os.wait4(load.pid, 0)
    load.returncode = status
    if status:
        sys.exit(f"{calls} failed")
    return (usage.ru_utime + usage.ru_stime) * 1e9 / COUNT


def under(command, is_ready, cpu, calls):
    with tempfile.TemporaryFile() as said:
        tracer = subprocess.Popen(["taskset", "-c", others(cpu)] + command,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        while not is_ready(tracer, said):
            if tracer.poll() is not None:
                said.seek(0)
                sys.exit(f"{command[0]} failed: {said.read().decode()}")
            time.sleep(0.01)
        taken = cpu_ns(calls, cpu)
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        said.seek(0)
        return taken, said.read().decode()


def weir_is_ready(tracer, said):
    return b"tracing; " in os.pread(said.fileno(), 4096, 0)


def perf_is_ready(tracer, said):
    """It opens its events last of all, and says nothing."""
    try:
        links = [os.readlink(f"/proc/{tracer.pid}/fd/{fd}")
                 for fd in os.listdir(f"/proc/{tracer.pid}/fd")]
    except OSError:
        return False
    if not any("perf_event" in link for link in links):
        return False
    time.sleep(0.3)
    return True


def main():
    weir, calls = sys.argv[1:3]
    cpu = int(sys.argv[3]) if sys.argv[3:] else max(os.sched_getaffinity(0))
    ways = {
        "weir": ([weir, "trace", "-v", "-f", "none", "-e", f"tp:{EVENT}"], weir_is_ready),
        "perf": (["perf", "record", "-q", "-C", str(cpu), "-e", EVENT, "-o", "/dev/null"],
                 perf_is_ready),
    }
    costs = {"weir": [], "perf": []}
    plain, account = [], ""

    for _ in range(ROUNDS):
        plain.append(cpu_ns(calls, cpu))
        for way, (command, is_ready) in ways.items():
            taken, said = under(command, is_ready, cpu, calls)
            costs[way].append(taken - plain[-1])
            account = said.splitlines()[-1] if way == "weir" else account
    ratios = [a / b for a, b in zip(costs["weir"], costs["perf"])]
    print(f"plain  {min(plain):7.1f} ({statistics.median(plain):.1f}) ns a call")
    for way, values in costs.items():
        print(f"{way}   {min(values):7.1f} ({statistics.median(values):.1f}) ns more")
    ratio = statistics.median(ratios)
    print(f"weir / perf, median of {ROUNDS} pairs: {ratio:.2f} (target {TARGET})"
          f"{'' if ratio <= TARGET else '  MISSED'}")
    print(f"weir: {account}")


main()
