#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`weir trace COMMAND`: the whole of what a program and its children do, and nothing of weir's in it."""
import json
import os
import pty
import re
import signal
import subprocess
import tempfile
import time
import unittest

import cases
import live
import proc


def lines_of(*args):
    """(status, lines of the trace) of `weir trace ARGS`, in JSON."""
    with tempfile.TemporaryDirectory(prefix="weir-live-") as where:
        path = os.path.join(where, "trace")
        status, _, _ = live.run("trace", "-f", "json", "-o", path, *args)
        with open(path, "rb") as trace:
            return status, [json.loads(line) for line in trace]


class Running(live.Child):
    """`weir trace COMMAND`, its output in a pipe; what weir says is of no interest."""

    def __init__(self, *args):
        super().__init__([live.WEIR, "trace", "-f", "none", *live.words(args)],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)

    def said(self, line):
        """Waits until COMMAND has said that."""
        assert self.process.stdout.readline() == line.encode() + b"\n"

    def outlived(self, stop=lambda: None):
        """weir's status, which ends before COMMAND does; an exception when COMMAND is gone."""
        program, = proc.children(self.pid)
        stop()
        status = self.end()
        os.kill(program, signal.SIGKILL)
        return status


class Whole(unittest.TestCase):
    def test_first_and_last(self):
        """From its exec to its exit, and all of its children between."""
        status, lines = lines_of("sh", "-c", "cat /dev/null; exec true")
        self.assertEqual(status, 0)
        first, last = lines[0], lines[-1]
        self.assertEqual((first["event"], first["syscall"]), ("sys_enter", "execve"))
        self.assertEqual(first["args"]["argv"], ["sh", "-c", "cat /dev/null; exec true"])
        self.assertEqual((last["event"], last["pid"]), ("exit", first["pid"]))
        execed = [line["args"]["argv"][0] for line in lines if line["event"] == "exec"]
        self.assertEqual(execed, ["sh", "cat", "true"])
        family = {first["pid"]} | {line["args"]["child_pid"] for line in lines
                                   if line["event"] == "fork"}
        self.assertEqual({line["pid"] for line in lines}, family)

    def test_nothing_of_the_fork(self):
        """Its second half runs in weir's image: none of that is there, in text either."""
        status, out, _ = live.run("trace", "-o", "-", "true")
        self.assertEqual(status, 0)
        lines = out.splitlines()
        self.assertRegex(lines[0], r" exec \S*/true \[\"true\"\] ")
        self.assertRegex(lines[1], r" execve\(.*/true\".* = 0 <")
        self.assertEqual([line for line in lines if " weir[" in line], [])

    def test_each_exec(self):
        """COMMAND's own, too, has its line beside the call: in text, in JSON, and of a capture."""
        command = ("sh", "-c", "cat /dev/null; exec true")
        status, text, _ = live.run("trace", "--time", "none", "-o", "-", *command)
        self.assertEqual(status, 0)
        _, lines = lines_of(*command)
        execs = [line for line in lines if line["event"] == "exec"]
        self.assertEqual(len(execs), 3)
        self.assertEqual(len(re.findall(r" exec /", text)), len(execs))
        with tempfile.TemporaryDirectory(prefix="weir-live-") as where:
            capture = os.path.join(where, "capture")
            status, _, said = live.run("record", "-o", capture, *command)
            self.assertEqual(status, 0, said)
            status, text, said = live.run("replay", "--time", "none", capture)
            self.assertEqual(status, 0, said)
            self.assertEqual(len(re.findall(r" exec /", text)), len(execs))

    def test_outputs_are_apart(self):
        """The trace goes to standard error, and so the program's output is as without weir."""
        status, out, said = live.run("trace", "sh", "-c", "echo one; echo two >&2; cat")
        self.assertEqual((status, out), (0, "one\n"))
        self.assertIn("two\n", said)
        self.assertIn(" execve(", said)
        self.assertIn("\nproduced ", said)

    def test_its_input_and_its_options(self):
        done = subprocess.run([live.WEIR, "trace", "-f", "none", "tr", "-d", "a"], input=b"banana",
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                              timeout=live.PATIENCE_S)
        self.assertEqual((done.returncode, done.stdout), (0, b"bnn"))
        # Behind --, a program may be called as it likes.
        with tempfile.TemporaryDirectory(prefix="weir-live-") as where:
            os.symlink("/bin/echo", os.path.join(where, "-n"))
            path = f"{where}:{os.environ['PATH']}"
            done = subprocess.run([live.WEIR, "trace", "-f", "none", "--", "-n", "x"],
                                  env=dict(os.environ, PATH=path), stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False, timeout=live.PATIENCE_S)
        self.assertEqual(done.stdout, b"x\n")

    def test_call_that_does_not_end(self):
        """--min-duration is how one looks for what is waited for: that may never come."""
        _, lines = lines_of("--pair", "-e", "sys", "--min-duration", "200ms", "-d", "3", "sleep", "9")
        waits = [line for line in lines if line["event"] == "syscall"]
        self.assertEqual([line["syscall"] for line in waits], ["clock_nanosleep"])
        self.assertTrue(waits[0]["unfinished"])

    def test_account(self):
        with live.Trace("sh", "-c", "for i in 1 2 3; do cat /dev/null; done") as trace:
            self.assertEqual(trace.end(), 0)
            live.assert_account(self, trace.ledger())
            self.assertEqual(live.lost(trace.ledger()), 0)
            trace.verify()


