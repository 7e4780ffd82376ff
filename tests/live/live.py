# SPDX-License-Identifier: BSD-2-Clause
"""What the live tests share: weir as a child, its trace read back, loads that know what they did.

A test has as arguments the program weir and the folder of the loads, and `soak` where it is to last a
minute. It reads like this:

    with live.Load("calls", "-n", 1000, "uname") as load, live.Trace("-p", load.pid) as trace:
        load.go()
        told = load.end()       # the truth
        trace.end()             # weir ends by itself, since -p's last process has
        trace.events()          # and what it says

Nothing of what runs here outlives its test: children die with it, and a time-out of the runner is
turned into an exception, so that `finally` is kept.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WEIR, LOADS = sys.argv[1:3]
SOAK = sys.argv[3:] == ["soak"]

# How long anything may take that should be over: a busy machine is no failure.
PATIENCE_S = 600 if SOAK else 60

# Ties of the stamp go by these, then by CPU (G1).
CLASSES = ("life", "cpu")


def words(args):
    return [str(arg) for arg in args]


def wait_until(what, condition, patience_s=PATIENCE_S):
    """For what only shows by looking."""
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {patience_s} s: not yet {what}")
        time.sleep(0.005)


class Child:
    """A process that is gone, at the latest, when its `with` is left."""
    running = set()

    def __init__(self, command, **popen):
        # The program itself is the child: setpriv becomes it.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL"] + command, **popen)
        self.pid = self.process.pid
        self.running.add(self)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.running.discard(self)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()

    def end(self):
        """Waits for it to end by itself; its status."""
        return self.process.wait(timeout=PATIENCE_S)

    def stop(self, signum=signal.SIGINT):
        self.signal(signum)
        return self.end()

    def signal(self, signum):
        self.process.send_signal(signum)


def on_sigterm(signum, frame):
    """All at once: the runner waits for half a second, and then what is left stays."""
    for child in Child.running:
        child.process.kill()
    sys.exit(f"ended by signal {signum}")


signal.signal(signal.SIGTERM, on_sigterm)


class Load(Child):
    """A program of tests/live/load. It exists when this returns, and does nothing before go().

    What it has done it prints at its end, lines of a key and numbers.
    """

    def __init__(self, name, *args, cpus=None):
        command = ["taskset", "-c", cpus] if cpus else []
        super().__init__(command + [os.path.join(LOADS, name)] + words(args),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.name = name
        if self.process.stdout.readline() != b"ready\n":
            self.__exit__()
            raise AssertionError(f"{name} did not start")

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self):
        """Waits for it; {key: [[number, ...], ...]}, a row for each line with that key."""
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        if self.process.returncode:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}")
        told = {}
        for line in out.decode().splitlines():
            key, *numbers = line.split()
            told.setdefault(key, []).append([int(n) for n in numbers])
        return told

    def run(self):
        self.go()
        return self.end()


def new_folder(parent=None):
    return tempfile.mkdtemp(prefix="weir-live-", dir=parent)


class Weir(Child):
    """`weir`, which has begun when this returns: `begun` of its standard error, with -v, says so.

    folder: for what it writes, and gone with it. cpus: where weir itself may run.
    """

    def __init__(self, folder, begun, *args, cpus=None, **popen):
        self.folder, self.begun = folder, begun
        self.said_path = os.path.join(folder, "said")
        command = ["taskset", "-c", str(cpus)] if cpus is not None else []
        with open(self.said_path, "wb") as said:
            super().__init__(command + [WEIR] + words(args),
                             **{"stdin": subprocess.DEVNULL, "stderr": said, **popen})
        try:
            wait_until(begun, self.has_begun)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc):
        super().__exit__(*exc)
        shutil.rmtree(self.folder, ignore_errors=True)

    def said(self):
        """Its standard error so far."""
        with open(self.said_path, encoding="utf-8") as said:
            return said.read()

    def has_begun(self):
        ended = self.process.poll() is not None
        # It may have begun and ended between two looks.
        if self.begun in self.said():
            return True
        if ended:
            raise AssertionError(f"weir ended with {self.process.returncode}: {self.said()}")
        return False


class Accounted(Weir):
    """One that leaves a ledger."""

    def __init__(self, folder, begun, command, *args, **popen):
        self.ledger_path = os.path.join(folder, "ledger.json")
        super().__init__(folder, begun, command, "-v", "--ledger", self.ledger_path, *args, **popen)

    def ledger(self):
        with open(self.ledger_path, encoding="utf-8") as ledger:
            return json.load(ledger)


class Trace(Accounted):
    """`weir trace`, which traces when this returns.

    form: of --format, with `json` events() and verify() work. Left out of `args`: -o, --ledger, -v.
    """

    def __init__(self, *args, form="json", folder=None, **popen):
        folder = new_folder(folder)
        self.path = os.path.join(folder, "trace")
        super().__init__(folder, "tracing; ", "trace", "--format", form, "-o", self.path, *args,
                         **popen)

    def lines(self):
        """The trace so far, or whole: each line's object. A line that is not there whole is left."""
        with open(self.path, "rb") as trace:
            for line in trace:
                if line.endswith(b"\n"):
                    yield json.loads(line)

    def events(self, *names, pid=None, **having):
        """The lines with one of these as `event`, of this process, that have these members."""
        return [line for line in self.lines()
                if (not names or line["event"] in names)
                and (pid is None or line.get("pid") == pid)
                and all(line.get(key) == value for key, value in having.items())]

    def gaps(self):
        return self.events("gap")

    def ledger_now(self):
        """The account so far, by SIGUSR1 (the form has to be json)."""
        before = self.said().count("\n")
        self.signal(signal.SIGUSR1)
        wait_until("an account", lambda: self.said().count("\n") > before)
        return json.loads(self.said().splitlines()[before])

    def head(self, most):
        """A file with that many lines of it, half of them from its end: a schema takes its time."""
        path = os.path.join(self.folder, "head")
        with open(self.path, "rb") as whole, open(path, "wb") as part:
            lines = whole.readlines()
            part.writelines(lines[:most // 2] + lines[max(most // 2, len(lines) - most // 2):])
        return path

    def verify(self):
        """What `weir verify` says of trace and ledger; an exception when it finds fault."""
        done = subprocess.run([WEIR, "verify", "--ledger", self.ledger_path, self.path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        said = done.stdout.decode()
        if done.returncode:
            raise AssertionError(f"weir verify: {said}")
        return said


TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VALIDATE = os.path.join(TESTS, "unit", "sinks", "validate.py")
SCHEMAS = os.path.join(os.path.dirname(TESTS), "docs", "schema")


def assert_valid(case, schema, path="-", text=None):
    """Each line of that file, or of `text`, keeps to docs/schema/weir-SCHEMA.schema.json."""
    done = subprocess.run([sys.executable, VALIDATE,
                           os.path.join(SCHEMAS, f"weir-{schema}.schema.json"), path], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    case.assertEqual(done.returncode, 0, done.stdout.decode())


def run(*args):
    """`weir ARGS` to its end: (status, standard output, standard error)."""
    done = subprocess.run([WEIR] + words(args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextlib.contextmanager
def for_everybody():
    """weir, where nobody can reach it, too: the build may be somewhere private."""
    with tempfile.TemporaryDirectory(prefix="weir-live-") as folder:
        os.chmod(folder, 0o755)
        weir = shutil.copy(WEIR, folder)
        os.chmod(weir, 0o755)
        yield weir


def lost(account, cause=None):
    """Of a ledger or of one of its sources: all that was lost, or by one cause."""
    if cause:
        return account["lost"].get(cause, 0)
    return sum(count or 0 for count in account["lost"].values())


def calls_accounted(ledger):
    """Records of the cpu rings, delivered or lost. (Life rings lose what no -e asks for, too.)"""
    return sum(source["delivered"] + lost(source) for source in ledger["sources"]
               if source_order(source["name"])[0] == CLASSES.index("cpu"))


def source_order(name):
    letters, number = re.fullmatch(r"([a-z]+)([0-9]+)", name).groups()
    return CLASSES.index(letters), int(number)


class Order:
    """Counts records that stand behind one that should come after them (G1).

    A gap stands at the end of what it bounds and has no place among equal stamps.
    """

    def __init__(self):
        self.steps_back = 0
        self.last = ()

    def take(self, line):
        if line["event"] == "watermark":
            return
        place = (int(line["ts"]),)
        if line["event"] not in ("gap", "clock_step"):
            place += (source_order(line["source"]), line["seq"])
        self.steps_back += place < self.last[:len(place)]
        self.last = place


def steps_back(lines):
    order = Order()
    for line in lines:
        order.take(line)
    return order.steps_back


def assert_account(case, ledger):
    """What holds of every ledger at the end (G4): it closes, in all and for each source."""
    for account in [ledger] + ledger["sources"]:
        name = account.get("name", "all")
        right = account["delivered"] + account["filtered"] + account["pending"] + lost(account)
        case.assertEqual(account["produced"], right, name)
        case.assertEqual(account["pending"], 0, name)
        case.assertEqual(account["late"], 0, name)
        case.assertEqual(account["ahead"], 0, name)
        case.assertEqual(account["stray"], 0, name)
        # Counted in the kernel, beside what the reader found missing by the numbers.
        case.assertEqual(account["failed"], lost(account, "reserve_failed"), name)
    case.assertEqual(ledger["order"], "exact")


def online_cpus():
    """Their ids, "0-11,16-27" and all."""
    with open("/sys/devices/system/cpu/online", encoding="ascii") as online:
        ranges = [part.split("-") for part in online.read().strip().split(",")]
    return [cpu for r in ranges for cpu in range(int(r[0]), int(r[-1]) + 1)]


def set_online(cpu, online):
    with open(f"/sys/devices/system/cpu/cpu{cpu}/online", "w", encoding="ascii") as file:
        file.write("1" if online else "0")


@contextlib.contextmanager
def offline(cpu):
    """That CPU is offline inside, and online again after it, whatever happens."""
    try:
        set_online(cpu, False)
        yield
    finally:
        set_online(cpu, True)
