#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What bench/run has measured, as tables and plots.

    report.py RESULTS		tables to the standard output, plots into RESULTS
    report.py RESULTS DOCS	tables also between the marks of DOCS/performance.md, plots into DOCS/plots

A mark is a line `<!-- bench: NAME -->`; what stands between it and `<!-- bench: end -->` is made here.
"""
import json
import os
import re
import sys

import plot

FIRST, LAST = "<!-- bench: {} -->\n", "<!-- bench: end -->\n"


def read(folder, name):
    """The text of one program's output; empty: it did not run."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def read_json(folder, name):
    text = read(folder, name)
    return json.loads(text) if text else None


# ---- what the programs print ------------------------------------------------------------------------

def order_rows(text):
    """Of bench/order: [{records, rings, burst, weir, unsorted, heap, sort}], the least of each."""
    names = ("weir", "unsorted", "heap", "sort")
    rows = []
    for line in text.splitlines():
        match = re.match(r"\s*(\d+)\s+(\d+)\s+(\d+)((?:\s+[\d.]+ \(\s*[\d.]+\))+)", line)
        if match:
            least = [float(value) for value in re.findall(r"([\d.]+) \(", match.group(4))]
            rows.append(dict(zip(("records", "rings", "burst"), map(int, match.groups()[:3])),
                             **dict(zip(names, least))))
    return rows


def ways(text):
    """Of bench/probe and bench/lean: {way: (least, median, ...)}"""
    found = {}
    for line in text.splitlines():
        match = re.match(r"(\w+)\s+([\d.]+) \(\s*([\d.]+)\)(?:\s+([\d.]+)(?: \(\s*([\d.]+)\))?)?", line)
        if match:
            found[match.group(1)] = tuple(float(n) for n in match.groups()[1:] if n)
    return found


def way_rows(text):
    """Of bench/probe and bench/lean, in their order: [(what, least, median, [more ...])]"""
    rows = []
    for line in text.splitlines():
        match = re.match(r"\w+ +([\d.]+) \( *([\d.]+)\) +([\d.]+)(?: \( *([\d.]+)\))? +(\S.*)", line)
        if match:
            numbers = [float(number) for number in match.groups()[:4] if number]
            rows.append((match.group(5), *numbers))
    return rows


