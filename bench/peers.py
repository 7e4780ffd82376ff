#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The same work through weir and through other tracers, by turns: what it costs, and what is wrong with the
lines that come out.

    peers.py BUILD RESULTS [ROUNDS]

RESULTS gets all of it as JSON; report.py makes tables of that. A tool that is not installed, or fails, is
left out with its reason. Needs root. A round is all tools under all loads and all readers, so that what the
machine does meanwhile is everybody's.

Each tool starts the work, so that it traces from the first call on. `work run` measures what the traced
side notices; the tool's own CPU time is the kernel's account of it, less the work's where that is in it.
"""
import contextlib
import json
import os
import select
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
LOOPS = 250_000         # to and fro
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
    """On one CPU: on two, most of the time is that of waking the other one up."""
    return ["taskset", "-c", str(max(os.sched_getaffinity(0))), "perf", "bench", "sched", "pipe", "-l",
            str(LOOPS // part)]


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
    "trace-cmd": "record needs ftrace, which this guest refuses; libtracefs reads the same buffers",
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
        ended = os.pidfd_open(child.pid)
        try:
            if not select.select([ended], [], [], PATIENCE_S)[0]:
                raise Failed(f"not done in {PATIENCE_S} s")
            took = time.monotonic() - begin
            with open(f"/proc/{child.pid}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            os.close(ended)
            if child.returncode is None:  # too late, or Ctrl-C
                os.killpg(child.pid, signal.SIGKILL)
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
        whole_s, cpu_s, reaped, _ = run(argv, subprocess.DEVNULL, tool.env)
        with open(told, encoding="utf-8") as file:
            took_ns, traced_ns = map(int, file.read().split())
        if reaped:
            cpu_s = max(0, cpu_s - traced_ns / 1e9)
        found = {"time_s": took_ns / 1e9 * scale, "whole_s": whole_s * scale,
                 "traced_cpu_s": traced_ns / 1e9 * scale,
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
    if "lost" in found:
        found["lost_most"] = max(run["lost"] for run in runs)
    found["runs"] = len(runs)
    return found


def say(text):
    print(text, flush=True)


class Tried:
    """Runs of one kind of thing, by name; what has failed once is not tried again."""

    def __init__(self):
        self.runs, self.failed = {}, {}

    def run(self, name, act, *args):
        if name in self.failed:
            return
        try:
            self.runs.setdefault(name, []).append(act(*args))
        except (Failed, OSError, subprocess.SubprocessError) as why:
            self.failed[name] = str(why)
            self.runs.pop(name, None)

    def medians(self, names):
        return {name: median_of(self.runs[name]) for name in names if name in self.runs}


class Progress:
    """Where it is, on a terminal, and how long it may go on: rounds take as long as those before."""

    def __init__(self):
        self.begin, self.round = time.monotonic(), 0

    def left(self):
        if not self.round:
            return ""
        each_s = (self.round_began - self.begin) / self.round
        left_s = each_s * (ROUNDS - self.round) - (time.monotonic() - self.round_began)
        return f", some {max(0, left_s) / 60:.1f} minutes left"

    def start_round(self, number):
        self.round, self.round_began = number, time.monotonic()

    def show(self, text):
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K  round {self.round + 1} of {ROUNDS}{self.left()}: {text}")
            sys.stderr.flush()

    def clear(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")


def turned(things, number):
    """Who comes first is another one in each round."""
    turn = number % len(things)
    return things[turn:] + things[:turn]


def round_of_tools(load, number, tried, progress):
    for tool in turned(TOOLS, number):
        if tool.before(load.name) is None:
            continue
        progress.show(f"{load.name}, {tool.name}")
        if tool.needs and not shutil.which(tool.needs):
            tried.failed[tool.name] = "not installed"
        tried.run(tool.name, measure, tool, load)


def tell_tools(load, tried):
    found = tried.medians([tool.name for tool in TOOLS])
    for name, figures in found.items():
        say(f"  {load.name:7} {name:22} " + " ".join(
            f"{key}={value:.4g}" for key, value in sorted(figures.items()) if value is not None))
    for name, why in tried.failed.items():
        say(f"  {load.name:7} {name:22} left out: {why}")
    return {"tools": found, "failed": tried.failed}


# ---- captures ---------------------------------------------------------------------------------------

READ_EVENTS = 1_000_000
TRACING = "/sys/kernel/tracing/instances"
# It gives up when a program of BPF comes or goes while it reads the symbols: it gets a copy of them.
EXTRACT = ('cat /proc/kallsyms >"$2.kallsyms" && mount --bind "$2.kallsyms" /proc/kallsyms && '
           'exec trace-cmd extract -B "$1" -o "$2"')


def make_trace_dat(path):
    """dd's calls, as trace-cmd has them in its file; how many. It enables nothing, for its own `record`
    wants ftrace as well, but takes what the kernel has recorded into an instance of ours."""
    name = f"weir-bench-{os.getpid()}"
    folder = os.path.join(TRACING, name)

    def put(file, text):
        with open(os.path.join(folder, file), "w", encoding="ascii") as at:
            at.write(text)

    os.mkdir(folder)
    try:
        put("buffer_size_kb", str(96 << 10))
        put("trace_clock", "mono")
        put("events/raw_syscalls/filter", 'comm == "dd"')
        put("events/raw_syscalls/enable", "1")
        run(dd(1), subprocess.DEVNULL)
        put("tracing_on", "0")
        run(["unshare", "-m", "sh", "-c", EXTRACT, "sh", name, path], subprocess.DEVNULL)
    finally:
        with contextlib.suppress(FileNotFoundError):  # trace-cmd takes it away
            os.rmdir(folder)
    counter = os.path.join(PEERS, "tracecmd")
    return int(subprocess.run([counter, path], stdout=subprocess.PIPE, check=True).stdout)


def perf_readers(folder):
    data = os.path.join(folder, "perf.data")
    run(["perf", "record", "-q", "-m", "8M", "-e", "raw_syscalls:*", "-o", data] + dd(1),
        subprocess.DEVNULL)
    events = 4 * CALLS  # a read and a write, where each begins and where it ends
    return {"perf script": (["perf", "script", "--ns", "-i", data], events),
            "perf report": (["perf", "report", "--stdio", "-i", data], events)}


def tracecmd_readers(folder):
    data = os.path.join(folder, "trace.dat")
    events = make_trace_dat(data)
    return {"libtracecmd, counter": ([os.path.join(PEERS, "tracecmd"), data], events),
            "trace-cmd report": (["trace-cmd", "report", "-i", data], events)}


def ctf_readers(folder):
    readers = {}
    for streams in (2, 128):
        path, name = os.path.join(folder, str(streams)), f"{streams} streams"
        subprocess.run([os.path.join(BUILD, "bench", "replay"), "make", path, str(READ_EVENTS),
                        str(streams)], check=True)
        readers[f"weir replay, none, {name}"] = [WEIR, "replay", "-f", "none", path]
        readers[f"weir replay, text, {name}"] = [WEIR, "replay", path]
        if shutil.which("babeltrace2"):
            readers[f"babeltrace2, counter, {name}"] = [
                "babeltrace2", path, "--component=sink.utils.counter"]
            if streams == 2:
                readers[f"babeltrace2, text, {name}"] = ["babeltrace2", path]
    return {name: (argv, READ_EVENTS) for name, argv in readers.items()}


def readers_of(folder, tried):
    """name -> (argv, events): who reads what has been recorded."""
    readers = ctf_readers(folder)
    for name, make, needs in (("perf", perf_readers, ("perf",)),
                              ("libtracecmd", tracecmd_readers,
                               ("trace-cmd", os.path.join(PEERS, "tracecmd")))):
        if not all(map(shutil.which, needs)):
            tried.failed[name] = "not installed"
            continue
        try:
            readers.update(make(folder))
        except (Failed, OSError, subprocess.SubprocessError) as why:
            tried.failed[name] = str(why)
    return readers


def read_once(argv, events):
    took, _, _, mib = run(argv, subprocess.DEVNULL)
    return {"per_s": events / took, "mib": mib}


def round_of_readers(readers, number, tried, progress):
    for name, (argv, events) in turned(list(readers.items()), number):
        progress.show(f"reading, {name}")
        tried.run(name, read_once, argv, events)


def tell_readers(readers, tried):
    found = tried.medians(readers)
    for name, figures in found.items():
        say(f"  reading {name:32} {figures['per_s'] / 1e6:.2f} M events/s, {figures['mib']:.0f} MiB")
    for name, why in tried.failed.items():
        say(f"  reading {name:32} left out: {why}")
    return {"readers": found, "failed": tried.failed}


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


def measure_all():
    tried = {name: Tried() for name in (*LOADS, "reading")}
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        progress.show("what there is to read")
        readers = readers_of(folder, tried["reading"])
        progress.begin = time.monotonic()
        for number in range(ROUNDS):
            progress.start_round(number)
            for name, load in LOADS.items():
                round_of_tools(load, number, tried[name], progress)
            round_of_readers(readers, number, tried["reading"], progress)
    progress.clear()
    return ({name: tell_tools(load, tried[name]) for name, load in LOADS.items()},
            tell_readers(readers, tried["reading"]))


def main():
    if os.geteuid():
        sys.exit("peers: needs root")
    begin = time.monotonic()
    load_before = os.getloadavg()[0]
    loads, reading = measure_all()
    results = {
        "loads": loads, "reading": reading, "left_out": LEFT_OUT, "versions": versions(),
        "rounds": ROUNDS, "parts": PART, "load_before": load_before,
        "load_after": os.getloadavg()[0], "seconds": time.monotonic() - begin,
    }
    with open(RESULTS, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\npeers: stopped")
