#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds JSON lines against a schema: validate.py SCHEMA [FILE|-]

Prints the first line that fails and why, and exits 1; prints how many there were and exits 0 when
all are good. A ledger is a file of one line. Also an error: a key that stands twice in one object,
which JSON readers drop without a word, bytes that are no UTF-8, and an empty file.
"""
import json
import sys

import jsonschema


class Bad(Exception):
    """A line that is not what it should be."""


def once(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise Bad(f"a key stands twice: {keys}")
    return dict(pairs)


def no_constant(name):
    raise Bad(f"{name} is no JSON")


def validator(schema_path):
    with open(schema_path, encoding="utf-8") as f:
        schema = json.load(f)
    cls = jsonschema.validators.validator_for(schema, default=None)
    cls.check_schema(schema)
    return cls(schema)


def check_line(check, line):
    """line: bytes. Raises Bad."""
    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=once,
                           parse_constant=no_constant)
    except ValueError as e:
        raise Bad(f"not JSON: {e}") from None
    errors = sorted(check.iter_errors(value), key=lambda e: list(map(str, e.path)))
    if errors:
        where = "/".join(map(str, errors[0].absolute_path)) or "the object"
        raise Bad(f"{where}: {errors[0].message}")


def check_lines(check, lines):
    """How many lines there are, or Bad with the number of the first that fails."""
    n = 0
    for n, line in enumerate(lines, 1):
        try:
            if not line.endswith(b"\n"):
                raise Bad("the line has no end")
            check_line(check, line)
        except Bad as e:
            raise Bad(f"{n}: {e}\n{line[:2000].decode('utf-8', 'backslashreplace')}") from None
    if not n:
        raise Bad("0: nothing there")
    return n


def main(argv):
    if len(argv) not in (2, 3):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    name = argv[2] if len(argv) == 3 else "-"
    check = validator(argv[1])
    try:
        if name == "-":
            n = check_lines(check, sys.stdin.buffer)
        else:
            with open(name, "rb") as f:
                n = check_lines(check, f)
    except Bad as e:
        print(f"{name}:{e}", file=sys.stderr)
        return 1
    print(f"{name}: {n} lines are good")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
