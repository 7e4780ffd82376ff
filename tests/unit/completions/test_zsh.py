#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""completions/_weir: what zsh itself offers, in a terminal, when Tab is pressed.

    test_zsh.py SCRIPT WEIR
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cases

SCRIPT, WEIR = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE_S = 60

# Each match that is offered goes to a file; a line behind them says that there are no more.
SETUP = """
PROMPT= RPROMPT=
fpath=("$FOLDER" $fpath)
autoload -Uz compinit
compinit -u -D
compadd() {
	local -a matches
	[[ " $* " == *' -'[OAD]' '* ]] || builtin compadd -A matches "$@"
	(( $#matches )) && print -rl -- $matches >>$OFFERED
	builtin compadd "$@"
}
no_more() { print -r -- '(no more)' >>$OFFERED }
comppostfuncs=(no_more)
print ready >>$OFFERED
"""


class Shell:
    """zsh in a terminal of its own."""

    def __init__(self, where):
        self.offered = os.path.join(where, "offered")
        with open(os.path.join(where, ".zshrc"), "w", encoding="ascii") as rc:
            rc.write(SETUP)
        env = dict(os.environ, ZDOTDIR=where, OFFERED=self.offered, TERM="dumb",
                   FOLDER=os.path.dirname(SCRIPT),
                   PATH=f"{os.path.dirname(WEIR)}:{os.environ['PATH']}")
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(where)
            os.execvpe("zsh", ["zsh", "-d", "-i"], env)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def lines_up_to(self, last):
        """What it has told, once that line is there."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.01)[0]:
                os.read(self.terminal, 65536)  # nobody waits for a full terminal
            if os.path.exists(self.offered):
                with open(self.offered, encoding="utf-8") as file:
                    lines = file.read().splitlines()
                if last in lines:
                    return lines[:lines.index(last)]
        raise AssertionError(f"zsh has not said {last}")

    def complete(self, line):
        self.lines_up_to("ready")
        os.write(self.terminal, line.encode() + b"\t")
        return self.lines_up_to("(no more)")[1:]


def offered(line):
    """What there is for the end of `weir LINE`."""
    with tempfile.TemporaryDirectory(prefix="weir-zsh-") as where:
        with open(os.path.join(where, "a-file"), "w", encoding="ascii"):
            pass
        shell = Shell(where)
        try:
            return shell.complete("weir " + line)
        finally:
            shell.end()


class Offers(unittest.TestCase):
    def test_commands(self):
        self.assertLessEqual({"trace", "verify", "doctor"}, set(offered("")))

    def test_all_options_of_help(self):
        for command in ("trace", "verify", "doctor"):
            told = subprocess.run([WEIR, command, "--help"], check=True,
                                  stdout=subprocess.PIPE).stdout.decode()
            options = told.split("Options:\n")[1].split("\n\n")[0]
            names = set(re.findall(r"^  (?:-\w, |    )(--[\w-]+)", options, re.M))
            self.assertGreater(len(names), 1)
            self.assertEqual({word for word in offered(f"{command} --") if word.startswith("--")},
                             names)

    @unittest.skipUnless(os.access("/sys/kernel/tracing/events", os.R_OK), "tracefs is not ours")
    def test_tracepoints(self):
        self.assertIn("sched", offered("trace -e tp:sch"))
        self.assertIn("sched_switch", offered("trace -e process,tp:sched:sched_sw"))

    def test_groups_and_classes(self):
        self.assertLessEqual({"process", "sched", "signal", "sys", "%file"},
                             set(offered("trace -e ")))
        self.assertIn("signal", offered("trace --events process,sig"))

    def test_events_of_a_group(self):
        self.assertEqual(set(offered("trace -e process:")), {"fork", "exec", "exit"})
        self.assertLessEqual({"openat", "openat2", "%file"}, set(offered("trace -e sys:")))

    def test_words_of_options(self):
        self.assertEqual(set(offered("trace --format ")), {"text", "json", "none"})
        self.assertEqual(set(offered("trace --time ")), {"wall", "mono", "delta", "none"})

    def test_files(self):
        self.assertIn("a-file", offered("trace -o "))
        self.assertIn("a-file", offered("verify "))


if __name__ == "__main__":
    cases.main()