class Status(unittest.TestCase):
    def status(self, *args):
        status, _, said = live.run("trace", "-f", "none", *args)
        return status, said

    def test_is_passed_on(self):
        for code in (0, 1, 7, 255):
            self.assertEqual(self.status("sh", "-c", f"exit {code}")[0], code)
        for signum in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            self.assertEqual(self.status("sh", "-c", f"kill -{int(signum)} $$")[0], 128 + signum)

    def test_of_what_cannot_be_run(self):
        for command in ("/nowhere/at/all", "no-such-program-anywhere"):
            status, said = self.status(command)
            self.assertEqual(status, 127)
            self.assertIn(f"weir trace: {command}: No such file or directory\n", said)
        status, said = self.status("/etc/passwd")
        self.assertEqual(status, 126)
        self.assertIn("weir trace: /etc/passwd: Permission denied\n", said)

    def test_of_weir(self):
        """125 where weir failed; 2 and 3 as without a command."""
        self.assertEqual(self.status("-o", "/nowhere/at/all", "true")[0], 125)
        self.assertEqual(self.status("-e", "nope", "true")[0], 2)
        status, said = self.status("-e", "process,sys:openat", "true")
        self.assertEqual(status, 2)
        self.assertIn("one -e for each", said)
        self.assertEqual(self.status("--strict", "sh", "-c", "exit 7")[0], 7)

    def test_of_one_that_does_not_start(self):
        """Where weir cannot begin, the program does not run either."""
        with tempfile.TemporaryDirectory(prefix="weir-live-") as where:
            there = os.path.join(where, "there")
            self.assertEqual(self.status("-o", "/nowhere/at/all", "touch", there)[0], 125)
            self.assertFalse(os.path.exists(there))


