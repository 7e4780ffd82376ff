#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The lint scripts find what is planted for them, and nothing in what is right."""
import os
import subprocess
import tempfile
import unittest

import cases
import exports
import files
import includes
import tree

KNOWN = {
    "include/weir/event.h", "include/weir/record.h", "bpf/weir.bpf.h",
    "src/symbols.h", "src/ring/ring.h", "src/order/merge.h", "src/ledger/ledger.h",
    "src/source/clock.h", "src/stream/internal.h", "probes/probes.h", "state/tasks.h",
    "sinks/sink.h", "sinks/put.h", "cli/cli.h", "tests/unit/help.h",
}


def wrong(path, line):
    return [number for number, _ in includes.check(path, "/* c */\n" + line + "\n", KNOWN)]


class Includes(unittest.TestCase):
    def refused(self, path, line):
        self.assertEqual(wrong(path, line), [2], f"{path}: {line}")

    def allowed(self, path, line):
        self.assertEqual(wrong(path, line), [], f"{path}: {line}")

    def test_the_wrong_way(self):
        self.refused("src/ring/ring.c", '#include "order/merge.h"')
        self.refused("src/ring/ring.c", '#include "ledger/ledger.h"')
        self.refused("src/order/merge.c", '#include "stream/internal.h"')
        self.refused("src/order/merge.c", '#include "ledger/ledger.h"')
        self.refused("src/source/clock.c", '#include "order/merge.h"')
        self.refused("src/source/clock.c", '#include "stream/internal.h"')
        self.refused("src/stream/poll.c", '#include "probes/probes.h"')
        self.refused("probes/decode.c", '#include "ring/ring.h"')
        self.refused("state/tasks.c", '#include "probes/probes.h"')
        self.refused("state/tasks.c", '#include "sinks/sink.h"')
        self.refused("sinks/json.c", '#include "state/tasks.h"')
        self.refused("cli/trace.c", '#include "stream/internal.h"')
        self.refused("cli/trace.c", '#include "src/stream/internal.h"')
        self.refused("bpf/process.bpf.c", '#include "probes/probes.h"')
        self.refused("include/weir/event.h", '#include "sinks/sink.h"')

    def test_disguises(self):
        self.refused("src/order/merge.c", '#include <stream/internal.h>')
        self.refused("src/order/merge.c", '#include "../stream/internal.h"')
        self.refused("src/order/merge.c", '  #  include "stream/internal.h"')
        self.refused("sinks/json.c", '#include "../state/tasks.h"')

    def test_pure_rooms(self):
        for room in includes.PURE:
            self.refused(room + "/x.c", "#include <time.h>")
            self.refused(room + "/x.c", "#include <sys/mman.h>")
            self.refused(room + "/x.c", "#include <unistd.h>")
            self.refused(room + "/x.c", "#include <stdio.h>")
            self.refused(room + "/x.c", "#include <pthread.h>")
            self.refused(room + "/x.c", "#include <bpf/bpf.h>")
            self.allowed(room + "/x.c", "#include <string.h>")

    def test_the_right_way(self):
        self.allowed("src/order/merge.c", '#include "order/merge.h"')
        self.allowed("src/order/merge.c", '#include "ring/ring.h"')
        self.allowed("src/ledger/ledger.c", '#include "symbols.h"')
        self.allowed("src/stream/poll.c", '#include "source/clock.h"')
        self.allowed("src/source/clock.c", "#include <time.h>")
        self.allowed("sinks/json.c", '#include "put.h"')
        self.allowed("cli/trace.c", '#include "sinks/sink.h"')
        self.allowed("cli/trace.c", "#include <weir/event.h>")
        self.allowed("probes/load.c", '#include "process.skel.h"')
        self.allowed("tests/unit/x.c", '#include "stream/internal.h"')

    def test_files_that_are_not_there(self):
        self.refused("cli/trace.c", '#include "cli/gone.h"')
        self.refused("cli/trace.c", "#include <weir/gone.h>")

    def test_a_file_in_no_room(self):
        self.assertTrue(includes.check("lib/new.c", "int x;\n", KNOWN))


class Exports(unittest.TestCase):
    def test_what_a_header_declares(self):
        self.assertEqual(exports.declared("""
/* see weir_stream__gone() */
int weir_stream__poll(struct weir_stream *stream, int timeout_ms);
typedef int (*weir_event_fn)(void *ctx);
static inline int weir_stream__twice(int x)
{
	return weir_stream__once(x);
}
"""), {"weir_stream__poll"})


class Files(unittest.TestCase):
    BSD = "/* SPDX-License-Identifier: BSD-2-Clause */\n"
    DUAL = "/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n"

    def found(self, path, text):
        return [number for number, _ in files.check(path, text)]

    def test_licence(self):
        self.assertEqual(self.found("cli/x.c", self.BSD + "int x;\n"), [])
        self.assertEqual(self.found("cli/x.sh", "#!/bin/sh\n# " + self.BSD), [])
        self.assertEqual(self.found("cli/x.c", "int x;\n"), [1])
        self.assertEqual(self.found("cli/x.c", "\n\n\n" + self.BSD), [1])
        self.assertEqual(self.found("cli/x.c", self.BSD.replace("BSD-2", "BSD-3")), [1])

    def test_what_the_kernel_runs_is_dual(self):
        for path in ("bpf/x.bpf.c", "bpf/weir.bpf.h", "include/weir/record.h"):
            self.assertEqual(self.found(path, self.BSD), [1])
            self.assertEqual(self.found(path, self.DUAL), [])

    def test_length(self):
        self.assertEqual(self.found("cli/x.c", self.BSD + "\n" * 899), [])
        self.assertEqual(self.found("cli/x.c", self.BSD + "\n" * 900), [901])

    def test_debris(self):
        self.assertEqual(self.found("cli/x.c", self.BSD + "int x; \n"), [2])
        self.assertEqual(self.found("cli/x.c", self.BSD + "int x;\n\t\n"), [3])
        self.assertEqual(self.found("cli/x.c", self.BSD + "int x;"), [2])
        for mark in ("<" * 7 + " ours", "=" * 7, ">" * 7 + " theirs", "|" * 7 + " base"):
            self.assertEqual(self.found("cli/x.c", self.BSD + mark + "\n"), [2])


class Tree(unittest.TestCase):
    def plant(self, top):
        os.makedirs(os.path.join(top, "src"))
        os.makedirs(os.path.join(top, "build"))
        for path in ("src/a.c", "build/b.c"):
            with open(os.path.join(top, path), "w", encoding="utf-8") as file:
                file.write("x\n")

    def test_an_archive_without_git(self):
        with tempfile.TemporaryDirectory() as top:
            self.plant(top)
            self.assertEqual(tree.files(top), ["src/a.c"])

    def test_git_names_what_it_tracks(self):
        with tempfile.TemporaryDirectory() as top:
            self.plant(top)
            subprocess.run(["git", "-C", top, "init", "-q"], check=True)
            subprocess.run(["git", "-C", top, "add", "src/a.c"], check=True)
            self.assertEqual(tree.files(top), ["src/a.c"])


if __name__ == "__main__":
    cases.main()
