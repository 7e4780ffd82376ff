#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""scripts/check against suites that fail in every way that it must not miss.

Each makes a small Meson project whose tests print what cmocka prints, and runs the real script on
it.
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import cases
import tree

CHECK = os.path.join(tree.TOP, "scripts", "check")


def plan(count):
    return f"echo '[==========] Running {count} test(s).'\n"


def case(name, verdict="      OK"):
    return f"echo '[ RUN      ] {name}'\necho '[ {verdict} ] {name}'\n"


def done(count):
    return f"echo '[==========] {count} test(s) run.'\n"


# cmocka names the failed ones once more, behind the end.
AGAIN = "echo '[  FAILED  ] 1 test(s), listed below:'\necho '[  FAILED  ] b'\n"
TWO_GOOD = plan(2) + case("a") + case("b") + done(2)


class Check(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.top = holder.name
        self.meson = "project('x')\n"
        self.write("expected", "# head\n")
        self.write("skips", "")

    def path(self, name):
        return os.path.join(self.top, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def add(self, name, script, suite="unit", **options):
        """A test program: a shell script."""
        self.write(name + ".sh", "#!/bin/sh\n" + script)
        os.chmod(self.path(name + ".sh"), 0o755)
        more = "".join(f", {key}: {value}" for key, value in options.items())
        self.meson += f"test('{name}', find_program('./{name}.sh'), suite: '{suite}'{more})\n"

    def run_check(self, *args, user=None):
        self.write("meson.build", self.meson)
        subprocess.run(["meson", "setup", self.path("b"), self.top], check=True,
                       stdout=subprocess.DEVNULL)
        # A copy, and another place: who is not root may have no way into the checkout.
        os.makedirs(self.path("scripts"), exist_ok=True)
        shutil.copy(CHECK, self.path("scripts"))
        command = [self.path("scripts/check"), "--build", self.path("b"), "--tests", self.top] + list(args)
        if user:
            os.chmod(self.top, 0o755)
            subprocess.run(["chown", "-R", user, self.top], check=True)
        run = subprocess.run(command, text=True, check=False, user=user, cwd=self.top,
                             env=dict(os.environ, HOME=self.top),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = run.stdout
        return run.returncode

    def closes_with(self, passed, failed, skipped, *args, **how):
        status = self.run_check(*(args or ("unit",)), **how)
        last = self.output.splitlines()[-1]
        self.assertEqual(last, f"{passed} passed, {failed} failed, {skipped} skipped", self.output)
        self.assertEqual(status, 1 if failed or not passed else 0, self.output)
        closing = re.findall(r"^\d+ passed, \d+ failed.*$", self.output, re.M)
        self.assertEqual(len(closing), 1, self.output)

    # program: its script, how many cases are expected (None: not listed), and what it comes to
    # as passed, failed, skipped
    PROGRAMS = {
        "good": (TWO_GOOD, 2, 2, 0, 0),
        "plain": ("exit 0\n", 1, 1, 0, 0),
        "plain_bad": ("exit 3\n", 1, 0, 1, 0),
        "a_case_fails": (plan(2) + case("a") + case("b", " FAILED ") + done(2) +
                         AGAIN + "exit 1\n", 2, 1, 1, 0),
        "says_0_all_the_same": (plan(2) + case("a") + case("b", " FAILED ") + done(2),
                                2, 1, 1, 0),
        "leaks_at_the_end": (TWO_GOOD + "exit 23\n", 2, 2, 1, 0),
        "a_fixture_fails": (plan(2) + "echo '[ RUN      ] a'\n" + case("b") + done(2) +
                            "exit 1\n", 2, 1, 1, 0),
        "dies": (plan(4) + case("a") + "echo '[ RUN      ] b'\nkill -ABRT $$\n", 4, 1, 3, 0),
        "leaves_early": (plan(3) + case("a") + "exit 0\n", 3, 1, 2, 0),
        "hangs": (plan(2) + case("a") + "echo '[ RUN      ] b'\nsleep 600\n", 2, 1, 1, 0),
        "fewer": (TWO_GOOD, 3, 2, 1, 0),
        "more": (TWO_GOOD, 1, 2, 1, 0),
        "not_listed": (TWO_GOOD, None, 2, 1, 0),
        "gone": (None, 5, 0, 5, 0),
        "skips": (plan(2) + case("a") + case("b", "SKIPPED ") + done(2), 2, 1, 0, 1),
        "skips_whole": ("exit 77\n", 1, 0, 0, 1),
        "skips_another": (plan(2) + case("a") + case("b", "SKIPPED ") + done(2), 2, 1, 1, 0),
    }

    def test_every_way_to_end(self):
        expected = ""
        for name, (script, count, *_) in self.PROGRAMS.items():
            if script is not None:
                self.add(name, script, timeout=1 if name == "hangs" else 30)
            if count is not None:
                expected += f"unit/{name} {count}\n"
        self.write("expected", expected)
        self.write("skips", "unit/skips b  the moon is not full\nunit/skips_whole *  no moon\n"
                            "unit/skips_another a  that one would be\n")
        counts = [sum(how[column] for how in self.PROGRAMS.values()) for column in (2, 3, 4)]
        self.closes_with(*counts)
        failed = set(re.findall(r"^FAILED   unit/(\w+): ", self.output, re.M))
        self.assertEqual(failed, {name for name, how in self.PROGRAMS.items() if how[3]})
        self.assertIn("unit/a_case_fails: b\n", self.output)
        self.assertRegex(self.output, "unit/hangs: b, killed after [1-9] s\n")
        self.assertIn("unit/skips: b: the moon is not full\n", self.output)

    def test_all_is_well(self):
        self.add("t", TWO_GOOD)
        self.write("expected", "unit/t 2\n")
        self.closes_with(2, 0, 0)

    def test_one_failure_is_enough(self):
        self.add("t", TWO_GOOD)
        self.write("expected", "unit/t 3\n")
        self.closes_with(2, 1, 0)

    def test_a_suite_without_tests(self):
        self.add("t", TWO_GOOD)
        self.write("expected", "unit/t 2\n")
        self.closes_with(2, 1, 0, "unit", "model")

    def test_a_misspelt_suite(self):
        self.add("t", TWO_GOOD, suite="uint")
        self.assertEqual(self.run_check("unit"), 1)
        self.assertNotIn("passed", self.output)
        self.assertNotEqual(self.run_check("uint"), 0)

    def test_another_protocol_is_refused(self):
        self.add("t", "echo 1..1\necho ok 1\n", protocol="'tap'")
        self.assertEqual(self.run_check("unit"), 1)
        self.assertIn("protocol", self.output)

    @unittest.skipIf(os.geteuid() != 0, "becomes nobody")
    def test_without_root_live_fails(self):
        self.add("t", TWO_GOOD)
        self.add("l", TWO_GOOD, suite="live")
        self.write("expected", "unit/t 2\nlive/l 2\n")
        self.closes_with(2, 2, 0, "unit", "live", user="nobody")
        self.assertIn("needs root", self.output)

    def test_update_writes_the_counts(self):
        self.add("t", TWO_GOOD)
        self.write("expected", "# head\nunit/gone 3\nlive/l 7\n")
        self.assertEqual(self.run_check("--update", "unit"), 0)
        with open(self.path("expected"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "# head\nunit/t 2\nlive/l 7\n")
        self.closes_with(2, 0, 0)

    def test_update_refuses_after_a_failure(self):
        self.add("t", plan(2) + case("a") + case("b", " FAILED ") + done(2) + "exit 1\n")
        self.write("expected", "unit/t 3\n")
        self.assertEqual(self.run_check("--update", "unit"), 1)
        with open(self.path("expected"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "unit/t 3\n")

    def test_update_refuses_a_program_that_died(self):
        self.add("t", plan(3) + case("a") + "exit 0\n")
        self.write("expected", "unit/t 3\n")
        self.assertEqual(self.run_check("--update", "unit"), 1)


class Cases(unittest.TestCase):
    """tests/cases.py: what it prints for each way in which a case of unittest can end."""

    def test_every_verdict(self):
        source = """
import unittest, cases
class T(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.fail()
    def test_error(self): 1 / 0
    def test_skip(self): self.skipTest("why")
    def test_sub(self):
        with self.subTest(n=1): self.fail()
        with self.subTest(n=2): pass
cases.main()
"""
        run = subprocess.run(["/usr/bin/python3", "-"], input=source, text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        verdicts = {name: verdict.strip() for verdict, name in
                    re.findall(r"\[ (      OK| FAILED |SKIPPED ) \] T\.test_(\w+)", run.stdout)}
        self.assertEqual(verdicts, {"good": "OK", "bad": "FAILED", "error": "FAILED",
                                    "skip": "SKIPPED", "sub": "FAILED"})
        self.assertEqual(run.returncode, 1)


if __name__ == "__main__":
    cases.main()