class End(unittest.TestCase):
    # Says so, and has a child that outlives it until its input is closed.
    LEAVES_A_CHILD = "exec 3<&0; (cat <&3) & echo left"

    def leave_a_child(self, *args):
        read, write = os.pipe()
        child = live.Child([live.WEIR, "trace", "-f", "none", *args, "sh", "-c",
                            self.LEAVES_A_CHILD], stdin=read, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL)
        os.close(read)
        return child, write

    def test_when_all_have_ended(self):
        weir, pipe = self.leave_a_child()
        with weir:
            self.assertEqual(weir.process.stdout.readline(), b"left\n")
            with self.assertRaises(subprocess.TimeoutExpired):
                weir.process.wait(timeout=1)
            os.close(pipe)
            self.assertEqual(weir.end(), 0)

    def test_no_wait(self):
        weir, pipe = self.leave_a_child("--no-wait")
        with weir:
            self.assertEqual(weir.end(), 0)
            os.close(pipe)

    def test_ancestor(self):
        """-p of the shell that waits for weir: it is over when COMMAND is."""
        for command in ("trace", "record"):
            with self.subTest(command), tempfile.TemporaryDirectory(prefix="weir-live-") as where:
                path = os.path.join(where, "out")
                script = f'"$0" {command} -p $$ -e process -o "$1" true; echo "status $?"'
                done = subprocess.run(["sh", "-c", script, live.WEIR, path], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, check=True, timeout=live.PATIENCE_S)
                self.assertEqual(done.stdout, b"status 0\n")

    def quiet(self):
        """Words that begin each of the commands, which then writes nothing to where the test looks."""
        where = tempfile.TemporaryDirectory(prefix="weir-live-")
        self.addCleanup(where.cleanup)
        return ["trace", "-f", "none"], ["record", "-o", os.path.join(where.name, "capture")]

    def test_waiting_is_said(self):
        """Once, where there is somebody to wonder."""
        for words in self.quiet():
            ours, terminal = pty.openpty()
            with self.subTest(words), live.Child(
                    [live.WEIR] + words + ["sh", "-c", "sleep 60 <&- >&- 2>&- & echo $!"],
                    stdout=subprocess.PIPE, stderr=terminal) as weir:
                os.close(terminal)
                descendant = int(weir.process.stdout.readline())
                said = os.read(ours, 4096)
                os.kill(descendant, signal.SIGKILL)
                self.assertEqual(weir.end(), 0)
                said += os.read(ours, 4096)
                os.close(ours)
                what = f"weir {words[0]}: sh has ended; waiting for 1 more ".encode()
                self.assertEqual(said.count(what), 1)

    def test_still_running_is_said(self):
        for words in self.quiet():
            with self.subTest(words):
                status, _, said = live.run(*words, "-d", "200ms", "sh", "-c",
                                           "exec sleep 60 >/dev/null 2>&1")
                self.assertEqual(status, 0)
                self.assertRegex(said, rf"\Aweir {words[0]}: sh \(pid [0-9]+\) still runs\nproduced ")
                os.kill(int(re.search(r"pid ([0-9]+)", said)[1]), signal.SIGKILL)

    def test_duration(self):
        """It ends, and the program goes on."""
        with Running("-d", "3", "sh", "-c", "echo begun; exec sleep 60") as weir:
            weir.said("begun")
            self.assertEqual(weir.outlived(), 0)


