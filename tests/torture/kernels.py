# SPDX-License-Identifier: BSD-2-Clause
"""Debian's kernels for the guests, as files: fetched by apt, unpacked, never installed.

apt has a configuration of its own here, with its own lists, so that the machine's packages and where
they come from stay as they are. What is fetched is checked as apt always does, by the keys of
debian-archive-keyring.
"""
import glob
import os
import re
import shutil
import subprocess

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

# Older names first: a package that has been split keeps its kernel where the first match is.
META = "linux-image-cloud-amd64"


class Missing(Exception):
    """There is no such kernel here, and none to be had."""


class Apt:
    """The packages of one suite."""

    def __init__(self, folder, suite):
        self.folder = os.path.abspath(os.path.join(folder, "apt", suite))
        for name in ("lists/partial", "cache/archives/partial", "debs"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        self.write("sources.list", f"deb [arch=amd64 signed-by={KEYRING}] {MIRROR} {suite} main\n")
        self.write("status", "")
        self.write("apt.conf", "".join(f'{key} "{value}";\n' for key, value in {
            "Dir::Etc::SourceList": f"{self.folder}/sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::Parts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::State::Lists": f"{self.folder}/lists",
            "Dir::State::Status": f"{self.folder}/status",
            "Dir::Cache": f"{self.folder}/cache",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }.items()))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(text)

    def run(self, *command):
        done = subprocess.run(command, cwd=os.path.join(self.folder, "debs"), check=False,
                              env=dict(os.environ, APT_CONFIG=f"{self.folder}/apt.conf"),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = done.stdout.decode(errors="replace")
        if done.returncode:
            raise Missing(f"{' '.join(command)}: {said.strip()}")
        return said

    def update(self):
        self.run("apt-get", "-qq", "update")

    def depends(self, package):
        return re.findall(r"^ +Depends: <?([^<>\s]+)>?", self.run("apt-cache", "depends", package),
                          re.MULTILINE)

    def unpack(self, package, folder):
        self.run("apt-get", "-qq", "download", package)
        # The version in the name has its colon as %3a.
        newest = max(glob.glob(os.path.join(self.folder, "debs", package + "_*.deb")),
                     key=os.path.getmtime)
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["dpkg-deb", "-x", newest, folder], check=True)


def find(folder):
    """The kernel that was unpacked there; None: no kernel is."""
    found = [path for pattern in ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
             for path in glob.glob(os.path.join(folder, pattern))]
    return found[0] if found else None


def fetch(folder, suite):
    """The newest cloud kernel of a suite, from the disk if it is there already."""
    unpacked = os.path.join(folder, "kernels", suite)
    if find(unpacked):
        return find(unpacked)
    apt = Apt(folder, suite)
    apt.update()
    image, = (name for name in apt.depends(META) if name.startswith("linux-image-"))
    # From 7.x on the kernel itself is in a package beside it.
    binary = [name for name in apt.depends(image) if name.startswith("linux-binary-")]
    shutil.rmtree(unpacked, ignore_errors=True)
    apt.unpack(binary[0] if binary else image, unpacked)
    if not find(unpacked):
        raise Missing(f"{image} of {suite} has no kernel in it")
    return find(unpacked)


def release(kernel):
    """6.12.117+deb13-cloud-amd64"""
    name = os.path.basename(kernel)
    return name[len("vmlinuz-"):] if name != "vmlinuz" else os.path.basename(os.path.dirname(kernel))


def fetch_busybox(folder):
    """A busybox that needs nothing else."""
    unpacked = os.path.join(folder, "busybox")
    path = os.path.join(unpacked, "bin/busybox")
    if not os.path.exists(path):
        apt = Apt(folder, "bookworm")
        apt.update()
        apt.unpack("busybox-static", unpacked)
    return path
