#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`weir trace` against `strace -f`: the same programs, and thread by thread the same calls.

Each program runs twice, under either tracer, with the same address space (setarch -R), environment
and files. Threads go by their place in the tree of forks, since their numbers differ. Compared are
the calls and their order, all arguments (registers as they are, strings by their bytes, socket
addresses by their members), results, signals, and how each thread ended.

DIFFERENCES is the whole of what may differ, each with its reason. Everything else is a failure.
"""
import errno
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import cases
import live

DIFFERENCES = {
    "pids": "they are another run's: both are named by their place in the tree",
    "outside": "the parent of the program is the tracer, and so is its group's leader",
    "first execve": "the program is executed from another image: the address of its environment",
    "buffers": "weir gives the address of bytes that are read or written, strace the bytes",
    "structs": "weir reads socket addresses and times, and gives the address of other structs",
    "unused arguments": "strace leaves out the mode of an open that creates nothing, and what an "
                        "option of prctl or a futex does not use; weir's JSON has the registers",
    "ignored signals": "a ptraced process is stopped for signals which the kernel drops otherwise, "
                       "because they are ignored: those that are by default, or were told to be. "
                       "A call that waits is begun again then",
    "fatal signals": "without ptrace, the kernel turns a fatal signal into SIGKILL for all threads "
                     "when it is sent; strace still sees it. How the process ended agrees",
    "killed": "strace does not see a call return whose thread has SIGKILL waiting",
    "ended by another": "of a thread that another's exec or exit_group ends, strace tells just "
                      "that; and its last call, where it blocks, begins or does not",
    # Only for programs that say so:
    "reaping": "when a child's end is noticed is timing: which children are reaped is compared, "
               "not by how many calls, and not when the handler of SIGCHLD ran; nor whether a "
               "fork was begun again because of it",
    "addresses": "threads race for them: compared is which are null",
    "contention": "whether a thread has to wait for a lock is timing: futex is left out",
    "names": "names of temporary files are drawn at random, again where a draw is no good",
}

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../probes/syscalls.tbl")
READ = ("path", "str", "argv", "sockaddr", "timespec")  # what weir reads from a program's memory
STRUCTS = ("in", "out", "inout")
ADDRESSES = ("ptr", "buf", "outbuf", "envp", "timespec") + STRUCTS
NARROW = ("int", "uint", "fd", "dirfd", "pid", "uid", "gid", "sig", "mode", "dev", "flags", "enum")

# Calls whose result is a task.
TASK_RESULTS = ("clone", "clone3", "fork", "vfork", "getpid", "gettid", "getppid", "getpgrp",
                "getpgid", "setsid", "getsid", "set_tid_address", "wait4", "rt_sigreturn")
BORN = ("clone", "clone3", "fork", "vfork")
UNUSED = ("open", "openat", "prctl", "futex")
ADDRESS_RESULTS = ("mmap", "mremap", "brk", "shmat")

# Results that only tracers see: the call is made again, or becomes EINTR.
RESTARTS = {"ERESTARTSYS": -512, "ERESTARTNOINTR": -513, "ERESTARTNOHAND": -514,
            "ERESTART_RESTARTBLOCK": -516}


def tag_of(arg):
    """Its tag; `timespec` of one that a call reads."""
    _, tag, *more = re.split(r"[:?(]", arg)
    return "timespec" if tag in ("in", "inout") and more[0] == "timespec" else tag


def read_table():
    """{call: [(argument, tag)]}, as x86-64 has them, and {call: (argument, other, its bits, values)}."""
    calls, conditions = {}, {}
    with open(TABLE, encoding="ascii") as table:
        for line in table:
            word = line.split("#")[0].split()
            if word and word[1] != "-":
                calls[word[0]] = [(arg.split(":")[0], tag_of(arg)) for arg in word[6:]]
                for arg in word[6:]:
                    if "?" in arg:
                        other, bits, values = re.fullmatch(r"(\w+)(?:&(\d+))?=(.*)",
                                                           arg.split("?")[1]).groups()
                        conditions[word[0]] = (arg.split(":")[0], other, int(bits or 0xffffffff),
                                               [int(value) for value in values.split(",")])
    return calls, conditions


CALLS, CONDITIONS = read_table()
STRINGS = [name for name, args in CALLS.items() if any(tag in READ for _, tag in args)]
# What strace shows in full. It knows the structs behind other addresses, too; weir does not.
DEEP = [name for name, args in CALLS.items()
        if any(tag in ("argv", "sockaddr", "timespec") for _, tag in args)]


# ---- what both say, in one form: lists of these -------------------------------------------------

class Call:
    """args and result as weir says them, pids as tasks; result None: it did not return."""

    def __init__(self, name, args, result):
        self.name = name
        self.args = args
        self.result = result

    def __eq__(self, other):
        return isinstance(other, Call) and vars(self) == vars(other)

    def __repr__(self):
        args = ", ".join(f"{key}: {value!r}" for key, value in self.args.items())
        return f"{self.name}({args}) = {self.result!r}"


class Signal:
    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Signal) and self.name == other.name

    def __repr__(self):
        return f"--- {self.name} ---"


class End:
    """how: a status, the name of a signal, or None where that is not known."""

    def __init__(self, how):
        self.how = how

    def __eq__(self, other):
        return isinstance(other, End) and self.how == other.how

    def __repr__(self):
        return f"+++ {self.how} +++"


# ---- strace -----------------------------------------------------------------------------------

def strace(argv, where, env):
    """{tid: [item]} and the tid of the program."""
    with tempfile.TemporaryDirectory(prefix="weir-strace-") as folder:
        command = ["setarch", "-R", "strace", "-ff", "-xx", "-s", "8192", "-X", "raw",
                   "-e", "verbose=" + ",".join("?" + name for name in DEEP),
                   "-e", "raw=!" + ",".join("?" + name for name in STRINGS),
                   "-e", "quiet=attach,personality", "-o", f"{folder}/t"] + argv
        run_program(command, where, env)
        threads = {}
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", encoding="ascii") as file:
                threads[int(name.split(".")[1])] = file.read().splitlines()
    return {tid: strace_items(lines) for tid, lines in threads.items()}, min(threads)


def strace_items(lines):
    items = []
    for line in lines:
        if line.startswith("--- "):
            found = re.match(r"--- (\w+) \{", line)
            if found:       # and not a stop, which is no delivery
                items.append(Signal(found.group(1)))
        elif line.startswith("+++ superseded"):
            items.append(End(None))
        elif " <pid changed to " in line:
            items.append(strace_call(re.sub(r" <pid changed to .*", ") = 0", line)))
        elif line.startswith("+++ "):
            found = re.match(r"\+\+\+ (?:exited with (\d+)|killed by (\w+))", line)
            items.append(End(found.group(2) or int(found.group(1))))
        elif not line.startswith("<... execve resumed>"):
            items.append(strace_call(line))
    return items


CALL = re.compile(r"(\w+)\((.*?)(?: <unfinished \.\.\.>)?\)\s+= (.*)")
SYSCALL = re.compile(r"syscall_0x([0-9a-f]+)$")


def strace_call(line):
    found = CALL.fullmatch(line)
    if not found:
        raise AssertionError(f"strace: {line}")
    name, text, result = found.groups()
    unknown = SYSCALL.match(name)
    if unknown:
        return Call(f"sys_{int(unknown.group(1), 16)}", {}, strace_result(result))
    values = split(text)
    args = {}
    for (arg, tag), value in zip(CALLS[name], values):
        if tag in ("buf", "outbuf") and value.startswith('"') or tag in STRUCTS and value[0] in "{[~":
            continue
        args[arg] = strace_value(tag, value)
    return Call(name, args, strace_result(result))


def split(text):
    """At the commas that stand in nothing."""
    parts, depth, quoted = [""], 0, False
    for c in re.sub(r" /\*.*?\*/", "", text):
        quoted ^= c == '"'
        depth += not quoted and (c in "[{(") - (c in "]})")
        if c == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part]


def unquoted(text):
    """Bytes of a string that stands all in hex."""
    return bytes.fromhex(text.strip('"').replace("\\x", ""))


def number(text):
    """12, 0x1f, 0755, 0x1|0x900, and |0x900 for 0|0x900."""
    value = 0
    for part in text.split("|"):
        value |= int(part, 8) if re.fullmatch("0[0-7]+", part) else int(part or "0", 0)
    return value


def strace_value(tag, text):
    if text.startswith('"'):
        return unquoted(text)
    if text.startswith("["):
        return [unquoted(part) for part in split(text[1:-1])]
    if text.startswith("{"):
        return strace_timespec(text) if tag == "timespec" else strace_sockaddr(text[1:-1])
    if text == "NULL":
        return 0
    value = number(text)
    return value & (0xffffffff if tag in NARROW else 0xffffffffffffffff)


def strace_timespec(text):
    """It has nanoseconds without a sign."""
    sec, nsec = map(int, re.fullmatch(r"\{tv_sec=(-?\d+), tv_nsec=(\d+)\}", text).groups())
    return {"tv_sec": sec, "tv_nsec": nsec - (nsec >> 63 << 64)}


def strace_sockaddr(text):
    """{member: value}; None where strace has not enough of it."""
    members = dict(part.split("=", 1) for part in split(text))
    family = int(members["sa_family"], 0)
    if "sin_port" in members:
        return {"family": family, "port": int.from_bytes(unquoted(members["sin_port"]), "big"),
                "addr": unquoted(members["sin_addr"])}
    if "sin6_port" in members:
        return {"family": family, "port": int.from_bytes(unquoted(members["sin6_port"]), "big"),
                "addr": unquoted(members["sin6_addr"])}
    if "sun_path" in members:
        path = members["sun_path"]
        kind = "abstract" if path[0] == "@" else "path"
        return {"family": family, kind: unquoted(path.lstrip("@"))}
    if "nl_pid" in members:
        return {"family": family, "groups": int(members["nl_groups"], 16)}
    return {"family": family}


def strace_result(text):
    word = text.split()
    if word[0] == "?":
        return RESTARTS[word[1]] if len(word) > 1 else None
    if word[0] == "-1" and len(word) > 1:
        name = word[1]
        return RESTARTS[name] if name in RESTARTS else -getattr(errno, name)
    value = number(word[0])
    return value - (1 << 64) if value >> 63 else value


# ---- weir -------------------------------------------------------------------------------------

def weir(argv, where, env):
    """{tid: [item]}, the tid of the program, {tid: names of signals that it ignored}."""
    with tempfile.TemporaryDirectory(prefix="weir-strace-") as folder:
        path = f"{folder}/trace"
        command = ["setarch", "-R", live.WEIR, "trace", "--pair", "--format", "json",
                   "--string-limit", "4096", "-e", "process,signal,sys", "--strict",
                   "--ledger", f"{folder}/ledger", "-o", path, "--"] + argv
        run_program(command, where, env)
        verified = subprocess.run([live.WEIR, "verify", "-q", "--ledger", f"{folder}/ledger", path],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if verified.returncode:
            raise AssertionError(verified.stdout.decode())
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    threads, ignored = {}, {}
    for line in lines:
        if line["event"] == "clock_step":
            continue
        if line["event"] == "gap":
            raise AssertionError(f"weir lost something: {line}")
        # A timer's signal is generated in whatever task it interrupts.
        if line["event"] == "signal" and line["args"]["action"] == "generated":
            if line["args"]["result"] == "ignored":
                ignored.setdefault(line["args"]["target_tid"], set()).add(line["args"]["sig"])
            continue
        items = threads.setdefault(line["tid"], [])
        if line["event"] == "syscall":
            items.append(weir_call(line))
        elif line["event"] == "signal":
            items.append(Signal(line["args"]["sig"]))
        elif line["event"] == "exit":
            items.append(End(line["args"].get("signal", line["args"]["code"])))
        elif line["event"] == "exec" and line["args"]["old_tid"] != line["tid"]:
            items.append(End(None))
    return threads, lines[0]["tid"], ignored


def to_bytes(text):
    """A string of weir's JSON as the bytes it stands for."""
    out = text.encode()
    return re.sub(rb"\\(\\|x(..))", lambda m: bytes.fromhex(m[2].decode()) if m[2] else b"\\", out)


