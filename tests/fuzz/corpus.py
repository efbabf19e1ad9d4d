#!/usr/bin/env python3
"""Packs a fuzzer's corpus into one text file, an input a line, and back into the folder that libFuzzer reads.

usage: corpus.py pack FOLDER FILE | corpus.py unpack FILE FOLDER

Printable ASCII stands for itself; a backslash is `\\\\`, a line break `\\n`, any other byte `\\xHH`. The shortest inputs
come first, and the file ends before it grows beyond its limit: it is read at each test.
"""
import hashlib
import pathlib
import sys

BYTES_MAX = 140_000


def escaped(data):
    names = {0x5C: "\\\\", 0x0A: "\\n"}
    return "".join(names.get(byte, chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}") for byte in data)


def unescaped(line):
    data, at = bytearray(), 0
    while at < len(line):
        if line[at] != "\\":
            data.append(ord(line[at]))
            at += 1
        elif line[at + 1] == "x":
            data.append(int(line[at + 2:at + 4], 16))
            at += 4
        else:
            data.append(0x0A if line[at + 1] == "n" else 0x5C)
            at += 2
    return bytes(data)


def pack(folder, file):
    lines, size = [], 0
    inputs = {path.read_bytes() for path in folder.iterdir()}
    for data in sorted(inputs, key=lambda data: (len(data), data)):
        line = escaped(data) + "\n"
        assert unescaped(line[:-1]) == data
        size += len(line)
        if size > BYTES_MAX:
            break
        lines.append(line)
    file.write_text("".join(lines), encoding="ascii")
    print(f"{len(lines)} of {len(inputs)} inputs")


def unpack(file, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for line in file.read_text(encoding="ascii").split("\n")[:-1]:
        data = unescaped(line)
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
