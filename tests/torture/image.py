# SPDX-License-Identifier: BSD-2-Clause
"""The guests' initramfs: busybox, Python, and what was built here, with the libraries of all of it.

Written as the kernel reads it (cpio, "newc"). Nothing of the machine's configuration is in it.
"""
import glob
import os
import re
import stat
import subprocess

PYTHON = "/usr/bin/python3"

# What of Python's library no guest imports.
PYTHON_LEAVES = {"test", "idlelib", "lib2to3", "pydoc_data", "ensurepip", "distutils", "tkinter",
                 "turtledemo", "dist-packages", "site-packages", "sqlite3", "asyncio",
                 "multiprocessing", "xml", "wsgiref", "dbm", "curses"}

FOLDERS = ("bin", "dev", "proc", "sys", "tmp", "run", "root", "etc")

LIVE = ("fence_control", "fence_stream", "order_readers", "probes_smoke", "probes_calls", "lanes",
        "lean_probe", "perf_objects", "perf_stream", "perf_snapshot")
LOADS = ("calls", "deeds", "forks", "names", "paths", "reuse", "tiny")


class Image:
    """A tree of names, and what stands under them."""

    def __init__(self):
        self.files = {}  # path in the guest, without the first slash -> (mode, mtime, bytes)

    def add(self, path, data, mode=stat.S_IFREG | 0o755, mtime=0):
        path = path.lstrip("/")
        above = os.path.dirname(path)
        if above and above not in self.files:
            self.add(above, b"", stat.S_IFDIR | 0o755)
        self.files[path] = (mode, int(mtime), data)

    def copy(self, source, path):
        """One file, by what it is and not by the link that names it."""
        # Python takes a compiled module only beside a source of the same time.
        with open(source, "rb") as file:
            self.add(path, file.read(), stat.S_IFREG | 0o755, os.stat(source).st_mtime)

    def copy_program(self, source, path):
        self.copy(source, path)
        for library in libraries(source):
            if library.lstrip("/") not in self.files:
                self.copy(library, library)

    def copy_tree(self, source, path, leaves=()):
        for folder, folders, names in os.walk(source):
            folders[:] = [name for name in folders if name not in leaves]
            for name in names:
                from_path = os.path.join(folder, name)
                if os.path.isfile(from_path):
                    self.copy(from_path, os.path.join(path, os.path.relpath(from_path, source)))

    def write(self, path):
        with open(path, "wb") as file:
            for number, name in enumerate(self.files, 1):
                file.write(entry(number, name, *self.files[name]))
            file.write(entry(0, "TRAILER!!!", 0, 0, b""))


def padded(data):
    return data + b"\0" * (-len(data) % 4)


def entry(number, name, mode, mtime, data):
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, mtime, len(data), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + "".join(f"{field:08x}" for field in fields).encode()
    return padded(head + encoded) + padded(data)


def libraries(program):
    """What the loader would take, itself among them; none for what is static."""
    said = subprocess.run(["ldd", program], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode()
    return re.findall(r"(?:=>|^)\s+(/\S+) \(0x", said, re.MULTILINE)


def make(path, busybox, build, tests):
    """What a guest needs, from the folder of the build and that of the tests."""
    image = Image()
    for name in FOLDERS:
        image.add(name, b"", stat.S_IFDIR | 0o755)
    image.copy(busybox, "bin/busybox")
    image.copy(os.path.join(tests, "torture/init"), "init")
    # busybox's `true` is one only by that name.
    for program in (PYTHON, "/usr/bin/setpriv", "/usr/bin/taskset", "/bin/true"):
        image.copy_program(program, program)
    library = subprocess.run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"],
                             check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    image.copy_tree(library, library, PYTHON_LEAVES)
    image.copy_program(os.path.join(build, "weir"), "weir/weir")
    for name in LOADS:
        image.copy_program(os.path.join(build, "tests/live/load", name), f"weir/load/{name}")
    for name in LIVE:
        image.copy_program(os.path.join(build, "tests/live", name), f"weir/live/{name}")
    for pattern in ("cases.py", "live/*.py", "torture/guest.py"):
        for name in glob.glob(os.path.join(tests, pattern)):
            image.copy(name, f"weir/tests/{os.path.basename(name)}")
    image.write(path)
