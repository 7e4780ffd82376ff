# SPDX-License-Identifier: BSD-2-Clause
"""Lets unittest report as cmocka does, so that scripts/check counts its cases one by one.

A test in Python ends with

    if __name__ == "__main__":
        cases.main()

and finds this module because tests/meson.build puts its folder into PYTHONPATH.
"""
import sys
import traceback
import unittest


class Report(unittest.TestResult):
    """Prints what the runner reads: RUN, then one verdict a case."""

    def say(self, what, test):
        print(f"[ {what:8} ] {test.id().split('.', 1)[-1]}", flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.verdict = "      OK"
        self.say("RUN", test)

    def stopTest(self, test):
        super().stopTest(test)
        self.say(self.verdict, test)

    def bad(self, err):
        self.verdict = " FAILED "
        traceback.print_exception(*err)

    def addError(self, test, err):
        super().addError(test, err)
        self.bad(err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.bad(err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            print(f"in {subtest}", file=sys.stderr)
            self.bad(err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.verdict = "SKIPPED "

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.verdict = " FAILED "


def main():
    """Runs every case of the program that calls it; exits 1 if one failed."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    print(f"[==========] Running {suite.countTestCases()} test(s).", flush=True)
    report = Report()
    suite.run(report)
    print(f"[==========] {report.testsRun} test(s) run.", flush=True)
    sys.exit(not report.wasSuccessful())