def weir_call(line):
    name, args = line["syscall"], {}
    for (arg, tag) in CALLS.get(name, []):
        if arg in (line["args"] or {}):
            if CONDITIONS.get(name, [None])[0] == arg:
                _, other, bits, values = CONDITIONS[name]
                tag = tag if int(line["args"][other], 16) & bits in values else "hex"
            args[arg] = weir_value(tag, line["args"][arg], arg in line.get("unread", ()))
    return Call(name, args, line["result"])


def weir_value(tag, value, unread):
    if isinstance(value, list):
        return [to_bytes(one) for one in value]
    if isinstance(value, dict):
        return value if tag == "timespec" else weir_sockaddr(value)
    if tag in ("path", "str") and not unread and not re.fullmatch("0x0", value):
        return to_bytes(value)
    register = int(value, 16) if isinstance(value, str) else value or 0
    return register & (0xffffffff if tag in NARROW else 0xffffffffffffffff)


def weir_sockaddr(value):
    family = getattr(socket, "AF_" + value["family"].upper())
    if "addr" in value:
        return {"family": int(family), "port": value["port"],
                "addr": socket.inet_pton(family, value["addr"])}
    if "groups" in value:
        return {"family": int(family), "groups": int(value["groups"], 16)}
    found = {"family": int(family)}
    found.update((key, to_bytes(value[key])) for key in ("path", "abstract") if key in value)
    return found


