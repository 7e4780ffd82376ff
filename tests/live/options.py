#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What each option of `weir trace` changes, and what is said of those that make no sense; what it says
where rights, types or file systems are missing (M5)."""
import collections
import contextlib
import errno
import json
import os
import pty
import re
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import cases
import live
import proc

# Does something of every group, and ends.
SOME_OF_ALL = ["sh", "-c", "kill -URG $$; cat /dev/null; sleep 0.01; true | cat"]

GROUPS = {
    "process": {"fork", "exec", "exit"},
    "sched": {"sched_switch", "sched_wakeup", "sched_migrate"},
    "signal": {"signal"},
    "sys": {"sys_enter", "sys_exit"},
}
NOTICES = {"gap", "clock_step", "watermark"}


@contextlib.contextmanager
def busy():
    """A process that makes 5,000 calls a second, for as long as it is looked at."""
    with live.Load("calls", "-m", 60000, "-r", 5000, "getpid") as load:
        load.go()
        yield load


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="weir-live-") as path:
        yield path


class Case(unittest.TestCase):
    def good(self, *args):
        """(standard output, standard error) of a `weir trace` that has to succeed."""
        status, out, said = live.run("trace", *args)
        self.assertEqual(status, 0, said)
        return out, said

    def objects(self, *args, command=SOME_OF_ALL):
        """The lines of a JSON trace of a command."""
        out, _ = self.good("-f", "json", "-o", "-", *args, "--", *command)
        return [json.loads(line) for line in out.splitlines()]

    def wrong(self, word, *args):
        """Refused as wrong usage, with a message that has the word in it."""
        with self.subTest(args):
            status, out, said = live.run("trace", *args)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(word, said)
            self.assertRegex(said, r"\Aweir trace: [^\n]+\n(Try 'weir trace --help'\.\n)?\Z")


class Help(Case):
    TRIED = {
        "events", "pid", "output", "format", "pair", "duration", "max-events", "no-wait", "buffer",
        "string-limit", "ledger", "watermarks", "strict", "verbose", "help",
        "time", "color", "fds", "summary", "summary-only",
        "list", "comm", "container", "cgroup", "uid", "path", "failed", "errno", "min-duration",
        "all", "children", "no-follow", "filter", "map",
    }

    def test_has_every_option(self):
        """One that comes anew has to be tried, too.

        loss.py has --strict, command.py --no-wait, tracepoints.py --filter and --map.
        """
        out, said = self.good("--help")
        self.assertEqual(said, "")
        listed = re.findall(r"^  (?:-., |    )--([a-z-]+)", out, re.MULTILINE)
        self.assertEqual(set(listed), self.TRIED)
        self.assertEqual(len(listed), len(self.TRIED))
        self.assertEqual(self.good("-h"), (out, said))
        for command in ("trace", "verify", "doctor"):
            _, out, _ = live.run(command, "--help")
            self.assertEqual([line for line in out.splitlines() if len(line) > 80], [])

    def test_wrong_usage(self):
        self.wrong("there is no option --bogus", "--bogus")
        for word, meant in (("tarce", "; did you mean 'trace'?"), ("frobnicate", "")):
            self.assertEqual(live.run(word), (2, "", f"weir: there is no command '{word}'{meant}\n"
                                              "Try 'weir --help'.\n"))
        # What a terminal would obey is shown.
        self.assertEqual(live.run("größe\x1b[31m\x7f\u009b")[2].splitlines()[0],
                         "weir: there is no command 'größe\\x1b[31m\\x7f\\xc2\\x9b'")
        self.wrong(r"no event is called '\x1b[31m'", "-e", "\x1b[31m")
        self.wrong("there is no option -q", "-q")
        self.wrong("there is no option --evnets; did you mean --events?", "--evnets=sys")
        self.wrong("there is no option -s: see --string-limit", "-s", "99")
        self.wrong("(children are always followed)", "-f", "ls")
        self.wrong("did you mean %file?", "-e", "file")
        for option in ("-e", "-p", "-o", "-f", "-d", "-n", "--buffer", "--string-limit", "--ledger"):
            self.wrong(f"{option} needs a value", option)
            self.wrong("not ''", option, "")
        for bad in ("0", "-1", "5x", "x", "1.5.5", "18446744073709551616", " 1"):
            self.wrong("--duration takes a time", "-d", bad)
            self.wrong("--max-events takes a whole number", "-n", bad)
            self.wrong("--string-limit takes a whole number", "--string-limit", bad)
            self.wrong("--buffer takes a size", "--buffer", bad)
        self.wrong("--max-events takes a whole number", "-n", "1.5")
        self.wrong("--buffer takes a size", "--buffer", "4096.5")
        self.wrong("--duration takes a time", "-d", "18446744073709551615h")
        self.wrong("--min-duration takes a time", "--min-duration", "x")
        for bad in ("ENONE", "0", "4095", "2x", "-2"):
            self.wrong(f"--errno takes a name such as ENOENT, or its number, not '{bad}'",
                       "--errno", bad)
        for filtered in (("--path", "/x"), ("--failed",), ("--errno", "2"), ("--min-duration", "1s")):
            self.wrong(f"{filtered[0]} selects system calls: add sys to -e", "-e", "process,signal",
                       *filtered)
        self.wrong("there is no user 'nobody at all'", "--uid", "nobody at all")
        for path in ("system.slice", "../..", "/a/../b", "/."):
            self.wrong("--cgroup takes a path as /proc/PID/cgroup has it, such as /system.slice, "
                       f"not '{path}'", "--cgroup", path)
        self.wrong("--string-limit is at most 4096", "--string-limit", "4097")
        self.wrong("there is no format 'xml': text, json or none", "-f", "xml")
        self.wrong("there is no --time 'utc': wall, mono, delta or none", "--time", "utc")
        self.wrong("there is no --color 'red': auto, always or never", "--color", "red")


class Events(Case):
    def kinds(self, *args):
        return {line["event"] for line in self.objects(*args)} - NOTICES

    def test_groups(self):
        """Each of them alone, and mixed; nothing else comes."""
        for group, members in GROUPS.items():
            with self.subTest(group):
                kinds = self.kinds("-e", group)
                self.assertLessEqual(kinds, members)
                self.assertGreaterEqual(kinds, members - {"sched_migrate"})
        self.assertEqual(self.kinds("-e", "process,signal"), GROUPS["process"] | GROUPS["signal"])
        self.assertEqual(self.kinds("-e", "process", "-e", "signal"),
                         GROUPS["process"] | GROUPS["signal"])

    def test_default(self):
        self.assertEqual(self.kinds(), GROUPS["process"] | GROUPS["signal"] | GROUPS["sys"])
        with live.Trace() as trace:
            subprocess.run(SOME_OF_ALL, check=True)
            self.assertEqual(trace.stop(), 0)
            kinds = {line["event"] for line in trace.lines()} - NOTICES
        self.assertEqual(kinds, GROUPS["process"])

    def test_default_with_a_process(self):
        with live.Child(["sh", "-c", "read go; kill -URG $$; (true)"],
                        stdin=subprocess.PIPE) as shell, live.Trace("-p", shell.pid) as trace:
            shell.process.communicate(b"\n", timeout=live.PATIENCE_S)
            self.assertEqual(trace.end(), 0)
            kinds = {line["event"] for line in trace.lines()} - NOTICES
        self.assertEqual(kinds, {"fork", "exit"} | GROUPS["signal"] | GROUPS["sys"])

    def test_names(self):
        """A colon claims the rest of its word; -e again mixes."""
        self.assertEqual(self.kinds("-e", "process:fork,exit"), {"fork", "exit"})
        # sched_switch has a second name.
        self.assertEqual(self.kinds("-e", "sched:switch"), {"sched_switch"})
        lines = self.objects("-e", "sys:openat,close", "-e", "process:exit")
        self.assertEqual({line.get("syscall") for line in lines}, {"openat", "close", None})
        self.assertEqual({line["event"] for line in lines}, {"sys_enter", "sys_exit", "exit"})

    def test_that_do_not_exist(self):
        for word, hint in (("proces", "process"), ("sys:opennat", "sys:openat"),
                           ("sched:sched_swtch", "sched:sched_switch"), ("life:fork", "process:fork")):
            self.wrong(f"no event is called '{word}'; did you mean '{hint}'?", "-e", word)
        for word in ("nothing", "sys:", "process:", ":", "signal:SIGUSR1", "sys:" + "x" * 4000):
            self.wrong("no event is called '", "-e", word)
        # A wrong one behind a right one.
        self.wrong("no event is called 'sys:nope'", "-e", "sys:getpid,nope")
        self.wrong("no event is called ''", "-e", "process,")
        self.wrong("no event is called 'nope'", "-e", "process", "-e", "nope")


class Filters(Case):
    """What they turn away is counted as filtered; fork, exec and exit are not calls, and stay."""
    COMMAND = ["sh", "-c", "cat /nowhere; cat /dev/null; sleep 0.1"]
    TRUE = ["true"]

    def calls(self, *args):
        """The whole calls that come through, and the account of all."""
        with live.Trace("--pair", "-e", "sys", *args, "--", *self.COMMAND,
                        stdout=subprocess.DEVNULL) as trace:
            trace.end()
            ledger = trace.ledger()
            live.assert_account(self, ledger)
            trace.verify()
            lines = trace.events("syscall")
        self.assertGreater(ledger["filtered"], 0)
        self.assertTrue(lines)
        return lines

    def test_by_name_of_the_thread(self):
        """A glob; again for more."""
        self.assertEqual({c["comm"] for c in self.calls("--comm", "c?t")}, {"cat"})
        self.assertEqual({c["comm"] for c in self.calls("--comm", "cat", "--comm", "sl*")},
                         {"cat", "sleep"})

    def test_by_path(self):
        calls = self.calls("-P", "/nowhere", "-P", "/dev/null")
        named = [c["args"]["filename"] for c in calls if c["args"].get("filename")]
        self.assertEqual(set(named), {"/nowhere", "/dev/null"})
        # What is done with what was opened is there, too.
        self.assertIn("read", {c["syscall"] for c in calls})

    def test_by_path_as_it_is_meant(self):
        """Relative to where its process is, or to a descriptor; and what descriptors stand for."""
        script = ("import os; os.chdir('/etc'); d = os.open('/', 0); os.stat('./hostname');"
                  "f = os.open('etc/../etc/hostname', 0, dir_fd=d); os.read(f, 1);"
                  "os.stat('passwd'); os.close(f)")
        with folder() as where:
            link = os.path.join(where, "link")
            os.symlink("/etc/hostname", link)
            for path in ("/etc/hostname", "/etc//./hostname", link):
                lines = self.objects("--pair", "-e", "sys", "-P", path,
                                     command=["/usr/bin/python3", "-ISc", script])
                calls = [line["syscall"] for line in lines]
                self.assertEqual(calls[:2], ["newfstatat", "openat"], calls)
                self.assertEqual(calls[-2:], ["read", "close"])
                self.assertFalse([line for line in lines if "fds" in line or "passwd" in str(line)])
        self.wrong("-P, --failed, --errno and --min-duration ask for whole calls: add --pair",
                   "-f", "json", "-P", "/etc/hostname")

    def test_by_result(self):
        self.assertTrue(all(c["result"] < 0 for c in self.calls("--failed")))
        for name in ("ENOENT", "enoent", str(errno.ENOENT)):
            self.assertEqual({c["result"] for c in self.calls("--errno", name)}, {-errno.ENOENT})

    def test_by_duration(self):
        calls = self.calls("--min-duration", "90ms")
        self.assertTrue(all(c["dur_ns"] >= 90000000 for c in calls))
        self.assertIn("clock_nanosleep", {c["syscall"] for c in calls})

    def test_several_have_to_hold(self):
        calls = self.calls("--comm", "cat", "--failed", "-P", "/nowhere")
        self.assertEqual([(c["comm"], c["args"]["filename"], c["result"]) for c in calls],
                         [("cat", "/nowhere", -errno.ENOENT)])

    def test_by_user(self):
        """By number, or by name."""
        script = "cat /dev/null; setpriv --reuid=65534 --clear-groups cat /nowhere"
        for user in ("65534", "nobody"):
            lines = self.objects("-e", "sys:openat", "--uid", user,
                                 command=["sh", "-c", script + "; true"])
            paths = {line["args"].get("filename") for line in lines}
            self.assertIn("/nowhere", paths)
            self.assertNotIn("/dev/null", paths)

    def test_by_place(self):
        """Everything is in the root of the cgroups; nothing is in a container that is not there."""
        self.assertTrue(self.objects("--cgroup", "/"))
        self.assertEqual(self.objects("--cgroup", "/no/such/group"), [])
        self.assertEqual(self.objects("--container", "nosuchcontainer"), [])

    def test_by_place_that_is_not_there(self):
        """It may come yet; but whoever has mistyped it is told."""
        for option, name, what in (("--cgroup", "/no/such/group", "cgroup"),
                                   ("--container", "nosuchcontainer", "container")):
            _, said = self.good("-d", "20ms", option, name)
            self.assertIn(f"weir trace: there is no {what} {name} yet: waiting for it\n", said)
        _, said = self.good("-d", "20ms", "--cgroup", "/")
        self.assertNotIn("waiting", said)

    def test_classes_and_taking_away(self):
        calls = {line["syscall"] for line in self.objects("-e", "%file", command=self.TRUE)}
        self.assertIn("openat", calls)
        self.assertNotIn("mmap", calls)
        calls = {line["syscall"] for line in self.objects("-e", "sys:!openat", "-e", "!%memory",
                                                          command=self.TRUE)}
        self.assertIn("execve", calls)
        self.assertFalse(calls & {"openat", "mmap", "munmap", "mprotect", "brk"})
        self.wrong("'", "-e", "%nothing")

    def test_list(self):
        """What is there can be asked for."""
        out, said = self.good("--list")
        self.assertEqual(said, "")
        names = [line.split()[0] for line in out.splitlines()]
        self.assertLessEqual({"process:fork", "sched:switch", "sys:openat"}, set(names))
        self.assertEqual(len(names), len(set(names)))
        for group in GROUPS:
            members = [name.split(":")[1] for name in names if name.startswith(group + ":")]
            self.good("-d", "1ms", "-f", "none", "-e", f"{group}:{','.join(members)}")


class Pids(Case):
    def test_that_are_none(self):
        for word in ("0", "-1", "+1", "x", "1,x", "1,", ",1", "1 2", "4294967297",
                     "18446744073709551617"):
            self.wrong("-p takes process ids, not '", "-p", word)

    def test_again_and_again(self):
        """Each -p adds, a list or one."""
        with live.Load("calls", "-n", 10, "getpid") as a, \
                live.Load("calls", "-n", 10, "getpid") as b, \
                live.Load("calls", "-n", 10, "getpid") as c, \
                live.Load("calls", "-n", 10, "getpid") as other, \
                live.Trace("-e", "sys:getpid", "-p", f"{a.pid},{b.pid}", "-p", c.pid) as trace:
            for load in (other, a, b, c):
                load.run()
            self.assertEqual(trace.end(), 0)
            count = collections.Counter(line["pid"] for line in trace.events())
        self.assertEqual(count, {a.pid: 20, b.pid: 20, c.pid: 20})

    def parent_of_two(self, *args):
        """Who made calls under -p of a shell that had a child before, and has another afterwards."""
        # What runs in the background has no standard input of its own accord.
        script = "exec 3<&0; (read go <&3; exec cat /dev/null) & read go; (exec cat /dev/null); wait"
        with live.Child(["sh", "-c", script], stdin=subprocess.PIPE) as shell:
            live.wait_until("a child", lambda: proc.children(shell.pid))
            before, = proc.children(shell.pid)
            with live.Trace("-p", shell.pid, "-e", "sys", *args) as trace:
                shell.process.communicate(b"\n\n", timeout=live.PATIENCE_S)
                self.assertEqual(trace.end(), 0)
                callers = {line["pid"] for line in trace.events()}
        return shell.pid, before, callers

    def test_children(self):
        """Those from before only with --children, those from now on not with --no-follow."""
        shell, before, callers = self.parent_of_two()
        self.assertIn(shell, callers)
        self.assertNotIn(before, callers)
        self.assertEqual(len(callers), 2)
        shell, before, callers = self.parent_of_two("--children")
        self.assertLessEqual({shell, before}, callers)
        self.assertEqual(len(callers), 3)
        shell, before, callers = self.parent_of_two("--no-follow")
        self.assertEqual(callers, {shell})
        self.wrong("exclude each other", "-p", "1", "--children", "--no-follow")

    def test_filters_without_a_sink(self):
        """What a filter turns away is filtered, whatever would be printed."""
        for args in (("--comm", "nobody"), ("--errno", "ELOOP"), ("-P", "/no/such/path")):
            with folder() as where:
                path = os.path.join(where, "ledger")
                self.good("-f", "none", "--ledger", path, "-e", "sys", *args, "true")
                with open(path, encoding="ascii") as file:
                    self.assertEqual(json.load(file)["delivered"], 0)


class Output(Case):
    def test_file(self):
        """Nobody else may read it, whatever the umask; what stood in it is gone."""
        with folder() as where:
            path, ledger = os.path.join(where, "trace"), os.path.join(where, "ledger")
            before = os.umask(0)
            try:
                out, _ = self.good("-o", path, "--ledger", ledger, "-f", "json", "true")
            finally:
                os.umask(before)
            self.assertEqual(out, "")
            for file in (path, ledger):
                self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
            with open(path, "a", encoding="ascii") as trace:
                trace.write("x" * 1000000)
            self.good("-o", path, "-f", "json", "true")
            with open(path, encoding="ascii") as trace:
                self.assertNotIn("xx", trace.read())

    def test_one_file(self):
        """Trace and account in one would spoil both: refused, and what stands in it stays."""
        with folder() as where:
            path, link = os.path.join(where, "trace"), os.path.join(where, "link")
            os.symlink(path, link)
            for ledger in (path, link):
                status, _, said = live.run("trace", "-o", path, "--ledger", ledger, "-d", "50ms")
                self.assertEqual((status, said), (
                    1, f"weir trace: {ledger}: the trace goes there already; --ledger needs a "
                       "file of its own\n"))
            with open(path, "a", encoding="ascii") as trace:
                trace.write("before\n")
                trace.flush()
                done = subprocess.run([live.WEIR, "trace", "-d", "50ms", "--ledger", path],
                                      stdout=trace, stderr=subprocess.DEVNULL, check=False)
            self.assertEqual(done.returncode, 1)
            with open(path, encoding="ascii") as trace:
                self.assertEqual(trace.read(), "before\n")
            self.good("-o", "/dev/null", "--ledger", "/dev/null", "true")

    def test_ledger_to_standard_output(self):
        out, _ = self.good("--ledger", "-", "-f", "none", "true")
        self.assertTrue(json.loads(out)["closes"])
        out, _ = self.good("--ledger", "-", "sh", "-c", "echo mine")
        self.assertTrue(json.loads(out.removeprefix("mine\n"))["closes"])
        status, out, said = live.run("trace", "--ledger", "-", "-o", "-", "true")
        self.assertEqual((status, out), (125, ""))
        self.assertEqual(said, "weir trace: -: the trace goes there already; --ledger needs a "
                               "file of its own\n")

    def test_account_on_a_terminal(self):
        """For whoever looks at it, also where the trace is JSON; in two lines."""
        keyboard, screen = pty.openpty()
        try:
            with folder() as where:
                subprocess.run([live.WEIR, "trace", "-f", "json", "-o", f"{where}/trace", "true"],
                               stderr=screen, check=True, timeout=live.PATIENCE_S)
            self.assertRegex(os.read(keyboard, 65536), rb"\Aproduced [^;]*\r\norder exact; [^\r]*\r\n\Z")
        finally:
            os.close(keyboard)
            os.close(screen)

    def test_default(self):
        """Standard output; standard error where COMMAND has the other."""
        out, said = self.good("-e", "process", "sh", "-c", "echo mine")
        self.assertEqual(out, "mine\n")
        self.assertIn(" exited 0", said)
        with busy() as load:
            out, said = self.good("-n", "5", "-p", load.pid)
        self.assertEqual(out.count("\n"), 5)
        self.assertEqual(said.count("\n"), 1)

    def test_formats(self):
        out, said = self.good("-o", "-", "-e", "sys:openat", "cat", "/dev/null")
        self.assertRegex(out, r'(?m)^\S+ [0-9]+ cat\[[0-9]+\] +openat\(.*"/dev/null".*\) = [0-9]+')
        self.assertRegex(said, r"\Aproduced ")
        out, said = self.good("-f", "none", "-o", "-", "cat", "/dev/null")
        self.assertEqual(out, "")
        self.assertRegex(said, r"\Aproduced [0-9]+ = delivered [1-9]")
        lines = self.objects("-e", "sys:openat", command=["cat", "/dev/null"])
        self.assertIn("/dev/null", [line["args"].get("filename") for line in lines])

    def text(self, *args):
        """Lines of a command's trace."""
        out, _ = self.good("-e", "process", "-o", "-", *args, "true")
        self.assertGreaterEqual(out.count("\n"), 2)
        return out.splitlines()

    def test_times(self):
        """The same events; only what stands before the CPU differs."""
        for how, form in (("wall", r"[0-2][0-9](:[0-5][0-9]){2}\.[0-9]{9} "),
                          ("mono", r" *[0-9]+\.[0-9]{9} "),
                          ("delta", r" *\+[0-9]+\.[0-9]{9} "), ("none", "")):
            with self.subTest(how):
                for line in self.text("--time", how):
                    self.assertRegex(line, rf"\A{form}[0-9]+ \S+\[[0-9]+\] ")
        self.assertRegex(self.text()[0], r"\A..:..:..\.[0-9]{9} ")

    def test_time_since_boot(self):
        start = time.monotonic()
        stamps = [float(line.split()[0]) for line in self.text("--time", "mono")]
        self.assertTrue(all(start < stamp < time.monotonic() for stamp in stamps), stamps)

    def test_time_since_the_line_before(self):
        """They add up; the first has none before it."""
        deltas = [float(line.split()[0]) for line in self.text("--time", "delta")]
        self.assertEqual(deltas[0], 0)
        self.assertTrue(all(delta >= 0 for delta in deltas), deltas)

    def on_terminal(self, *args, **environment):
        """What a terminal is sent."""
        keyboard, screen = pty.openpty()
        command = [live.WEIR, "trace", "-e", "process", "-o", "-", *args, "true"]
        env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        try:
            subprocess.run(command, env=dict(env, **environment), stdin=subprocess.DEVNULL,
                           stdout=screen, stderr=subprocess.DEVNULL, check=True,
                           timeout=live.PATIENCE_S)
            # The terminal holds this little until it is read.
            return os.read(keyboard, 65536)
        finally:
            os.close(keyboard)
            os.close(screen)

    def test_all(self):
        """M8: on a terminal, the shell above it is left out, or each line would make another one."""
        script = '"$@" & while kill -0 $! 2>/dev/null; do sleep 0.1; done'
        args = "-e", "sys:kill", "--color", "never", "--comm", "above"
        self.assertNotIn(b"kill(", self.above_terminal(script, *args))
        self.assertIn(b"kill(", self.above_terminal(script, *args, "--all"))

    def above_terminal(self, script, *args):
        """What a terminal is sent by a weir that the script starts, which is called `above`."""
        keyboard, screen = pty.openpty()
        script = f"printf above > /proc/$$/comm; {script}; echo end"
        command = ["sh", "-c", script, "sh", live.WEIR, "trace", "-d", "1", *args]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=screen,
                           stderr=subprocess.DEVNULL, check=True, timeout=live.PATIENCE_S)
            return os.read(keyboard, 65536)
        finally:
            os.close(keyboard)
            os.close(screen)

    def test_colors(self):
        """On a terminal, unless NO_COLOR is set to something; elsewhere only when told to."""
        for colored, args, environment in (
                (True, (), {}), (True, ("--color", "auto"), {"NO_COLOR": ""}),
                (False, (), {"NO_COLOR": "1"}), (False, (), {"TERM": "dumb"}),
                (False, ("--color", "never"), {}),
                (True, ("--color", "always"), {"NO_COLOR": "1"}), (False, ("-f", "json"), {})):
            with self.subTest(args=args, **environment):
                sent = self.on_terminal(*args, **{"TERM": "xterm", **environment})
                self.assertIn(b"true", sent)
                self.assertEqual(b"\x1b" in sent, colored, sent)
        self.assertNotIn("\x1b", "".join(self.text()))
        plain = re.compile("\x1b\\[[0-9;]*m")
        colored = self.text("--color", "always", "--time", "none")
        self.assertIn("\x1b", "".join(colored))
        self.assertRegex(plain.sub("", colored[0]), r"\A[0-9]+ \S+\[[0-9]+\] +exec /\S+")

    def test_pair(self):
        """One object a call, that has the arguments and the result."""
        lines = self.objects("--pair", "-e", "sys:openat", command=["cat", "/dev/null"])
        self.assertEqual({line["event"] for line in lines}, {"syscall"})
        call, = (line for line in lines if line["args"]["filename"] == "/dev/null")
        self.assertGreaterEqual(call["result"], 3)
        self.assertEqual(int(call["ts"]) - int(call["enter"]), call["dur_ns"])

    def test_ledger(self):
        """The account is what the trace says, and what is printed."""
        with busy() as load, live.Trace("-p", load.pid, "-e", "sys:getpid") as trace:
            live.wait_until("delivered", lambda: any(trace.lines()))
            self.assertEqual(trace.stop(), 0)
            ledger = trace.ledger()
            events = [line for line in trace.lines() if line["event"] not in NOTICES]
            printed = json.loads(trace.said().splitlines()[-1])
        self.assertEqual(ledger["delivered"], len(events))
        by_source = collections.Counter(line["source"] for line in events)
        for source in ledger["sources"]:
            self.assertEqual(source["delivered"], by_source[source["name"]])
        for own in (ledger, printed):
            own["self"].pop("cpu_ns")
        self.assertEqual(ledger, printed)

    def test_watermarks(self):
        with busy() as load:
            for args, there in (((), False), (("--watermarks",), True)):
                with live.Trace("-p", load.pid, *args) as trace:
                    live.wait_until("delivered", lambda: sum(1 for _ in trace.lines()) > 100)
                    self.assertEqual(trace.stop(), 0)
                    self.assertEqual(bool(trace.events("watermark")), there)
                    trace.verify()

    def test_verbose(self):
        """What is set up: the sizes of the rings, which the ledger has as well."""
        with busy() as load:
            _, said = self.good("-n", "1", "-f", "none", "-p", load.pid)
            self.assertEqual(said.count("\n"), 1)
            with live.Trace("-n", "1", "--buffer", "1M") as trace:
                self.assertEqual(trace.stop(), 0)
                first = trace.said().splitlines()[0]
                sources = trace.ledger()["sources"]
        events, life = map(int, re.findall(r"([0-9]+) (?:bytes )?for", first))
        for source in sources:
            size = life if source["name"].startswith("life") else events
            self.assertEqual(source["size_bytes"], size)


