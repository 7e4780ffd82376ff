# SPDX-License-Identifier: BSD-2-Clause
"""Captures from outside: a walk over their packets that shares no code with weir, and what
babeltrace2 and babeltrace 1.5 say of them."""
import collections
import os
import re
import struct
import subprocess

READERS = ("babeltrace2", "babeltrace")

HEAD = struct.Struct("<I16sIQ6QIIQQII")
Head = collections.namedtuple("Head", "magic uuid stream instance begin end content_bits packet_bits "
                              "discarded number cpu part life_seq cpu_seq records checksum")
CPU, TASKS, NOTES = range(3)

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xff] ^ crc >> 8
    return crc ^ 0xffffffff


class Torn(Exception):
    """The file does not end with a whole packet: .at says where it should."""

    def __init__(self, at):
        super().__init__(f"torn at {at}")
        self.at = at


def packets(path):
    """(head, bytes of the whole packet), one after the other."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        if len(data) - at < HEAD.size:
            raise Torn(at)
        head = Head(*HEAD.unpack_from(data, at))
        if head.magic != 0xc1fc1fc1 or len(data) - at < head.packet_bits // 8:
            raise Torn(at)
        yield head, data[at:at + head.packet_bits // 8]
        at += head.packet_bits // 8


def files(folder, part=None):
    """Names of the streams' files, of one part or of all, by part."""
    names = [name for name in os.listdir(folder) if re.fullmatch(r"(cpu\d+|tasks|weir)\.\d{6}", name)]
    return sorted((name for name in names if part is None or int(name[-6:]) == part),
                  key=lambda name: (name[-6:], name))


def parts(folder):
    return sorted({int(name[-6:]) for name in files(folder)})


def check(case, folder, checksums=False):
    """What docs/capture.md promises of packets."""
    case.assertEqual(os.stat(folder).st_mode & 0o777, 0o700)
    last = {}
    uuids = set()
    for name in ["metadata"] + files(folder):
        case.assertEqual(os.stat(os.path.join(folder, name)).st_mode & 0o777, 0o600, name)
    for name in files(folder):
        for i, (head, data) in enumerate(packets(os.path.join(folder, name))):
            where = f"{name}, packet {i}"
            stream = name.split(".")[0]
            uuids.add(head.uuid)
            case.assertLessEqual(len(data), 1 << 20, where)
            case.assertEqual(len(data), (head.content_bits // 8 + 7) // 8 * 8, where)
            case.assertEqual(head.part, int(name[-6:]), where)
            case.assertEqual(stream, ("cpu%d" % head.instance, "tasks", "weir")[head.stream])
            case.assertLessEqual(head.begin, head.end, where)
            if i == 0:
                case.assertEqual((head.records, head.begin), (0, head.end), where)
            if stream in last:
                case.assertGreaterEqual(head.begin, last[stream].end, where)
                case.assertGreaterEqual(head.discarded, last[stream].discarded, where)
                case.assertEqual(head.number, last[stream].number + 1, where)
            if checksums:
                content = data[:head.content_bits // 8]
                case.assertEqual(crc32c(content[:108] + bytes(4) + content[112:]), head.checksum, where)
            last[stream] = head
    case.assertEqual(len(uuids), 1)


Event = collections.namedtuple("Event", "stamp name text")
LINE = re.compile(r"\[(\d+)\] \(\S+\) (?:\S* )?(\S+): (\{.*)", re.DOTALL)
DISCARDED = re.compile(r"Tracer discarded (\d+) events?\b")
# Of the empty packet that a file begins with: parts are gone, and there was loss before or in them.
BEFORE = re.compile(r"Tracer may have discarded events between \[([^]]+)\] and \[\1\]")


def read(case, folder, reader):
    """(events, how many it says were discarded); any other message is a failure."""
    done = subprocess.run([reader, "--clock-cycles", folder], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode(errors="replace")
    case.assertEqual(done.returncode, 0, said)
    discarded = [int(n) for n in DISCARDED.findall(said)]
    for line in said.splitlines():
        case.assertTrue(not line or DISCARDED.search(line) or BEFORE.search(line),
                        f"{reader}: {line}")
    events = []
    # A string may have a newline in it: babeltrace 1.5 prints that as it is.
    for line in re.split(rb"\n(?=\[\d{10,20}\] \()", done.stdout.rstrip(b"\n")):
        match = LINE.match(line.decode(errors="surrogateescape"))
        case.assertTrue(match, line)
        events.append(Event(int(match.group(1)), match.group(2), match.group(3)))
    stamps = [event.stamp for event in events]
    case.assertEqual(stamps, sorted(stamps))
    return events, sum(discarded)


def read_both(case, folder):
    """The same by both; they agree on stamps and names, but for the order of equal stamps."""
    events, discarded = read(case, folder, READERS[0])
    others, _ = read(case, folder, READERS[1])
    case.assertEqual(sorted(event[:2] for event in events), sorted(event[:2] for event in others))
    return events, discarded


def counts(events):
    return collections.Counter(event.name for event in events)


def number(event, key):
    """A number among its fields, the last of that name."""
    return int(re.findall(rf"[ _]{key} = (-?(?:0x)?[0-9A-Fa-f]+)", event.text)[-1], 0)


def by_name(events, name):
    return [event for event in events if event.name == name]