def wake_rows(text):
    """Of bench/wake: {rate: {lost, polls, cpu, p50, p99, max}}; no times where there is no event."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].isdigit():
            times = [None if word == "-" else float(word) for word in words[5:8]]
            found[int(words[0])] = {"lost": int(words[2]), "polls": float(words[3]), "cpu": float(words[4]),
                                    **dict(zip(("p50", "p99", "max"), times))}
    return found


def table_rows(text):
    """Tab-separated, with a head: [{column: value}]"""
    lines = [line.split("\t") for line in text.splitlines()]
    return [{key: value if key == "reader" else float(value) for key, value in zip(lines[0], line)}
            for line in lines[1:]]


# ---- tables -----------------------------------------------------------------------------------------

def table(head, rows):
    """Markdown; every column but the first is numbers."""
    out = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def digits(value, none="-"):
    """Three of them."""
    if value is None:
        return none
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def percent(part):
    if part is None:
        return "-"
    return "0" if not part else f"{part * 100:.2f} %" if part >= 0.0001 else "< 0.01 %"


def duration(ns):
    return f"{ns / 1e6:,.1f} ms" if ns >= 1e6 else f"{ns / 1e3:,.1f} us"


TITLES = {
    "dd": "A million system calls of one thread: `dd bs=1`",
    "uname": "Calls of uname() on each CPU at once, at full speed, numbered",
    "switch": "Switches of tasks: `perf bench sched pipe`",
}


SHORT_TITLES = {"dd": "`dd`", "uname": "uname() on each CPU", "switch": "switches"}


def peers_row(name, figures, weir_s, untraced_s):
    lines = figures.get("lines")
    back = figures["back"] / lines if lines else None
    worst = f" ({duration(figures['back_ns'])})" if back else ""
    time_s = figures["time_s"]
    return [name, digits(time_s), digits(time_s / untraced_s), digits(time_s / weir_s),
            digits(figures.get("after_s")), digits(figures["tool_cpu_s"]),
            digits(figures["traced_cpu_s"]), digits(figures["whole_s"]),
            percent(figures.get("lost_most")), percent(back) + worst,
            f"{figures['twice_most']:,}" if "twice_most" in figures else "-"]


def peers_tables(peers):
    """Seconds a million events."""
    for load, title in TITLES.items():
        found = peers["loads"][load]
        tools = found["tools"]
        if "untraced" not in tools or "weir trace, text" not in tools:
            yield f"**{title}**: not measured.\n"
            continue
        weir_s, untraced_s = (tools[name]["time_s"] for name in ("weir trace, text", "untraced"))
        yield f"**{title}**\n"
        yield table(["", "time, s", "to untraced", "to weir", "then reads, s", "tool's CPU, s",
                     "traced CPU, s", "whole, s", "lost, at most", "steps back (worst)", "twice"],
                    [peers_row(name, figures, weir_s, untraced_s)
                     for name, figures in tools.items()])
        for name, why in found["failed"].items():
            yield f"Left out: {name}, {why}.\n"


def peers_section(peers):
    loads = f"{peers['load_before']:.1f} before, {peers['load_after']:.1f} after"
    versions = ", ".join(filter(None, peers["versions"].values()))
    parts = ", ".join(f"{name} 1/{part}" for name, part in peers["parts"].items())
    yield (f"Medians of {plural(peers['rounds'], 'run')}, all tools by turns; load average {loads}"
           f"{quiet(peers['load_before'])}. {versions}. Times are for a million events, of which some did "
           f"a part: {parts}.\n")
    yield from peers_tables(peers)
    yield ("Not measured: " +
           "; ".join(f"{name.split('/')[0]}, {why}" for name, why in peers["left_out"].items()) + ".\n")


def plural(count, name):
    return f"{count} {name}" + ("" if count == 1 else "s")


def quiet(load):
    """The bench itself has something running all the time."""
    return "" if load < 1.5 else " (**other work was running**)"


def reading_section(peers):
    reading = peers["reading"]["readers"]
    first = reading.get("weir replay, none, 2 streams")
    yield table(["", "M events/s", "to weir", "peak memory, MiB"],
                [[name, digits(figures["per_s"] / 1e6),
                  digits(figures["per_s"] / first["per_s"]) if first else "-",
                  digits(figures["mib"])] for name, figures in reading.items()])
    for name, why in peers["reading"]["failed"].items():
        yield f"Left out: {name}, {why}.\n"


def sending_section(text):
    yield table(["ns", "least", "median"],
                [[what, digits(least), digits(median)] for what, least, median, *_ in way_rows(text)])


def switch_section(text):
    yield table(["ns", "program, least", "median", "reader, a record, least", "median"],
                [[what, digits(least), digits(median)] + [digits(ns or None) for ns in read]
                 for what, least, median, *read in way_rows(text)])


def waiting_section(text):
    rows = wake_rows(text).items()
    yield table(["events/s", "polls/s", "CPU, %", "p50", "p99", "longest", "lost"],
                [[f"{rate:,}", f"{row['polls']:.0f}", f"{row['cpu']:.3g}"] +
                 ["-" if row[key] is None else duration(row[key] * 1000) for key in ("p50", "p99", "max")] +
                 [f"{row['lost']:,}"] for rate, row in rows])


def delay_section(rows):
    yield table(["proof, and CPUs", "p50", "p99", "longest", "lost"],
                [[f"`{row['fence']}`, {row['cpus']}"] +
                 [duration(row[key] * 1000) for key in ("p50_us", "p99_us", "max_us")] + [f"{row['lost']:,}"]
                 for row in rows])


def machine_section(text):
    yield "```\n" + text.strip() + "\n```\n"


# ---- goals ------------------------------------------------------------------------------------------

class Goals:
    """Rows: what was wanted, what was measured, whether that is met."""

    def __init__(self):
        self.rows = []

    def add(self, wanted, measured, met):
        self.rows.append([wanted, measured, "met" if met else "**missed**"])

    def order(self, rows):
        for small, limit in ((True, 9), (False, 15)):
            of_size = [row["weir"] for row in rows if (row["records"] <= 16384) == small]
            if of_size:
                self.add(f"ordering: at most {limit} ns a record, polls of "
                         f"{'16,384' if small else 'a million'}, any number of rings",
                         f"{min(of_size):.1f} to {max(of_size):.1f} ns", max(of_size) <= limit)

    def wake(self, rows):
        if 0 in rows:
            self.add("nothing happens: under 0.1 % of a CPU", f"{rows[0]['cpu']:.3f} %",
                     rows[0]["cpu"] < 0.1)
        p99 = [row["p99"] for row in rows.values() if row["p99"] is not None]
        if p99:
            self.add("delivered within 2 ms (p99), at 100 to 200,000 events/s",
                     f"{min(p99):,.0f} to {max(p99):,.0f} us", max(p99) < 2000)
        if 200000 in rows:
            self.add("200,000 events/s: under 6 % of a CPU", f"{rows[200000]['cpu']:.1f} %",
                     rows[200000]["cpu"] < 6)

    def lean(self, found):
        if "lane" in found:
            self.add("accounting: at most 80 ns a switch (median)", f"{found['lane'][1]:.0f} ns",
                     found["lane"][1] <= 80)

    def latency(self, rows):
        for fence, limit_us in (("reserve", 2000), ("rcu", 40000)):
            for cpus in ("free", "busy"):
                p99 = [row["p99_us"] for row in rows or ()
                       if (row["fence"], row["cpus"]) == (fence, cpus)]
                if p99:
                    self.add(f"delay with `{fence}`, CPUs {cpus}: p99 at most {limit_us // 1000} ms",
                             duration(p99[0] * 1000), p99[0] <= limit_us)

    def against_untraced(self, what, tool, untraced):
        """The goals do not say by which clock; the whole command has to load its probes, which takes as
        long as half a million calls."""
        for key, clock in (("time_s", "by the clock of who is traced"), ("whole_s", "whole commands")):
            times = tool[key] / untraced[key]
            self.add(f"{what}: at most 3 times the untraced time, {clock}", f"{times:.1f} times", times <= 3)

    def trace(self, tools):
        weir = tools["weir trace, text"]
        self.against_untraced("a million calls traced as text", weir, tools["untraced"])
        self.add("and nothing lost", percent(weir["lost_most"]), not weir["lost_most"])
        if "perf trace" in tools:
            times = tools["perf trace"]["time_s"] / weir["time_s"]
            self.add("and at least 25 times faster than perf trace", f"{times:.0f} times", times >= 25)

    def record(self, tools):
        weir, perf = tools["weir record, replay"], tools.get("perf record, script")
        self.against_untraced("recording them", weir, tools["untraced"])
        self.add("and nothing lost", percent(weir["lost_most"]), not weir["lost_most"])
        if not perf:
            return
        for key, clock in (("whole_s", "whole commands"), ("time_s", "by the clock of who is traced")):
            part = weir[key] / perf[key]
            self.add(f"and at most a third of perf record's time, {clock}", f"{part:.2f} of it",
                     part <= 1 / 3)
        per_event = perf["after_s"] / weir["after_s"]
        per_line = per_event * weir["lines"] / perf["lines"]
        for times, unit in ((per_line, "a line"), (per_event, "an event (a line has a call's two)")):
            self.add(f"replay to text: at least 10 times as fast as perf script, {unit}",
                     f"{times:.1f} times", times >= 10)

    def loses_nothing(self, loads):
        """Where perf record does."""
        for name, load in loads.items():
            perf, weir = (load["tools"].get(tool, {}).get("lost_most")
                          for tool in ("perf record, script", "weir trace, text"))
            if perf and weir is not None:
                self.add(f"trace loses nothing where perf record does: {SHORT_TITLES[name]}",
                         f"{percent(weir)}; perf record {percent(perf)}", not weir)

    def peers(self, peers):
        loads = peers["loads"]
        tools = loads["dd"]["tools"]
        if {"untraced", "weir trace, text"} <= set(tools):
            self.trace(tools)
        if {"untraced", "weir record, replay"} <= set(tools):
            self.record(tools)
        self.loses_nothing(loads)
        back = sum(figures["back"] for load in loads.values() for name, figures in load["tools"].items()
                   if name.startswith("weir") and "back" in figures)
        self.add("not one step back in any of weir's lines", f"{back:.0f}", not back)

    def replay(self, text):
        match = re.search(r"(\d+) events to a counter: .* ([\d.]+) M/s, (\d+) MiB", text)
        if match:
            events, rate, mib = int(match.group(1)), float(match.group(2)), int(match.group(3))
            self.add(f"replay of {events / 1e6:g} M events to a counter: at least 10 M/s on one CPU",
                     f"{rate:.1f} M/s", rate >= 10)
            self.add("and under 256 MiB of memory", f"{mib} MiB", mib < 256)

    def top(self, text):
        idle = re.search(r"^idle +([\d.]+) %", text, re.M)
        each = re.search(r"^pipe +([\d.]+) ns", text, re.M)
        if idle:
            self.add("weir top on an idle machine, a report a second: under 0.2 % of a CPU",
                     idle.group(1) + " %", float(idle.group(1)) < 0.2)
        if each:
            self.add("weir top under perf bench sched pipe: at most 50 ns of the reader's a switch",
                     each.group(1) + " ns", float(each.group(1)) <= 50)

    def tracepoints(self, text):
        match = re.search(r"^weir / perf, .*: ([\d.]+) \(", text, re.M)
        if match:
            self.add("a tracepoint: the traced side pays at most 1.1 times what perf record costs it",
                     match.group(1) + " times", float(match.group(1)) <= 1.1)

    def reading(self, reading):
        for streams in (2, 128):
            weir = reading.get(f"weir replay, none, {streams} streams")
            names = [f"babeltrace2, counter, {streams} streams"]
            names += ["libtracecmd, counter", "perf report"] if streams == 2 else []
            times = {name.split(",")[0]: weir["per_s"] / reading[name]["per_s"]
                     for name in names if weir and name in reading}
            if times:
                self.add(f"replay to a counter, {streams} streams: faster than {' and '.join(times)}",
                         " and ".join(f"{value:.1f}" for value in times.values()) + " times",
                         min(times.values()) > 1)

    def bench(self, text):
        """Of the whole, not of the quick form."""
        if text:
            self.add("`make bench` ends in under 15 minutes", f"{int(text) / 60:.1f} minutes",
                     int(text) < 900)

    def torture(self, rows):
        if rows:
            events, late = (sum(row.get(key, 0) for row in rows) for key in ("events", "late"))
            closed = [row["ledger_closed"] for row in rows if "ledger_closed" in row]
            self.add("late events behind exact fences, `make torture`: none",
                     f"{late} of {events / 1e6:.1f} M", not late)
            self.add("and every ledger closes", f"{sum(closed)} of {len(closed)}", all(closed))


def goals_section(folder):
    goals = Goals()
    goals.order(order_rows(read(folder, "order.txt")))
    goals.wake(wake_rows(read(folder, "wake.txt")))
    goals.lean(ways(read(folder, "lean.txt")))
    latency = read_json(folder, "latency.json")
    goals.latency(latency and latency["latency"])
    goals.top(read(folder, "top.txt"))
    goals.tracepoints(read(folder, "tracepoints.txt"))
    goals.replay(read(folder, "replay.txt"))
    peers = read_json(folder, "peers.json")
    if peers:
        goals.peers(peers)
        goals.reading(peers["reading"]["readers"])
    goals.torture(read_json(folder, "../torture/rows.json"))
    goals.bench(read(folder, "seconds"))
    met = sum(row[2] == "met" for row in goals.rows)
    yield table(["goal", "measured", ""], goals.rows)
    yield f"{met} of {len(goals.rows)} are met.\n"


# ---- plots ------------------------------------------------------------------------------------------

def by_reader(rows, x, y):
    names = {"weir": "weir, in order", "libbpf": "libbpf, one ring"}
    found = {}
    for row in rows:
        found.setdefault(names[row["reader"]], []).append((row[x], row[y]))
    return found


def plots(folder):
    """{file name: SVG}"""
    found = {}
    order = [row for row in order_rows(read(folder, "order-rings.txt"))
             if (row["records"], row["burst"]) == (16384, 1)]
    if order:
        found["rings.svg"] = plot.draw(
            "Ordering, by the number of rings", "rings", "ns a record",
            {name: [(row["rings"], row[name]) for row in order]
             for name in ("sort", "heap", "weir", "unsorted")}, x_base=2)
    rates = table_rows(read(folder, "rates.tsv"))
    if rates:
        found["rates.svg"] = plot.draw(
            "Reading, by how many come", "records a second", "CPU of the reader, ns a record",
            by_reader(rates, "produced", "reader_ns"))
    sizes = table_rows(read(folder, "sizes.tsv"))
    if sizes:
        series = {f"{name}: sent": points
                  for name, points in by_reader(sizes, "bytes", "send_ns").items()}
        series |= {f"{name}: read": points
                   for name, points in by_reader(sizes, "bytes", "read_ns").items()}
        found["sizes.svg"] = plot.draw("A record at 50,000 a second, by its size",
                                       "bytes", "ns a record", series, x_base=2)
    tasks = table_rows(read(folder, "tasks.tsv"))
    if tasks:
        found["tasks.svg"] = plot.draw(
            "Who was who, by the number of processes", "processes", "ns, bytes",
            {"a fork and an exit, ns": [(row["tasks"], row["life_ns"]) for row in tasks],
             "bytes a process": [(row["tasks"], row["bytes"]) for row in tasks],
             "a look, ns": [(row["tasks"], row["find_ns"]) for row in tasks]})
    return found


# ---- all of it --------------------------------------------------------------------------------------

def sections(folder):
    """{mark: text}, of what was measured."""
    found = {"goals": "\n".join(goals_section(folder))}
    machine, peers = read(folder, "machine.txt"), read_json(folder, "peers.json")
    if machine:
        found["machine"] = "\n".join(machine_section(machine))
    for name, file, section in (("sending", "probe.txt", sending_section),
                                ("switch", "lean.txt", switch_section),
                                ("waiting", "wake.txt", waiting_section)):
        text = read(folder, file)
        if text:
            found[name] = "\n".join(section(text))
    latency = read_json(folder, "latency.json")
    if latency and latency["latency"]:
        found["delay"] = "\n".join(delay_section(latency["latency"]))
    if peers:
        found["peers"] = "\n".join(peers_section(peers))
        found["reading"] = "\n".join(reading_section(peers))
    return found


def put(text, found):
    """The document with those sections in their places; one that has none is an error."""
    for name, section in found.items():
        first = FIRST.format(name)
        begin = text.index(first) + len(first)
        end = text.index(LAST, begin)
        text = text[:begin] + section + text[end:]
    return text


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    folder, docs = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    found = sections(folder)
    for name in ("goals", "peers", "reading"):
        if name in found:
            print(found[name])
    drawn = plots(folder)
    for name, svg in drawn.items():
        write(os.path.join(folder, name), svg)
    if docs:
        path = os.path.join(docs, "performance.md")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        write(path, put(text, found))
        os.makedirs(os.path.join(docs, "plots"), exist_ok=True)
        for name, svg in drawn.items():
            write(os.path.join(docs, "plots", name), svg)


if __name__ == "__main__":
    main()
