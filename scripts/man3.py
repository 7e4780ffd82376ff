#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The manual's section 3, out of the public headers: one page a function, and its text is the comment
that stands before the function.

    man3.py list HEADER...		the pages that there are, one a line
    man3.py write DATE FOLDER HEADER...	write them all
    man3.py check HEADER...		functions without a comment; exits 1 if there are any
"""
import os
import re
import sys
import textwrap

# A comment and what follows it up to the next blank line: that belongs together.
BLOCK = re.compile(r"^/\*(?P<comment>.*?)\*/\n(?P<code>(?:[^\n]+\n)+)", re.S | re.M)
FUNCTION = re.compile(
    r"^(?P<type>(?:static (?:inline |__always_inline |__noinline )?)?(?:const )?(?:struct |enum |unsigned )?\w+(?: \*|\*| ))"
    r"(?P<name>weir_\w+)\((?P<args>[^;{]*)\)\s*[;{]", re.M)
BODY = re.compile(r"^\{\n.*?^\}\n", re.S | re.M)
DEFINED = re.compile(r"\b(?:struct|enum) (weir_\w+) \{|typedef [^;]*\(\*(weir_\w+)\)|#define (WEIR_\w+)")
TYPE = re.compile(r"\b(?:struct|enum) (weir_\w+)|\b(weir_\w+_fn)\b")


class Header:
    def __init__(self, path):
        self.path = path
        # As a program names it: <weir/stream.h>, <weir/weir.bpf.h>.
        self.name = "weir/" + os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.about = prose(re.search(r"\n/\*(.*?)\*/", self.text, re.S).group(1))

    def blocks(self):
        """(comment, code) of everything that is described, bodies left out."""
        for match in BLOCK.finditer(BODY.sub(lambda b: "{\n" if b.group().startswith("{\n\t")
                                             else b.group(), self.text)):
            yield match["comment"], match["code"]

    def functions(self):
        """(name, type, arguments, comment) of every function, in their order."""
        described = {}
        for comment, code in self.blocks():
            for function in FUNCTION.finditer(code):
                described[function["name"]] = comment
        is_bpf = self.name.endswith(".bpf.h")
        for function in {match["name"]: match for match in FUNCTION.finditer(self.text)}.values():
            # What a BPF program has to see, and is not to call, has no comment of its own there.
            if is_bpf and function["name"] not in described:
                continue
            yield (function["name"], re.sub("^static (inline |__always_inline |__noinline )?", "", function["type"]),
                   split_args(function["args"]), described.get(function["name"]))

    def definitions(self):
        """{name: source} of the structs, enums and callbacks, each with its comment."""
        found = {}
        for piece in re.split(r"\n\n(?=/\*|struct |enum |typedef )", self.text):
            match = DEFINED.search(piece)
            if match and not FUNCTION.search(piece):
                found[match.group(1) or match.group(2) or match.group(3)] = \
                    re.sub(r"\n#endif.*", "", piece).strip()
        return found


def split_args(args):
    flat = " ".join(args.split())
    return [arg.strip() for arg in re.split(r",(?![^(]*\))", flat)]


def prose(comment):
    """The lines of a comment without its frame."""
    lines = re.sub(r"^ (?!\*)", " * ", comment.rstrip(" \n"), count=1).strip("\n").split("\n")
    return [re.sub(r"^ \* ?", "", line).rstrip() for line in lines]


def escape(line):
    line = line.replace("\\", "\\e")
    return "\\&" + line if line[:1] in (".", "'") else line


# A function that is mentioned, with the punctuation around it: mdoc wants it on a line of its own.
MENTION = re.compile(r"\b(\w+)\(\)(?:'s)?([.,;:)]*)(?: |$)")


def fill(text):
    """A paragraph: a sentence begins a line, a mentioned function is marked."""
    out = []
    for part in re.split(r"(?<=[.!?]) (?=[A-Z])", text):
        at = 0
        for mention in MENTION.finditer(part):
            out += wrap(part[at:mention.start()])
            out.append(f".Fn {mention.group(1)}" +
                       "".join(f" {mark}" for mark in mention.group(2)))
            at = mention.end()
        out += wrap(part[at:])
    return out


def wrap(text):
    return [escape(line) for line in textwrap.wrap(text.strip(), 76, break_long_words=False,
                                                   break_on_hyphens=False)]


def body(lines):
    """Paragraphs, and what is indented as it stands."""
    out, paragraph, literal = [], [], []

    def flush():
        if paragraph:
            out.extend(([".Pp"] if out else []) + fill(" ".join(paragraph)))
        if literal:
            out.extend([".Bd -literal"] + [escape(line) for line in literal] + [".Ed"])
        paragraph.clear()
        literal.clear()

    for line in lines + [""]:
        is_literal = line.startswith(("\t", "    "))
        if not line.strip() or bool(literal) != is_literal and (literal or paragraph):
            flush()
        if line.strip():
            (literal if is_literal else paragraph).append(line if is_literal else line.strip())
    return out


MAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "man")


def summaries():
    """{function: what it does, in a line}."""
    with open(os.path.join(MAN, "functions"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line[:1] not in "#\n"]
    return {row[0]: row[-1] for row in rows}


def needed(args, kind, definitions):
    """The definitions that a prototype needs, and those that these need."""
    todo, names = [kind] + args, []
    while todo:
        for match in TYPE.finditer(todo.pop(0)):
            name = match.group(1) or match.group(2)
            if name in definitions and name not in names:
                names.append(name)
                todo.append(definitions[name])
    return [definitions[name] for name in names]


def page(date, header, function, definitions, others):
    name, kind, args, comment = function
    lines = prose(comment or "")
    out = ['.\\" SPDX-License-Identifier: BSD-2-Clause', f".Dd {date}",
           f".Dt {name.upper()} 3", ".Os", ".Sh NAME", f".Nm {name}",
           f".Nd {escape(summaries().get(name, name))}"]
    if not header.name.endswith(".bpf.h"):
        out += [".Sh LIBRARY", "libweir", ".Pq Fl lweir"]
    out += [".Sh SYNOPSIS", f".In {header.name}", f".Ft {kind.strip()}", f".Fo {name}"]
    out += [f'.Fa "{arg}"' for arg in args] + [".Fc"]
    out += [".Sh DESCRIPTION"] + body(lines)
    for source in needed(args, kind, definitions):
        out += [".Bd -literal"] + [escape(line) for line in source.split("\n")] + [".Ed"]
    out += [".Sh NOTES"] + body([re.sub(r"^[\w.]+\.h - ", "", line) for line in header.about])
    out += [".Sh SEE ALSO"]
    see = [other for other in others if other != name]
    out += [".Xr libweir 3" + (" ," if see else "")]
    out += [f".Xr {other} 3 ," for other in see[:-1]] + [f".Xr {other} 3" for other in see[-1:]]
    return "\n".join(out) + "\n"


def overview(functions):
    """libweir(3), with the list of all functions."""
    with open(os.path.join(MAN, "libweir.3"), encoding="utf-8") as file:
        text = file.read()
    items = [f".It Xr {function[0]} 3\n{summaries().get(function[0])}" for function in functions]
    return text.replace("@FUNCTIONS@", "\n".join([".Bl -tag -width Ds"] + items + [".El"]))


def write(date, folder, headers):
    definitions = {}
    for header in headers:
        definitions.update(header.definitions())
    for header in headers:
        names = [function[0] for function in header.functions()]
        for function in header.functions():
            with open(os.path.join(folder, function[0] + ".3"), "w", encoding="utf-8") as file:
                file.write(page(date, header, function, definitions, sorted(names)))
    functions = sorted(function for header in headers for function in header.functions())
    with open(os.path.join(folder, "libweir.3"), "w", encoding="utf-8") as file:
        file.write(overview(functions))


def main():
    command, rest = sys.argv[1], sys.argv[2:]
    headers = [Header(path) for path in rest if path.endswith(".h")]
    functions = [function for header in headers for function in header.functions()]
    if command == "list":
        print("\n".join(["libweir.3"] + [function[0] + ".3" for function in functions]))
    elif command == "write":
        write(rest[0], rest[1], headers)
    else:
        bare = [function[0] for function in functions if not function[3]]
        for name in bare:
            print(f"{name}: no comment before it, so no page")
        known, told = {function[0] for function in functions}, set(summaries())
        for name in sorted(known ^ told):
            print(f"{name}: in man/functions or in the headers, and not in the other")
        sys.exit(bool(bare) or known != told)


if __name__ == "__main__":
    main()