# ---- both -------------------------------------------------------------------------------------

def run_program(command, where, env):
    """Its output is thrown away; how it ended is in both traces."""
    subprocess.run(command, cwd=where, env=env, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                   timeout=live.PATIENCE_S)


def tree(threads, root):
    """{tid: its place}: "0", its first child "0.0", ..."""
    places = {root: "0"}

    def visit(tid):
        children = [item.result for item in threads.get(tid, ())
                    if isinstance(item, Call) and item.name in BORN and (item.result or 0) > 0]
        for i, child in enumerate(children):
            places[child] = f"{places[tid]}.{i}"
            visit(child)

    visit(root)
    return places


def name_tasks(items, places):
    """pids, by what they are: "task 0.1", "outside"."""
    def task(value):
        pid = value - (1 << 32) if value >> 31 else value
        if pid in (0, -1):
            return pid
        place = places.get(abs(pid), "outside")
        return f"task {'-' if pid < 0 else ''}{place}"

    for item in items:
        if not isinstance(item, Call):
            continue
        for arg, tag in CALLS.get(item.name, ()):
            if tag == "pid" and arg in item.args:
                item.args[arg] = task(item.args[arg])
        if item.name in TASK_RESULTS and item.result and item.result > 0:
            item.result = task(item.result)


def last_call(items):
    return next((item for item in reversed(items) if isinstance(item, Call)), None)


