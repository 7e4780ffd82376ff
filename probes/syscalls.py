#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""syscalls.tbl -> C: syscalls.py TABLE OUTPUT. Refuses a table that says one thing twice."""

import re
import sys

NUMBERINGS = ["x86_64", "x32", "i386", "arm64", "arm"]
TAGS = ["int", "uint", "long", "hex", "size", "off", "lo", "hi", "pad", "fd", "dirfd", "pid",
        "uid", "gid", "sig", "mode", "dev", "flags", "enum", "path", "str", "argv", "envp",
        "sockaddr", "ptr", "buf", "outbuf", "in", "out", "inout"]
WITH_SET = {"flags", "enum", "in", "out", "inout"}
NR_MAX = 1024
ARGS_MAX = 6

ARG = re.compile(r"(?P<name>\w+):(?P<tag>\w+)(?::(?P<set>\w+))?"
                 r"(?:\((?P<length>\w+)\))?"
                 r"(?:\?(?P<other>\w+)(?:&(?P<bits>\d+))?=(?P<values>\d+(?:,\d+)*))?")


class Call:
    def __init__(self, line):
        words = line.split()
        self.name = words[0]
        self.numbers = self.parse_numbers(words[1:1 + len(NUMBERINGS)])
        self.args = [self.parse_arg(word) for word in words[1 + len(NUMBERINGS):]]
        self.names = [arg["name"] for arg in self.args]
        self.check()

    @staticmethod
    def parse_numbers(words):
        numbers = []
        for numbering, word in zip(NUMBERINGS, words, strict=True):
            if word == "=" and numbering == "x32":
                word = words[0]
            numbers.append(-1 if word == "-" else int(word))
        if max(numbers) < 0 or max(numbers) >= NR_MAX:
            raise ValueError("no number, or one out of range")
        return numbers

    @staticmethod
    def parse_arg(word):
        match = ARG.fullmatch(word)
        if not match or match["tag"] not in TAGS:
            raise ValueError(f"what is '{word}'?")
        if (match["set"] is not None) != (match["tag"] in WITH_SET):
            raise ValueError(f"'{word}': a set too many, or too few")
        if match["length"] and match["tag"] not in ("str", "sockaddr"):
            raise ValueError(f"'{word}': no length goes with this tag")
        if match["other"] and match["tag"] != "str" and not is_timespec(match):
            raise ValueError(f"'{word}': no condition goes with this tag")
        return match

    def check(self):
        if len(self.args) > ARGS_MAX or len(set(self.names)) != len(self.names):
            raise ValueError("too many arguments, or two of one name")
        if max(map(len, (self.conditions(), self.tagged("sockaddr"), self.timespecs()))) > 1:
            raise ValueError("more than one condition, socket address or timespec")
        if any(value > 63 for i in self.conditions() for value in values_of(self.args[i])):
            raise ValueError("a condition has values up to 63")
        for i in self.tagged("sockaddr"):
            if not self.args[i]["length"]:
                raise ValueError("a socket address without its length")
        named = {arg[role] for arg in self.args for role in ("length", "other") if arg[role]}
        if not named <= set(self.names):
            raise ValueError("a length or a condition names no argument")
        strings = self.tagged("path", "str")
        if len(strings) > 1 and any(self.args[i]["length"] for i in strings):
            raise ValueError("a string with a length beside another string")

    def tagged(self, *tags):
        return [i for i, arg in enumerate(self.args) if arg["tag"] in tags]

    def timespecs(self):
        return [i for i, arg in enumerate(self.args) if is_timespec(arg)]

    def conditions(self):
        return [i for i, arg in enumerate(self.args) if arg["other"]]

    def length_of(self, *tags):
        for i in self.tagged(*tags):
            if self.args[i]["length"]:
                return self.names.index(self.args[i]["length"])
        return -1

    def to_c(self):
        conditional = self.conditions()
        when = self.args[conditional[0]] if conditional else None
        lines = [
            f'.name = "{self.name}"',
            f'.nr = {{ {", ".join(map(str, self.numbers))} }}',
            f".nargs = {len(self.args)}",
            f'.string_args = {mask(self.tagged("path", "str")):#x}',
            f'.strv_args = {mask(self.tagged("argv")):#x}',
            f'.sockaddr_arg = {(self.tagged("sockaddr") or [-1])[0]}',
            f'.sockaddr_len_arg = {self.length_of("sockaddr")}',
            f'.timespec_arg = {(self.timespecs() or [-1])[0]}',
            f'.str_len_arg = {self.length_of("str")}',
            f".when_mask = {mask(conditional):#x}",
            f'.when_arg = {self.names.index(when["other"]) if when else -1}',
            f'.when_bits = {int(when["bits"] or 0xffffffff) if when else 0:#x}',
            f'.when_values = {mask(values_of(when)) if when else 0:#x}',
        ]
        if self.args:
            args = ", ".join(arg_to_c(arg) for arg in self.args)
            lines.append(f".args = {{ {args} }}")
        return "\t{ " + ", ".join(lines) + " },\n"


def is_timespec(arg):
    return arg["tag"] in ("in", "inout") and arg["set"] == "timespec"


def values_of(when):
    return [int(value) for value in when["values"].split(",")]


def mask(bits):
    return sum(1 << bit for bit in bits)


def arg_to_c(arg):
    set_name = f'"{arg["set"]}"' if arg["set"] else "NULL"
    return f'{{ "{arg["name"]}", {set_name}, WEIR_TAG_{arg["tag"].upper()} }}'


def read(path):
    calls = []
    with open(path, encoding="ascii") as table:
        for number, line in enumerate(table, 1):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                calls.append(Call(line))
            except ValueError as error:
                sys.exit(f"{path}:{number}: {error}")
    return sorted(calls, key=lambda call: call.name)


def index(calls, numbering):
    """Number -> 1 + place among the calls, for one numbering."""
    places = {}
    for place, call in enumerate(calls):
        nr = call.numbers[numbering]
        if nr in places:
            first = calls[places[nr]].name
            sys.exit(f"{NUMBERINGS[numbering]}: {first} and {call.name} are both {nr}")
        if nr >= 0:
            places[nr] = place
        previous = calls[place - 1]
        if nr >= 0 and place and previous.name == call.name and previous.numbers[numbering] >= 0:
            sys.exit(f"{NUMBERINGS[numbering]}: two numbers for {call.name}")
    return places


def main():
    table, output = sys.argv[1:]
    calls = read(table)
    with open(output, "w", encoding="ascii") as out:
        out.write("/* Made by syscalls.py from syscalls.tbl. */\n")
        out.write("static const struct syscall_desc calls[] = {\n")
        out.writelines(call.to_c() for call in calls)
        out.write("};\n\nstatic const uint16_t places[SYSCALL_NUMBERINGS][SYSCALL_NR_MAX] = {\n")
        for numbering, name in enumerate(NUMBERINGS):
            entries = sorted(index(calls, numbering).items())
            out.write(f"\t[SYSCALL_{name.upper()}] = {{\n")
            out.writelines(f"\t\t[{nr}] = {place + 1},\n" for nr, place in entries)
            out.write("\t},\n")
        out.write("};\n")


if __name__ == "__main__":
    main()
