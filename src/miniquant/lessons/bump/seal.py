"""The exercise of lab 16 on the checksum: what it covers, and where it stands."""

from __future__ import annotations

import hashlib

import numpy as np

from ...formats.bump.types import COUNT
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from .file import bump_header


def bump_seal(data: bytes) -> bytes:
    """The reference: a whole file with zeros for the checksum -> the same file with the checksum in its place."""
    return data[:64] + hashlib.sha256(data[128:]).digest() + data[96:]


def seal_oracle(data: bytes) -> bytes:
    """A byte at a time, into the hash and into the file."""
    digest, out = hashlib.sha256(), bytearray(data)
    for index in range(128, len(data)):
        digest.update(bytes([data[index]]))
    for index, byte in enumerate(digest.digest()):
        out[0x40 + index] = byte
    return bytes(out)


def seal_fields(data: bytes) -> Fields:
    """What lies before the checksum, the checksum, the reserved bytes, the rest."""
    return [
        ("the header before the checksum", 0, 64),
        ("header.checksum", 64, 96),
        ("header.reserved", 96, 128),
        ("what the checksum covers", 128, len(data)),
    ]


def _seal_cases(random: np.random.Generator) -> list[Case]:
    head = bump_header(1, 3, 20, 5, 2, bytes(32))
    tails = [b"", b"a", bumped_tail(3), bumped_tail(60), random.bytes(200), random.bytes(5000)]
    return [(head + tail,) for tail in tails]


def bumped_tail(count: int) -> bytes:
    """A table of types, and something that stands for tensors."""
    return COUNT.pack(count) + bytes(count) + bytes(range(count))


def _sealed(data: bytes, over: bytes, at: int = 64, digest: bytes | None = None) -> bytes:
    digest = hashlib.sha256(over).digest() if digest is None else digest
    return data[:at] + digest + data[at + len(digest) :]


def _after_table(data: bytes) -> bytes:
    """What follows the table of types."""
    return data[132 + int.from_bytes(data[128:132], "little") :] if len(data) >= 132 else b""


BUMP_SEAL = Exercise(
    name="bump_seal",
    lab="16",
    goal="Put the SHA-256 of everything behind the header into its place in the header.",
    minutes=4,
    difficulty="warm-up",
    reference=bump_seal,
    oracle=seal_oracle,
    cases=_seal_cases,
    fields=seal_fields,
    hints=(
        "The hash covers `data[128:]`, and its 32 bytes stand at 0x40.",
        "`data[:64] + hashlib.sha256(data[128:]).digest() + data[96:]`.",
    ),
    why="one changed bit in gigabytes of weights changes about half of these bits.",
    mistakes=(
        Mistake(
            "over the whole file",
            lambda data: _sealed(data, data),
            "The hash covers the header too, and with it the place where the hash itself will stand.",
            "Hash `data[128:]`.",
            "another checksum, also for a file without tensors",
        ),
        Mistake(
            "from behind the checksum",
            lambda data: _sealed(data, data[96:]),
            "The hash begins at 0x60, so it covers the reserved bytes of the header.",
            "Begin at 128.",
            "another checksum where everything else is right",
        ),
        Mistake(
            "without the table of types",
            lambda data: _sealed(data, _after_table(data)),
            "The hash covers the tensors alone, so a changed type would go unnoticed.",
            "Begin right behind the header, with the count.",
            "right for a file of nothing but a header",
        ),
        Mistake(
            "without the count",
            lambda data: _sealed(data, data[132:]),
            "The hash begins behind the count of types.",
            "Begin right behind the header, at 128.",
            "right for the empty file only",
        ),
        Mistake(
            "the last line left out",
            lambda data: _sealed(data, data[128:-64] if len(data) >= 192 else data[128:]),
            "The hash stops 64 bytes before the end.",
            "Hash to the end of the file.",
            "right for short files",
        ),
        Mistake(
            "hexadecimal digits",
            lambda data: _sealed(data, b"", digest=hashlib.sha256(data[128:]).hexdigest().encode()),
            "`hexdigest` gives 64 letters, which also cover the reserved bytes.",
            "Use `digest()`, 32 bytes.",
            "letters in bytes 64 to 127",
        ),
        Mistake(
            "in the reserved bytes",
            lambda data: _sealed(data, data[128:], at=96),
            "The hash stands at 0x60, in the reserved bytes.",
            "It stands at 0x40.",
            "zeros in bytes 64 to 95",
        ),
        Mistake(
            "SHA-1",
            lambda data: _sealed(data, b"", digest=hashlib.sha1(data[128:]).digest()),
            "SHA-1 gives 20 bytes, and the place is made for 32.",
            "Use `hashlib.sha256`.",
            "zeros in the last 12 bytes of the checksum",
        ),
        Mistake(
            "appended",
            lambda data: data + hashlib.sha256(data[128:]).digest(),
            "The hash stands behind the tensors, and its place in the header is still empty.",
            "Replace bytes 64 to 95.",
            "32 bytes too many",
        ),
    ),
)
