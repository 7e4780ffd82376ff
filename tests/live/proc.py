# SPDX-License-Identifier: BSD-2-Clause
"""What /proc knows of a process that runs. Its threads and files may go while one looks."""
import contextlib
import glob
import re
import resource
import shutil
import subprocess

# It is not on everybody's path.
BPFTOOL = shutil.which("bpftool") or "/usr/sbin/bpftool"


def high_water(pid):
    """The most memory that a process has had, in bytes."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmHWM:\s+([0-9]+) kB", status.read()).group(1)) * 1024


def resident(pid):
    """Its memory now, in bytes."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def cpu_ns(pid):
    """CPU time of all of a process's threads."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as schedstat:
            total += int(schedstat.read().split()[0])
    return total


def bpf_objects(pid, kinds="prog|map"):
    """(kind, id) of the BPF objects that a process has open."""
    found = set()
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as fdinfo:
            found.update(re.findall(rf"^({kinds})_id:\s+([0-9]+)$", fdinfo.read(), re.MULTILINE))
    return found


def has_bpf_object(which):
    """Does the kernel still have that (kind, id)?"""
    return subprocess.run([BPFTOOL, which[0], "show", "id", which[1]],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def children(pid):
    """Pids of a process's children."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            found += map(int, file.read().split())
    return found