def lives(items):
    """Apart at each exec by another thread of the process, which takes the tid of this one."""
    parts = [[]]
    for item in items:
        parts[-1].append(item)
        if item == End(None):
            parts.append([])
    return parts


def even_ends(items):
    parts = lives(items)
    for part in parts:
        even_end(part)
    return [item for part in parts for item in part]


def even_end(items):
    """The end of a thread, less what ptrace and timing make of it."""
    if not items or not isinstance(items[-1], End):
        return
    end, call = items[-1], last_call(items)
    if isinstance(end.how, str):
        while len(items) > 1 and items[-2] in (Signal(end.how), Signal("SIGKILL")):
            del items[-2]
        if end.how == "SIGKILL" and call:
            call.result = None
    elif call.name not in ("exit", "exit_group") or end.how is None:
        while not isinstance(items[-1], Call) or items[-1].result in (None, *RESTARTS.values()):
            items.pop()
        items.append(End("by another"))


def even_arguments(items, others):
    """Takes from weir's calls what strace leaves out, or has as bytes."""
    for item, other in zip(items, others):
        if not isinstance(item, Call) or not isinstance(other, Call) or item.name != other.name:
            continue
        for arg, tag in CALLS.get(item.name, ()):
            if arg not in other.args and (tag in ("buf", "outbuf") + STRUCTS or item.name in UNUSED):
                item.args.pop(arg, None)


