#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `make install` puts on a machine: programs in C and C++ build against it through pkg-config, with
the shared library and with the static one, and run.

    test_install.py BUILD CC CXX [FLAG]...
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases

BUILD, CC, CXX, *FLAGS = sys.argv[1:]

PROGRAM = r"""
#include <weir/weir.h>
#include <stdio.h>

static int on_event(void *ctx, const struct weir_event *event)
{
	return 0;
}

int main(void)
{
	struct weir_stream_opts opts = {};
	struct weir_stream *stream;

	opts.sz = sizeof(opts);
	opts.on_event = on_event;
	stream = weir_stream__new(&opts);
	if (!stream || weir_stream__poll(stream, 0))
		return 1;
	weir_stream__free(stream);
	puts(weir_cause__name(WEIR_LOST_HELD));
	return 0;
}
"""


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=120, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory(prefix="weir-install-")
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", cls.root.name)
        found = run("find", cls.root.name, "-name", "weir.pc").split()
        assert len(found) == 1, found
        cls.libdir = os.path.dirname(os.path.dirname(found[0]))
        cls.env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(found[0]),
                       PKG_CONFIG_SYSROOT_DIR=cls.root.name)

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    def flags(self, *what):
        return run("pkg-config", *what, "weir", env=self.env).split()

    def build(self, compiler, suffix, libs):
        source = os.path.join(self.root.name, "program" + suffix)
        program = source + ".out"
        with open(source, "w", encoding="ascii") as file:
            file.write(PROGRAM)
        run(compiler, *FLAGS, "-Wall", "-Werror", "-Wno-unused-parameter", source, "-o", program,
            *self.flags("--cflags"), *libs)
        return program

    def check(self, compiler, suffix, libs, is_shared):
        program = self.build(compiler, suffix, libs)
        needed = run("readelf", "-d", program)
        self.assertEqual("libweir.so.0" in needed, is_shared)
        self.assertEqual(run(program, env=dict(os.environ, LD_LIBRARY_PATH=self.libdir)), "held\n")

    def static_libs(self):
        """libweir.a and what it needs: as `pkg-config --static` names it, libweir itself by file."""
        return [os.path.join(self.libdir, "libweir.a") if flag == "-lweir" else flag
                for flag in self.flags("--libs", "--static")]

    def test_c_shared(self):
        self.check(CC, ".c", self.flags("--libs"), True)

    def test_c_static(self):
        self.check(CC, ".c", self.static_libs(), False)

    def test_cxx_shared(self):
        self.check(CXX, ".cc", self.flags("--libs"), True)

    def test_cxx_static(self):
        self.check(CXX, ".cc", self.static_libs(), False)

    def test_version(self):
        self.assertEqual(self.flags("--modversion"),
                         re.findall(r"weir (\S+)", run(os.path.join(BUILD, "cli", "weir"),
                                                       "--version"))[:1])

    def test_what_else(self):
        have = run("find", self.root.name, "-type", "f", "-o", "-type", "l")
        for path in ("/bin/weir", "/include/weir/weir.bpf.h", "/include/weir/weir.h",
                     "/man/man1/weir-trace.1", "/man/man3/weir_stream__poll.3"):
            self.assertIn(path, have)

    def test_agent_against_what_is_installed(self):
        """weir.bpf.h finds what it includes."""
        include = self.flags("--cflags-only-I") or ["-I" + self.root.name + "/usr/local/include"]
        source = os.path.join(self.root.name, "agent.bpf.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("#include <weir/weir.bpf.h>\nchar LICENSE[] SEC(\"license\") = \"GPL\";\n")
        run("clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c", source, "-o", source + ".o",
            "-idirafter", "/usr/include/" + run(CC, "-print-multiarch").strip(), *include)


if __name__ == "__main__":
    cases.main()