class Limits(Case):
    def test_duration(self):
        """In each unit. It ends by itself, and not before."""
        for time_s, word in ((1, "1"), (1, "1s"), (0.3, "300ms"), (0.3, "300000us"),
                             (0.3, "300000000ns")):
            with self.subTest(word):
                start = time.monotonic()
                with live.Trace("-f", "none", "-d", word) as trace:
                    self.assertEqual(trace.end(), 0)
                    self.assertGreater(time.monotonic() - start, time_s)
        for word in ("1m", "1h"):
            with self.subTest(word), live.Trace("-f", "none", "-d", word) as trace:
                with self.assertRaises(subprocess.TimeoutExpired):
                    trace.process.wait(timeout=1.5)
                self.assertEqual(trace.stop(), 0)

    def test_max_events(self):
        """As many lines as were asked for; the others of the last batch are filtered."""
        for count in (1, 1000):
            with self.subTest(count), busy() as load, \
                    live.Trace("-e", "sys:getpid", "-p", load.pid, "-n", count) as trace:
                self.assertEqual(trace.end(), 0)
                ledger = trace.ledger()
                live.assert_account(self, ledger)
                lines = sum(1 for line in trace.lines() if line["event"] not in NOTICES)
                trace.verify()
            self.assertEqual(lines, count)
            self.assertEqual(ledger["delivered"], count)
            self.assertEqual(ledger["produced"], count + ledger["filtered"] + live.lost(ledger))

    def test_max_events_of_calls(self):
        """Put together, a call is one event, though it is two records."""
        with busy() as load, \
                live.Trace("--pair", "-e", "sys:getpid", "-p", load.pid, "-n", 100) as trace:
            self.assertEqual(trace.end(), 0)
            ledger = trace.ledger()
            calls = trace.events("syscall")
        live.assert_account(self, ledger)
        self.assertEqual(len(calls), 100)
        whole = sum(call["enter"] is not None for call in calls)
        self.assertEqual(ledger["delivered"], 100 + whole)

    def test_buffer(self):
        """The sizes are what is asked for, or less; what is said to work, does."""
        status, _, said = live.run("trace", "--buffer", "4k", "-d", "20ms")
        self.assertEqual(status, 2)
        least = int(re.search(r"the least that works is ([0-9]+)k$", said.strip()).group(1))
        self.wrong("too small", "--buffer", f"{least - 1}k")
        self.wrong("too large", "--buffer", "100000G")
        for buffer in (least << 10, 3 << 20):
            with busy() as load, live.Trace("-p", load.pid, "--buffer", buffer) as trace:
                live.wait_until("delivered", lambda: any(trace.lines()))
                self.assertEqual(trace.stop(), 0)
                sizes = [source["size_bytes"] for source in trace.ledger()["sources"]]
                live.assert_account(self, trace.ledger())
            self.assertLessEqual(sum(sizes), buffer)
            self.assertGreater(sum(sizes), buffer // 4)

    def test_buffer_units(self):
        for word in ("1048576", "1024k", "1024K", "1M"):
            with self.subTest(word), live.Trace("-f", "none", "--buffer", word) as trace:
                self.assertEqual(trace.stop(signal.SIGTERM), 0)
                sizes = {s["size_bytes"] for s in trace.ledger()["sources"]}
            share = (1 << 20) // len(live.online_cpus())
            self.assertEqual(max(sizes), 1 << (share * 7 // 8).bit_length() - 1)

    def test_string_limit(self):
        """Longer strings are cut, and marked; others are not."""
        path = "/nowhere/" + "x" * 300
        args = "-e", "sys:openat"
        for limit, seen in ((None, path[:256]), (8, path[:8]), (len(path), path), (4096, path)):
            with self.subTest(limit):
                more = ("--string-limit", limit) if limit else ()
                out, said = self.try_to_read(path, *args, *more, "-f", "json", "-o", "-")
                names = [line for line in map(json.loads, out.splitlines())
                         if line["args"].get("filename") == seen]
                self.assertTrue(names, said)
                for line in names:
                    self.assertEqual(line.get("cut"), ["filename"] if seen != path else None)
        out, _ = self.try_to_read(path, *args, "--string-limit", 8, "-o", "-")
        self.assertIn(f'filename: "{path[:8]}"..., ', out)

    def try_to_read(self, path, *args):
        status, out, said = live.run("trace", *args, "cat", path)
        self.assertEqual(status, 1)
        return out, said


class Rights(unittest.TestCase):
    """M5: one sentence that names what is missing and the way out."""
    NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def run_as(self, *prefix, args=()):
        """`weir trace`, from where everybody can reach it."""
        with live.for_everybody() as weir:
            done = subprocess.run([*prefix, weir, "trace", "-f", "none", "-d", "50ms", *args],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=live.PATIENCE_S, check=False)
        self.assertEqual(done.stdout, b"")
        return done.returncode, done.stderr.decode()

    def capable(self, capabilities):
        return self.run_as(*self.NOBODY, f"--inh-caps=-all,{capabilities}",
                           f"--ambient-caps=-all,{capabilities}")

    def test_none(self):
        status, said = self.run_as(*self.NOBODY)
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\Aweir trace: [^\n]*no permission; run as root, or with the "
                               r"capabilities CAP_BPF and CAP_PERFMON\n\Z")

    def test_enough(self):
        """The two that are named."""
        status, said = self.capable("+bpf,+perfmon")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"\Aproduced [^\n]*\n\Z")

    def test_half(self):
        for capability in ("+bpf", "+perfmon"):
            status, said = self.capable(capability)
            self.assertEqual(status, 1)
            self.assertRegex(said, r"\A[^\n]*CAP_BPF and CAP_PERFMON\n\Z")

    def hidden(self, *paths):
        """With empty folders there, for this run only."""
        script = "".join(f"mount -t tmpfs none {path} && " for path in paths) + 'exec "$@"'
        return self.run_as("unshare", "--mount", "sh", "-c", script, "sh")

    def test_few_descriptors(self):
        """It takes more by itself where it may; else it says how many."""
        status, said = self.run_as("prlimit", "--nofile=20:4096")
        self.assertEqual(status, 0, said)
        status, said = self.run_as("prlimit", "--nofile=20:20", *self.NOBODY,
                                   "--inh-caps=-all,+bpf,+perfmon",
                                   "--ambient-caps=-all,+bpf,+perfmon")
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\Aweir trace: [^\n]*Too many open files[^\n]*ulimit -n [0-9]+[^\n]*\n\Z")

    def test_no_types(self):
        status, said = self.hidden("/sys/kernel/btf")
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\A[^\n]*/sys/kernel/btf/vmlinux[^\n]*CONFIG_DEBUG_INFO_BTF=y\n\Z")

    def test_pid_namespace(self):
        """Of its own: there it traces all, but can't tell who is meant by a number."""
        apart = "unshare", "--mount", "--pid", "--fork", "--mount-proc"
        status, said = self.run_as(*apart)
        self.assertEqual(status, 0, said)
        for status, args in ((1, ("-p", "1")), (125, ("true",))):
            self.assertEqual(self.run_as(*apart, args=args), (
                status, "weir trace: cannot select processes by number: weir runs in a pid "
                        "namespace of its own, where they have other numbers; run it in the "
                        "host's (docker run --pid=host)\n"))

    def test_time_namespace(self):
        """Stamps are the host's: a clock that is not could not say what is complete."""
        for offset in ("100000", "-1"):
            status, said = self.run_as("unshare", "--time", "--monotonic", offset, "--fork")
            self.assertEqual((status, said), (
                1, "weir trace: cannot tell what is complete: weir runs in a time namespace of "
                   "its own, whose clock is not the kernel's; run it in the host's (nsenter "
                   "--time --target 1)\n"))
        status, said = self.run_as("unshare", "--time", "--fork")
        self.assertEqual(status, 0, said)

    def test_no_tracefs(self):
        """It needs none."""
        paths = [p for p in ("/sys/kernel/tracing", "/sys/kernel/debug") if os.path.isdir(p)]
        status, said = self.hidden(*paths)
        self.assertEqual(status, 0, said)


if __name__ == "__main__":
    cases.main()
