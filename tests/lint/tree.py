# SPDX-License-Identifier: BSD-2-Clause
"""The files of the project, for the lint scripts."""
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(top=TOP):
    """Paths from `top` of every file that git tracks, or, in an unpacked archive, of every file."""
    if os.path.exists(os.path.join(top, ".git")):
        # Under sudo the checkout is somebody else's, which git refuses unless told.
        out = subprocess.run(["git", "-c", "safe.directory=*", "-C", top, "ls-files", "-z"],
                             check=True, stdout=subprocess.PIPE).stdout
        paths = out.decode("utf-8", "surrogateescape").split("\0")
        # One that was deleted and not committed yet is still listed.
        return sorted(p for p in paths if p and os.path.isfile(os.path.join(top, p)))
    found = []
    for folder, below, names in os.walk(top):
        below[:] = [b for b in below if not b.startswith("build") and b != "__pycache__"]
        found += [os.path.relpath(os.path.join(folder, name), top) for name in names]
    return sorted(found)


def text(path, top=TOP):
    with open(os.path.join(top, path), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()