def even_reaping(items):
    """Children that were waited for stand at the end, in their order; how is left out."""
    children = sorted(item.result for item in items
                      if isinstance(item, Call) and item.name == "wait4"
                      and isinstance(item.result, str))
    kept, in_handler = [], False
    for item in items:
        in_handler |= item == Signal("SIGCHLD")
        if item == Signal("SIGCHLD") or isinstance(item, Call) and item.name == "wait4":
            continue
        if isinstance(item, Call) and item.name == "clone" and item.result in RESTARTS.values():
            continue
        if in_handler and isinstance(item, Call) and item.name == "rt_sigreturn":
            in_handler = False
            continue
        kept.append(item)
    return kept + children


def even_addresses(items):
    for item in items:
        if not isinstance(item, Call):
            continue
        for arg, tag in CALLS.get(item.name, ()):
            value = item.args.get(arg)
            if isinstance(value, int) and (tag in ADDRESSES or value >> 32):
                item.args[arg] = value and "address"
        if item.name in ADDRESS_RESULTS and item.result and item.result > 0:
            item.result = "address"


def even_names(items):
    """gcc's and sed's."""
    def even(value):
        if isinstance(value, bytes):
            return re.sub(rb"(/cc|/sed)\w{6}\b", rb"\1XXXXXX", value)
        return [even(one) for one in value] if isinstance(value, list) else value

    for item in items:
        if isinstance(item, Call):
            item.args = {arg: even(value) for arg, value in item.args.items()}


def less_ignored(items, signals):
    """Without these signals, and the calls that they cut short and that were begun again."""
    kept = []
    for item in items:
        if item not in signals:
            kept.append(item)
        elif isinstance(kept[-1], Call) and kept[-1].result in RESTARTS.values():
            kept.pop()
    return kept


def less(items, name):
    return [item for item in items if not (isinstance(item, Call) and item.name == name)]


def differences(program, theirs, ours):
    """What differs between strace's and weir's view, as lines; none is right."""
    strace_threads, strace_root = theirs
    weir_threads, weir_root, ignored = ours
    views = []
    for threads, root in ((strace_threads, strace_root), (weir_threads, weir_root)):
        places = tree(threads, root)
        strangers = set(threads) - set(places)
        if strangers:
            return [f"threads {strangers} were born by nobody"]
        for items in threads.values():
            name_tasks(items, places)
        views.append({places[tid]: items for tid, items in threads.items()})
        ignored = {places.get(tid): names for tid, names in ignored.items()} \
            if threads is weir_threads else ignored
    if views[0].keys() != views[1].keys():
        return [f"threads: strace {sorted(views[0])}, weir {sorted(views[1])}"]
    found = []
    for place in sorted(views[0]):
        found += thread_differences(program, place, views[0][place], views[1][place],
                                    ignored.get(place, set()))
    return found


def thread_differences(program, place, theirs, ours, ignored):
    if place == "0":
        for items in (theirs, ours):
            items[0].args.pop("envp")
    theirs = less_ignored(theirs, [Signal(name) for name in ignored if Signal(name) not in ours])
    theirs, ours = even_ends(theirs), even_ends(ours)
    for items in (theirs, ours):
        if "addresses" in program.may:
            even_addresses(items)
        if "names" in program.may:
            even_names(items)
    if "reaping" in program.may:
        theirs, ours = even_reaping(theirs), even_reaping(ours)
    if "contention" in program.may:
        theirs, ours = less(theirs, "futex"), less(ours, "futex")
    if "names" in program.may:
        theirs, ours = less(theirs, "getrandom"), less(ours, "getrandom")
    even_arguments(ours, theirs)
    if theirs == ours:
        return []
    at = next((i for i, pair in enumerate(zip(theirs, ours)) if pair[0] != pair[1]),
              min(len(theirs), len(ours)))
    return [f"thread {place}, item {at} of {len(theirs)} and {len(ours)}:",
            f"  strace {theirs[at:at + 3]}", f"  weir   {ours[at:at + 3]}"]


class Program:
    """argv: {deeds} and {weir} stand for programs. may: which of DIFFERENCES it needs."""

    def __init__(self, name, argv, *may):
        self.name = name
        self.argv = argv if isinstance(argv, list) else ["/bin/sh", "-c", argv]
        self.may = may


