#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The same work through weir and through other tracers, by turns: what it costs, and what is wrong with the
lines that come out.

    peers.py BUILD RESULTS [ROUNDS]

RESULTS gets all of it as JSON; report.py makes tables of that. A tool that is not installed, or fails, is
left out with its reason. Needs root.

Each tool starts the work, so that it traces from the first call on. `work run` measures what the traced
side notices; the tool's own CPU time is the kernel's account of it, less the work's where that is in it.
"""
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
RESULTS = sys.argv[2]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
PEERS = os.path.join(BUILD, "bench", "peers")
WEIR = os.path.join(BUILD, "cli", "weir")
WORK = os.path.join(PEERS, "work")
CPUS = os.sysconf("SC_NPROCESSORS_ONLN")

PATIENCE_S = 90
CALLS = 500_000         # of each kind by dd: a read and a write
UNAMES = 300_000        # on each CPU
LOOPS = 50_000          # to and fro
# Slow ones do a part of it, and are told in the same unit.
PART = {"perf trace": 25, "strace -f": 25, "bpftrace": 5, "libbpf perf_buffer": 5}
# What rounding to a microsecond can make look like a step back.
ROUNDING_NS = 2000


class Load:
    """Work to be traced, its events, and what each tool calls them."""

    def __init__(self, name, unit, command, events, numbered=False):
        self.name = name
        self.unit = unit                # what one event is
        self.command = command          # of the part to do, 1 is all -> argv
        self.events = events            # part -> how many events there are at least
        self.numbered = numbered


def dd(part):
    return ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={CALLS // part}", "status=none"]


def uname(part):
    return [WORK, "uname", str(UNAMES // part)]


def pipe(part):
    return ["perf", "bench", "sched", "pipe", "-l", str(LOOPS // part)]


LOADS = {
    "dd": Load("dd", "system call", dd, lambda part: 2 * (CALLS // part)),
    "uname": Load("uname", "system call", uname, lambda part: CPUS * (UNAMES // part), True),
    "switch": Load("switch", "switch", pipe, lambda part: 2 * (LOOPS // part)),
}


class Tool:
    """How one tool traces: argv before the work, and how its lines are judged."""

    def __init__(self, name, before, stamp=None, per_event=None, needs=None,
                 after=None, env=None, quoted=False, only="", rounding=0):
        self.name = name
        self.before = before            # load name -> argv, None: not for this load
        self.stamp = stamp              # judge's word; None: there are no lines
        self.per_event = per_event or {}    # load name -> lines an event, 1 unless said
        self.needs = needs              # program that has to be installed
        self.after = after              # argv that makes the lines, timed apart
        self.env = env or {}
        self.quoted = quoted            # the command is one word
        self.only = only                # text that the lines in question have
        self.rounding = rounding


def of(table):
    return table.get


def weir_trace(form, *more):
    events = {"dd": "sys", "uname": "sys:uname", "switch": "sched:switch"}
    return lambda load: [WEIR, "trace", "-e", events[load], "-f", form, *more]


PERF_EVENTS = {"dd": "raw_syscalls:*", "uname": "syscalls:sys_enter_newuname",
               "switch": "sched:sched_switch"}
BPFTRACE = {
    "dd": 'tracepoint:raw_syscalls:sys_enter /comm == "dd"/ '
          '{ printf("%llu %d %d %llx\\n", nsecs, cpu, args->id, args->args[0]) } '
          'tracepoint:raw_syscalls:sys_exit /comm == "dd"/ '
          '{ printf("%llu %d %d %lld\\n", nsecs, cpu, args->id, args->ret) }',
    "uname": 'tracepoint:syscalls:sys_enter_newuname /comm == "work"/ '
             '{ printf("%llu %d %llx\\n", nsecs, cpu, args->name) }',
    "switch": 'tracepoint:sched:sched_switch '
              '{ printf("%llu %d %d %d\\n", nsecs, cpu, args->prev_pid, args->next_pid) }',
}
READER = {"dd": ("sys", "dd"), "uname": ("uname", "work"), "switch": ("switch", "")}
TRACEFS = {"dd": "sys", "uname": "uname", "switch": "switch"}
MARK_OF_UNAME = {"uname": "sys_enter"}

TOOLS = [
    Tool("untraced", lambda load: []),
    Tool("weir trace, text", weir_trace("text", "--time", "mono", "-o", "OUT"), "seconds"),
    Tool("weir trace, JSON", weir_trace("json", "-o", "OUT"), "json", {"dd": 2}, only="sys_enter"),
    Tool("weir trace, none", weir_trace("none")),
    Tool("weir record, replay",
         lambda load: [WEIR, "record", "-e", {"dd": "sys", "uname": "sys:uname",
                                              "switch": "sched:switch"}[load], "-o", "DIR"],
         "seconds", after=[WEIR, "replay", "DIR", "--time", "mono", "-o", "OUT"]),
    Tool("perf record, script",
         lambda load: ["perf", "record", "-q", "-m", "8M", "-e", PERF_EVENTS[load], "-o", "DATA"],
         "colon", {"dd": 2}, "perf", after=["perf", "script", "--ns", "-i", "DATA"]),
    Tool("perf trace",
         lambda load: ["perf", "trace", "-m", "8M", "-o", "OUT"] +
         (["--no-syscalls", "-e", "sched:sched_switch"] if load == "switch" else
          ["-e", "uname"] if load == "uname" else []),
         "span", None, "perf", rounding=ROUNDING_NS),
    Tool("strace -f",
         of({"dd": ["strace", "-f", "-ttt", "-o", "OUT"],
             "uname": ["strace", "-f", "-ttt", "-e", "trace=uname", "-o", "OUT"]}),
         "second", None, "strace", rounding=ROUNDING_NS),
    Tool("bpftrace",
         lambda load: ["bpftrace", "-q", "-o", "OUT", "-e", BPFTRACE[load], "-c"],
         "first", {"dd": 2}, "bpftrace", env={"BPFTRACE_PERF_RB_PAGES": "2048"}, quoted=True),
    Tool("libbpf ring_buffer",
         lambda load: [os.path.join(PEERS, "reader"), "ring", READER[load][0], "OUT",
                       READER[load][1]],
         "first", {"dd": 2}),
    Tool("libbpf perf_buffer",
         lambda load: [os.path.join(PEERS, "reader"), "perf", READER[load][0], "OUT",
                       READER[load][1]],
         "first", {"dd": 2}),
    Tool("libtracefs",
         lambda load: [os.path.join(PEERS, "tracefs"), TRACEFS[load], "OUT"],
         "first", {"dd": 2}, os.path.join(PEERS, "tracefs")),
]

# What can't be measured here, and why: in the tables as well.
LEFT_OUT = {
    "strace -f/switch": "shows no switches",
    "trace-cmd": "does not record in this guest; libtracefs reads the same buffers",
    "sysdig": "does not record in this guest",
}


def cut(words, folder):
    """Argv with the names of this run's files."""
    names = {"OUT": os.path.join(folder, "out"), "DIR": os.path.join(folder, "capture"),
             "DATA": os.path.join(folder, "perf.data")}
    return [names.get(word, word) for word in words]