class Interrupt(unittest.TestCase):
    """Ctrl-C goes to all that the terminal has; weir is to see the program's end."""

    def test_first_is_spared(self):
        """... and the program's status is what it made of it."""
        script = "trap 'echo caught; exit 9' INT; echo begun; while :; do sleep 0.1; done"
        with Running("sh", "-c", script) as weir:
            weir.said("begun")
            weir.signal(signal.SIGINT)
            time.sleep(0.5)
            self.assertIsNone(weir.process.poll())
            program, = proc.children(weir.pid)
            os.kill(program, signal.SIGINT)
            weir.said("caught")
            self.assertEqual(weir.end(), 9)

    def test_second_ends_it(self):
        """... though the program does not end."""
        with Running("sh", "-c", "trap '' INT; echo begun; exec sleep 60") as weir:
            weir.said("begun")
            weir.signal(signal.SIGINT)
            time.sleep(0.5)
            self.assertIsNone(weir.process.poll())
            self.assertEqual(weir.outlived(lambda: weir.signal(signal.SIGINT)), 128 + signal.SIGINT)

    def test_first_is_ours_once_the_program_has_ended(self):
        """A descendant keeps the trace going: there is nobody left to spare it for."""
        with Running("sh", "-c", "sleep 60 >/dev/null & echo $!") as weir:
            descendant = int(weir.process.stdout.readline())
            live.wait_until("the end of COMMAND", lambda: not proc.children(weir.pid))
            time.sleep(0.3)
            weir.signal(signal.SIGINT)
            self.assertEqual(weir.end(), 0)
        os.kill(descendant, signal.SIGKILL)

    def test_others_end_it_at_once(self):
        for signum in (signal.SIGTERM, signal.SIGHUP):
            with Running("sh", "-c", "echo begun; exec sleep 60") as weir:
                weir.said("begun")
                self.assertEqual(weir.outlived(lambda: weir.signal(signum)), 128 + signum)

    def before_it_begins(self, stop, status):
        """`stop` is called while weir still gets ready: the program, that waits, never runs.

        Now and then a busy machine lets the test look only when the program is there already.
        """
        with tempfile.TemporaryDirectory(prefix="weir-live-") as where:
            there = os.path.join(where, "there")
            for _ in range(20):
                with Running("touch", there) as weir:
                    live.wait_until("forked", lambda: proc.children(weir.pid)
                                    or weir.process.poll() is not None)
                    stop(weir)
                    ended = weir.end()
                if not os.path.exists(there):
                    break
                os.unlink(there)
        self.assertEqual(ended, status)

    def test_before_it_begins(self):
        """The program can be ended."""
        def stop(weir):
            for pid in proc.children(weir.pid):
                os.kill(pid, signal.SIGINT)
        self.before_it_begins(stop, 128 + signal.SIGINT)

    def test_never_begins(self):
        """weir can: what did not run has not succeeded."""
        self.before_it_begins(lambda weir: weir.signal(signal.SIGTERM), 125)

    def test_while_its_exec_hangs(self):
        """As on a file system that does not answer: here the program is stopped before its exec."""
        with tempfile.TemporaryDirectory(prefix="weir-live-") as where:
            said = os.path.join(where, "said")
            for _ in range(20):
                with open(said, "wb") as file, live.Child(
                        [live.WEIR, "trace", "-v", "-f", "none", "sleep", "60"],
                        stdin=subprocess.DEVNULL, stderr=file) as weir:
                    live.wait_until("forked", lambda: proc.children(weir.pid))
                    program, = proc.children(weir.pid)
                    os.kill(program, signal.SIGSTOP)
                    with open(f"/proc/{program}/comm", encoding="ascii") as comm:
                        early = comm.read() == "weir\n"
                    with open(said, "rb") as text:
                        live.wait_until("tracing", lambda: b"tracing; " in text.read())
                    weir.signal(signal.SIGTERM)
                    status = weir.end()
                    os.kill(program, signal.SIGKILL)
                if early:
                    break
        self.assertTrue(early)
        self.assertEqual(status, 128 + signal.SIGTERM)

    def test_dispositions(self):
        """What is ignored and blocked in the program is as without weir: for nohup, say."""
        command = ["grep", "-E", "^Sig(Ign|Blk):", "/proc/self/status"]
        for ignored in ((), (signal.SIGHUP,), (signal.SIGINT, signal.SIGPIPE, signal.SIGALRM)):
            with self.subTest(ignored):
                self.assertEqual(self.run_ignoring(ignored, command),
                                 self.run_ignoring(ignored, [live.WEIR, "trace", "-f", "none"]
                                                   + command))

    def run_ignoring(self, signals, command):
        names = " ".join(str(int(signum)) for signum in signals)
        script = f"trap '' {names}; exec \"$@\"" if signals else 'exec "$@"'
        return subprocess.run(["sh", "-c", script, "sh", *command], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout


if __name__ == "__main__":
    cases.main()