def coreutil(line, *may):
    argv = line.split()
    return Program(argv[0], [shutil.which(argv[0])] + argv[1:], *may)


def deed(name, *may):
    return Program("deeds " + name, [os.path.join(live.LOADS, "deeds"), name], *may)


PROGRAMS = [
    coreutil("true"),
    coreutil("echo one two"),
    coreutil("cat text"),
    coreutil("ls -l . folder none"),
    coreutil("cp -p text copy"),
    coreutil("mv text moved"),
    coreutil("rm -r folder none"),
    coreutil("mkdir -p a/b/c"),
    coreutil("ln -s text symbolic"),
    coreutil("touch new"),
    coreutil("chmod -R o-r folder"),
    coreutil("head -n 1 text"),
    coreutil("sort -r text"),
    coreutil("wc text folder/text"),
    coreutil("dd if=/dev/zero of=zeros bs=512 count=7 status=none"),
    coreutil("stat text"),
    coreutil("sha256sum text"),
    coreutil("tee copy"),
    coreutil("env sleep 0.01"),
    coreutil("find text folder -name text -print"),
    coreutil("grep -r one folder text"),
    coreutil("tar cf archive.tar text folder"),
    coreutil("sed -i s/one/two/ text", "names"),
    coreutil("gzip text"),
    Program("pipeline", "echo one two | tr o 0 | wc -w", "reaping"),
    Program("script", "for i in 1 2 3; do /bin/echo $i; done >out; (exit 3); . ./none", "reaping"),
    Program("git log", ["/usr/bin/git", "-C", "repo", "log", "--oneline"], "reaping"),
    Program("git status", ["/usr/bin/git", "-C", "repo", "status"], "reaping"),
    Program("python3", ["/usr/bin/python3", "-IS", "-c",
                        "import os; print(os.listdir('.')); open('none')"]),
    Program("gcc", ["/usr/bin/gcc", "-frandom-seed=1", "-c", "small.c"], "names", "addresses"),
    deed("crash"),
    deed("abort"),
    deed("kills-itself"),
    deed("killed"),
    deed("exec-thread"),
    deed("server", "addresses", "contention"),
    deed("signals"),
    deed("sockets"),
    deed("files"),
    deed("memory"),
    deed("descriptors"),
    deed("forks"),
    deed("errors"),
    deed("times"),
]


class Agrees(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="weir-strace-")
        cls.where = os.path.join(cls.folder, "work")
        cls.env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": cls.folder,
                   "PYTHONHASHSEED": "0", "GIT_CONFIG_NOSYSTEM": "1"}
        repo = os.path.join(cls.folder, "repo")
        for args in (["init", "-q", repo],
                     ["-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
                      "--allow-empty", "-m", "first"]):
            subprocess.run(["/usr/bin/git"] + args, env=cls.env, check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def make_where(self):
        """The same files for each run."""
        shutil.rmtree(self.where, ignore_errors=True)
        os.makedirs(os.path.join(self.where, "folder"))
        shutil.copytree(os.path.join(self.folder, "repo"), os.path.join(self.where, "repo"))
        for path, text in (("text", "one\ntwo\nthree\n"), ("folder/text", "one\n" * 100),
                           ("small.c", "int main(void) { return 0; }\n")):
            with open(os.path.join(self.where, path), "w", encoding="ascii") as file:
                file.write(text)
        return self.where

    def agree(self, program):
        theirs = strace(program.argv, self.make_where(), self.env)
        ours = weir(program.argv, self.make_where(), self.env)
        found = differences(program, theirs, ours)
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_each_difference_has_a_reason(self):
        self.assertLessEqual({may for program in PROGRAMS for may in program.may}, set(DIFFERENCES))


def add_cases():
    """A case a program, so that each stands in the report by its name."""
    for program in PROGRAMS:
        name = "test_" + re.sub(r"\W", "_", program.name)
        assert not hasattr(Agrees, name), name
        setattr(Agrees, name, lambda self, program=program: self.agree(program))


add_cases()

if __name__ == "__main__":
    cases.main()
