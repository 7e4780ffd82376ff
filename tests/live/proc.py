# SPDX-License-Identifier: BSD-2-Clause
"""What /proc knows of a process that runs."""
import contextlib
import glob
import re


def high_water(pid):
    """The most memory that a process has had, in bytes."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmHWM:\s+([0-9]+) kB", status.read()).group(1)) * 1024


def cpu_ns(pid):
    """CPU time of all of a process's threads."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as schedstat:
            total += int(schedstat.read().split()[0])
    return total


def bpf_programs(pid):
    """Ids of the BPF programs that a process has open."""
    ids = set()
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as fdinfo:
            ids.update(re.findall(r"^prog_id:\s+([0-9]+)$", fdinfo.read(), re.MULTILINE))
    return ids


def children(pid):
    """Pids of a process's children."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with open(path, encoding="ascii") as file:
            found += map(int, file.read().split())
    return found