class Failed(Exception):
    pass


def run(argv, stdout, env=None):
    """Runs it to its end. (seconds, CPU seconds with that of the children it has waited for, whether it has,
    peak MiB)"""
    with tempfile.TemporaryFile() as said:
        begin = time.monotonic()
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=said,
                                 env=dict(os.environ, **(env or {})), start_new_session=True)
        try:
            while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
                if time.monotonic() - begin > PATIENCE_S:
                    os.killpg(child.pid, signal.SIGKILL)
                    raise Failed(f"not done in {PATIENCE_S} s")
                time.sleep(0.002)
            took = time.monotonic() - begin
            with open(f"/proc/{child.pid}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if child.returncode is None:
                child.wait()
        if child.returncode:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-1:]
            raise Failed(f"exit status {child.returncode}: {' '.join(last)[:200]}")
    return (took, usage.ru_utime + usage.ru_stime, int(fields[13]) + int(fields[14]) > 0,
            usage.ru_maxrss / 1024)


def judge(tool, load, part, path):
    """What the tool's lines are worth."""
    argv = [os.path.join(PEERS, "judge"), tool.stamp, "-s", str(tool.rounding)]
    if load.numbered:
        argv += ["-n", str(UNAMES // part), str(CPUS)]
        if tool.only:
            argv += ["-m", tool.only]
    with open(path, "rb") as lines:
        out = subprocess.run(argv, stdin=lines, stdout=subprocess.PIPE, check=True).stdout
    count, back, most_ns, missing, twice = map(int, out.split())
    if not load.numbered:
        # Lines of the command's own start make this a little less than it is.
        wanted = load.events(part) * tool.per_event.get(load.name, 1)
        missing = max(0, wanted - count)
        return {"lines": count, "back": back, "back_ns": most_ns, "lost": missing / wanted}
    return {"lines": count, "back": back, "back_ns": most_ns, "twice": twice,
            "lost": missing / (load.events(part))}


def measure(tool, load):
    """One run of one tool; times a million events."""
    part = PART.get(tool.name, 1)
    before = tool.before(load.name)
    scale = 1e6 / load.events(part)
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        told = os.path.join(folder, "work")
        work = [WORK, "run", told] + load.command(part)
        argv = cut(before, folder) + ([" ".join(work)] if tool.quoted else work)
        _, cpu_s, reaped, _ = run(argv, subprocess.DEVNULL, tool.env)
        with open(told, encoding="utf-8") as file:
            took_ns, traced_ns = map(int, file.read().split())
        if reaped:
            cpu_s = max(0, cpu_s - traced_ns / 1e9)
        found = {"time_s": took_ns / 1e9 * scale, "traced_cpu_s": traced_ns / 1e9 * scale,
                 "tool_cpu_s": cpu_s * scale if before else 0}
        out = os.path.join(folder, "out")
        if tool.after:
            with open(out, "wb") as stdout:
                after_s, after_cpu_s, _, _ = run(cut(tool.after, folder), stdout)
            found["after_s"] = after_s * scale
            found["tool_cpu_s"] += after_cpu_s * scale
        if tool.stamp:
            found.update(judge(tool, load, part, out))
        return found


def median_of(runs):
    """Of each figure by itself; of steps back the longest of all."""
    keys = set().union(*runs)
    found = {key: statistics.median(run[key] for run in runs if key in run) for key in keys}
    if "back_ns" in found:
        found["back_ns"] = max(run["back_ns"] for run in runs)
    if "twice" in found:
        found["twice_most"] = max(run["twice"] for run in runs)
    found["lost_most"] = max((run["lost"] for run in runs if "lost" in run), default=None)
    found["runs"] = len(runs)
    return found


def say(text):
    print(text, flush=True)


def all_tools(load):
    runs, failed = {}, {}
    for number in range(ROUNDS):
        turn = number % len(TOOLS)
        for tool in TOOLS[turn:] + TOOLS[:turn]:
            if tool.before(load.name) is None or tool.name in failed:
                continue
            if tool.needs and not shutil.which(tool.needs):
                failed[tool.name] = "not installed"
                continue
            try:
                runs.setdefault(tool.name, []).append(measure(tool, load))
            except (Failed, OSError, subprocess.SubprocessError) as why:
                failed[tool.name] = str(why)
                runs.pop(tool.name, None)
    found = {tool.name: median_of(runs[tool.name]) for tool in TOOLS if tool.name in runs}
    for name, figures in found.items():
        say(f"  {load.name:7} {name:22} " + " ".join(
            f"{key}={value:.4g}" for key, value in sorted(figures.items()) if value is not None))
    for name, why in failed.items():
        say(f"  {load.name:7} {name:22} left out: {why}")
    return {"tools": found, "failed": failed}


# ---- captures ---------------------------------------------------------------------------------------

READ_EVENTS = 1_000_000


def readers_of(folder):
    """name -> (argv, events): who reads what has been recorded."""
    two, many, data = (os.path.join(folder, name) for name in ("two", "many", "perf.data"))
    made = os.path.join(BUILD, "bench", "replay")
    subprocess.run([made, "make", two, str(READ_EVENTS), "2"], check=True)
    subprocess.run([made, "make", many, str(READ_EVENTS), "128"], check=True)
    counter = ["--component=sink.utils.counter"]
    readers = {}
    for name, path in (("2 streams", two), ("128 streams", many)):
        readers[f"weir replay, none, {name}"] = [WEIR, "replay", "-f", "none", path]
        readers[f"weir replay, text, {name}"] = [WEIR, "replay", path]
        if shutil.which("babeltrace2"):
            readers[f"babeltrace2, counter, {name}"] = ["babeltrace2", path] + counter
            if path == two:
                readers[f"babeltrace2, text, {name}"] = ["babeltrace2", path]
    events = dict.fromkeys(readers, READ_EVENTS)
    if shutil.which("perf"):
        with contextlib.suppress(Failed):
            run(["perf", "record", "-q", "-m", "8M", "-e", "raw_syscalls:*", "-o", data] + dd(1),
                subprocess.DEVNULL)
            readers["perf script"] = ["perf", "script", "--ns", "-i", data]
            readers["perf report"] = ["perf", "report", "--stdio", "-i", data]
            events["perf script"] = events["perf report"] = 2 * CALLS
    return {name: (argv, events[name]) for name, argv in readers.items()}


def all_readers():
    runs = {}
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        readers = readers_of(folder)
        for _ in range(ROUNDS):
            for name, (argv, events) in readers.items():
                try:
                    took, _, _, mib = run(argv, subprocess.DEVNULL)
                    runs.setdefault(name, []).append({"per_s": events / took, "mib": mib})
                except Failed as why:
                    say(f"  reading {name:32} failed: {why}")
    found = {name: {key: statistics.median(run[key] for run in all_runs)
                    for key in ("per_s", "mib")} for name, all_runs in runs.items()}
    for name, figures in found.items():
        say(f"  reading {name:32} {figures['per_s'] / 1e6:.2f} M events/s, {figures['mib']:.0f} MiB")
    return found


# ---- the machine ------------------------------------------------------------------------------------

def version(*argv):
    try:
        out = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return out.stdout.decode(errors="replace").splitlines()[0].strip()
    except (OSError, IndexError):
        return None


def versions():
    asked = {"perf": ("perf", "--version"), "strace": ("strace", "-V"),
             "bpftrace": ("bpftrace", "--version"), "babeltrace2": ("babeltrace2", "--version")}
    return {name: version(*argv) for name, argv in asked.items() if shutil.which(argv[0])}


def main():
    if os.geteuid():
        sys.exit("peers: needs root")
    begin = time.monotonic()
    load_before = os.getloadavg()[0]
    found = {name: all_tools(load) for name, load in LOADS.items()}
    results = {
        "loads": found, "reading": all_readers(), "left_out": LEFT_OUT, "versions": versions(),
        "rounds": ROUNDS, "parts": PART, "load_before": load_before,
        "load_after": os.getloadavg()[0], "seconds": time.monotonic() - begin,
    }
    with open(RESULTS, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
