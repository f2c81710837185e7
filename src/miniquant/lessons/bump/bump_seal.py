"""The checksum: what it covers, and where it is."""

import hashlib
import struct

from ...lab import Exercise, Mistake, edit
from .bump_header import bump_header


def bump_seal(data):
    """A whole file with its checksum in place.

    data: bytes, a header of 128 bytes and what follows
    ->  the same bytes, but with the SHA-256 of what follows the header in
        the 32 bytes from 0x40 on; all other bytes stay as they are
    """
    return data[:64] + hashlib.sha256(data[128:]).digest() + data[96:]


def oracle(data):
    """Some bytes at a time into the hash, a byte at a time into the file."""
    digest, out = hashlib.sha256(), bytearray(data)
    for index in range(128, len(data), 50):
        digest.update(data[index : index + 50])
    for index, byte in enumerate(digest.digest()):
        out[0x40 + index] = byte
    return bytes(out)


def fields(data):
    """What lies before the checksum, the checksum, the reserved bytes, the rest."""
    return [
        ("the header before the checksum", 0, 64),
        ("header.checksum", 64, 96),
        ("header.reserved", 96, 128),
        ("what the checksum covers", 128, len(data)),
    ]


def bumped_tail(count):
    """A table of types, and something that stands for tensors."""
    return struct.pack("<I", count) + bytes(count) + bytes(range(count))


def cases(random):
    """A header alone, then a header with more and more after it."""
    head = bump_header(1, 3, 20, 5, 2, bytes(32))
    tails = [b"", b"a", bumped_tail(3), bumped_tail(60), random.bytes(200), random.bytes(70_000)]
    sealed = head[:64] + bytes(range(1, 65))  # an old checksum, and reserved bytes that are in use
    return [*((head + tail,) for tail in tails), (sealed + b"abc" + bytes(70),), (sealed,)]


EXERCISE = Exercise(
    goal="Put the SHA-256 of everything after the header into its place in the header.",
    reference=bump_seal, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", fields=fields,
    hints=(
        "Two places matter: the byte from which on everything is hashed, and the byte where the 32 bytes of the hash go. The table of the header says both.",
        "`digest` gives bytes, `hexdigest` gives letters. Bytes cannot be changed in place: join new bytes from pieces with `+`, and compare the length with that of `data`.",
    ),
    why="one changed bit in gigabytes of weights changes about half of these bits.",
    mistakes=(
        Mistake("over the whole file", edit("data[128:]", "data"),
            cause="The hash covers the header too, and with it the place where the hash itself will be.",
            cure="Hash `data[128:]`.", see="another checksum, also for a file without tensors"),
        Mistake("from after the checksum", edit("data[128:]", "data[96:]"),
            cause="The hash begins at 0x60, so it covers the reserved bytes of the header.",
            cure="Begin at 128.", see="another checksum where everything else is right"),
        Mistake("without the table of types",
            edit("data[128:]", 'data[132 + int.from_bytes(data[128:132], "little") :]'),
            cause="The hash covers the tensors alone, so a changed type would go unnoticed.",
            cure="Begin right after the header, with the count.", see="right for a file of nothing but a header"),
        Mistake("without the count", edit("data[128:]", "data[132:]"),
            cause="The hash begins after the count of types.",
            cure="Begin right after the header, at 128.", see="right for the empty file only"),
        Mistake("the last line left out", edit("data[128:]", "data[128:-64]"),
            cause="The hash stops 64 bytes before the end.",
            cure="Hash to the end of the file.", see="another checksum for every file that has tensors"),
        Mistake("hexadecimal digits", edit("digest()", "hexdigest().encode()").edit("data[96:]", "data[128:]"),
            cause="`hexdigest` gives 64 letters, which also cover the reserved bytes.",
            cure="Use `digest()`, 32 bytes.", see="letters in bytes 64 to 127"),
        Mistake("in the reserved bytes", edit("data[:64]", "data[:96]").edit("data[96:]", "data[128:]"),
            cause="The hash is at 0x60, in the reserved bytes.",
            cure="It belongs at 0x40.", see="zeros in bytes 64 to 95"),
        Mistake("the reserved bytes cleared", edit("data[96:]", "bytes(32) + data[128:]"),
            cause="The 32 bytes after the checksum became zeros, and they may be in use.",
            cure="Go on with `data[96:]`.", see="zeros in bytes 96 to 127"),
        Mistake("the old checksum kept", edit("data[:64] + ", "data if any(data[64:96]) else data[:64] + "),
            cause="A file that has a checksum already kept it, and it may be that of other bytes.",
            cure="Write the new checksum over whatever is there.", see="the old bytes 64 to 95"),
        Mistake("SHA-1", edit("sha256", "sha1").edit("data[96:]", "data[84:]"),
            cause="SHA-1 gives 20 bytes, and the place is made for 32.",
            cure="Use `hashlib.sha256`.", see="zeros in the last 12 bytes of the checksum"),
        Mistake("appended", edit("data[:64]", "data").edit(" + data[96:]", ""),
            cause="The hash is after the tensors, and its place in the header is still empty.",
            cure="Replace bytes 64 to 95.", see="32 bytes too many"),
    ),
)
